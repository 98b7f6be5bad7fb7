"""Joins of many parts in one step say what joins of two say: random stars, and what is none, with
another group table, another number of partitions and other divided groups at each epoch, stops and
deaths between, some engines told the one form and some the other, in each mode of sharing, against
the reference. Rows that one step has put together are counted, so that a test of nothing fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asking import S, at, query
from cases import Case
from examples import PATIENCE, examples
from heavy import Lots, groups_of
from levada.model.frame import Frame
from levada.operators import table
from levada.plan.install.sharing import Sharing
from levada.plan.sealed import steps as s
from levada.testing.compare import same_queries
from stars import starred
from stepped import run_moved

pytestmark = pytest.mark.timeout(PATIENCE)
lots = st.integers(0, 2**32 - 1)
starts = st.lists(
    st.tuples(st.integers(2, 9), st.none() | st.integers(1, 4)), min_size=1, max_size=3
)
deaths = st.dictionaries(st.integers(1, 8), st.booleans(), max_size=2)
modes = st.sampled_from(tuple(map(str, Sharing)))
forms = st.sampled_from((("multiway",), ("multiway",), ("multiway", "binary")))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows have been put together in one step."""
    found, in_pieces = [0], table.IN_PIECES[s.MultiwayJoin]

    def counted(*args: Any) -> Iterator[Frame]:
        for rows in in_pieces(*args):
            found[0] += rows.n
            yield rows

    monkeypatch.setitem(table.IN_PIECES, s.MultiwayJoin, counted)
    return found


def test_a_star_is_put_together_in_one_step(made: list[int]) -> None:
    stream = [at(1000 * i, f':a :p {i} . :a :q :b . :b :q :a . :a :r "ab"') for i in range(8)]
    asked = query("SELECT *", "WINDOW :w { ?x :p ?n . ?x :q ?b . ?x :r ?s . ?c :q ?x }")
    case = Case({S: tuple(stream)}, (asked,))
    got = run_moved(
        case, Lots(7, groups_of(case)).deal, [(2, 3)], {3: True}, epoch_rows=2, joins=("multiway",)
    )
    assert same_queries(case.expected(), got) is None
    assert made[0] >= 8


@examples(9)
@given(starred(), st.sampled_from((3, 5, 9, 1000)), lots, starts, deaths, modes, forms)
def test_joins_in_one_step_do_not_show(
    case: Case, rows: int, lot: int, stops: list[tuple[int, int | None]],
    dies: dict[int, bool], mode: str, joins: tuple[str, ...],
) -> None:  # fmt: skip
    deal = Lots(lot, groups_of(case)).deal
    got = run_moved(case, deal, stops, dies, epoch_rows=rows, sharing=mode, joins=joins)
    assert same_queries(case.expected(), got) is None
