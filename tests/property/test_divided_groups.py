"""Heavy keys change no result: random queries over random streams, with another set of divided
groups, another group table and another number of partitions at each epoch, stops, starts over other
numbers of partitions and deaths between, against the reference (Parallel windowed joins, W54, W56).
Rows that met others in one of several partitions are counted, so that a test of nothing fails.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.operators.windowed import split_heavy_keys
from levada.testing.compare import same_queries
from support.example_counts import PATIENCE, examples
from support.generators import Case, cases, cql_cases
from support.generators.elements import elements
from support.generators.sketches import STREAM, sketched_sets
from support.generators.vocabulary import STATIC
from support.heavy_key_cases import Lots, groups_of, joined
from support.random_key_groups import looked_up
from support.stepped_runs import run_moved

pytestmark = pytest.mark.timeout(PATIENCE)
lots = st.integers(0, 2**32 - 1)
starts = st.lists(
    st.tuples(st.integers(2, 9), st.none() | st.integers(1, 4)), min_size=1, max_size=3
)
deaths = st.dictionaries(st.integers(1, 8), st.booleans(), max_size=2)
modes = st.sampled_from(("exact", "relax"))


@st.composite
def alike(draw: st.DrawFn) -> Case:
    """Queries that differ in little, most of them joins."""
    lateness = draw(st.sampled_from((0, 0, 1500)))
    stream = draw(elements(lateness=lateness, least=6))
    return Case({STREAM: stream}, tuple(draw(sketched_sets(4))), lateness, STATIC)


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many new rows a partition has left to others."""
    found, own_rows = [0], split_heavy_keys.own_rows

    def counted(*args: Any) -> Any:
        keep = own_rows(*args)
        found[0] += 0 if keep is None else int((~keep).sum())
        return keep

    monkeypatch.setattr(split_heavy_keys, "own_rows", counted)
    return found


def test_divided_groups_do_not_show(apart: list[int]) -> None:
    queries = joined() | joined() | joined() | alike() | cases(most=3) | cql_cases(most=3)

    @examples(30)
    @given(queries, st.sampled_from((3, 5, 9)), lots, starts, deaths, modes)
    def each(
        case: Case, rows: int, lot: int, stops: list[tuple[int, int | None]],
        dies: dict[int, bool], mode: str,
    ) -> None:  # fmt: skip
        deal = Lots(lot, groups_of(case)).deal
        with looked_up(small=lot % 2 == 0):
            got = run_moved(case, deal, stops, dies, epoch_rows=rows, sharing=mode)
        assert same_queries(case.expected(), got) is None

    each()
    assert apart[0] > 0, "rows meet others in one of several partitions"
