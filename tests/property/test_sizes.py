"""No result depends on the sizes from which the same is done in another way: random queries with
sizes that are drawn small, in random epochs, partitions and runs, give the reference's results.
"""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.testing.compare import same_queries
from support.example_counts import PATIENCE, examples
from support.generators import Case, cases, cql_cases, cql_view_cases, entailment_cases
from support.random_sizes import drawn, some_sizes
from support.stepped_runs import run_case, run_stopped

pytestmark = pytest.mark.timeout(PATIENCE)
queries = cases(most=4) | cql_cases(most=4) | cql_view_cases(most=2) | entailment_cases(most=3)


@pytest.mark.long
@examples(60)
@given(
    queries,
    some_sizes(),
    st.sampled_from((1, 3, 7, 30)),
    st.sampled_from((1, 2, 3)),
    st.sampled_from((0, 0, 1, 3)),
)
def test_sizes_change_nothing(
    case: Case, sizes: dict[str, int], rows: int, partitions: int, stops: int
) -> None:
    with drawn(sizes), warnings.catch_warnings(record=True) as warned:
        if stops:
            results = run_stopped(case, stops, epoch_rows=rows, partitions=partitions)
        else:
            results = run_case(case, epoch_rows=rows, partitions=partitions)
    messages = [str(w.message) for w in warned]
    assert not [text for text in messages if "is suspended" in text]
    assert same_queries(case.expected(), results) is None
