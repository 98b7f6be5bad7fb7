"""State that moves changes no result: random queries over random streams, with another group table
and another number of partitions at each epoch, stops, starts over other numbers of partitions and
deaths between, against the reference (Parallel windowed joins, W17, W56).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import Case, cases, cql_cases, cql_view_cases, entailment_cases
from dealing import MOST, by_lot
from examples import PATIENCE, examples
from levada.testing.compare import same_queries
from stepped import run_moved

pytestmark = pytest.mark.timeout(PATIENCE)
queries = cases(most=4) | cql_cases(most=4) | cql_view_cases(most=2) | entailment_cases(most=3)
lots = st.integers(0, 2**32 - 1)
partitions = st.none() | st.integers(1, MOST)
starts = st.lists(st.tuples(st.integers(2, 9), partitions), min_size=1, max_size=3)
deaths = st.dictionaries(st.integers(1, 8), st.booleans(), max_size=2)


@examples(25)
@given(queries, st.sampled_from((3, 5, 9)), lots, starts, deaths)
def test_moves_do_not_show(
    case: Case, rows: int, lot: int, stops: list[tuple[int, int | None]], dies: dict[int, bool]
) -> None:
    got = run_moved(case, by_lot(lot), stops, dies, epoch_rows=rows)
    assert same_queries(case.expected(), got) is None
