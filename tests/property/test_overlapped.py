"""Epochs whose publication goes on beside the next one publish the same, in the same order, as
those that end with theirs; and what queries read of each other is the same.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.async_publication import overlapping
from support.example_counts import PATIENCE, examples
from support.generators import Case, cases, cql_cases, made_cases
from support.stepped_runs import run_case, run_stopped

pytestmark = pytest.mark.timeout(PATIENCE)
both = cases(most=2) | cql_cases(most=2) | made_cases(most=1)


@examples(3)
@given(both, st.sampled_from((1, 3, 1000)), st.sampled_from((1, 2)))
def test_what_is_published_beside_is_the_same_in_the_same_order(
    case: Case, rows: int, parts: int
) -> None:
    inline = run_case(case, epoch_rows=rows, partitions=parts)
    with overlapping():
        assert run_case(case, epoch_rows=rows, partitions=parts) == inline


@examples(1)
@given(both, st.sampled_from((1, 3)), st.sampled_from((1, 2, 5)))
def test_engines_that_stop_again_and_again(case: Case, rows: int, every: int) -> None:
    inline = run_case(case, epoch_rows=rows)
    with overlapping():
        assert run_stopped(case, every, epoch_rows=rows) == inline
