"""Rows of now with the last rows of their key, without a window and a join: the same as with both
(the optimizer's rule ``recent_rows`` switched off), and as the reference; under repeats, equal
instants, disorder, in any cut into epochs, with moves of groups, stops and deaths, and for queries
that come later.
"""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_moving_groups import deaths, lots, starts
from test_random_cases import in_mid_stream

from levada.operators.windowed import last_rows
from levada.plan.optimizer.pipeline import disable_rules
from levada.testing.compare import same_queries
from support.example_counts import PATIENCE, examples
from support.generators import Case, recent_cases
from support.random_key_groups import by_lot
from support.stepped_runs import run_case, run_moved

pytestmark = pytest.mark.timeout(PATIENCE)
drawn = recent_cases()
epochs = st.sampled_from((1, 2, 3, 7, 1000))


@examples(25)
@given(drawn, epochs, st.sampled_from((1, 2, 3)), st.sampled_from((1, 3, 1_000_000)))
def test_they_equal_the_reference(case: Case, rows: int, parts: int, most: int) -> None:
    with patch.object(last_rows, "MOST_PAIRS", most):
        got = run_case(case, epoch_rows=rows, partitions=parts)
    assert same_queries(case.expected(), got) is None


@examples(10)
@given(drawn, epochs)
def test_the_rule_does_not_show(case: Case, rows: int) -> None:
    with disable_rules("recent_rows"):
        plain = run_case(case, epoch_rows=rows)
    assert same_queries(plain, run_case(case, epoch_rows=rows)) is None


@examples(8)
@given(drawn, st.sampled_from((2, 3, 5)), lots, starts, deaths)
def test_moves_and_deaths_do_not_show(
    case: Case, rows: int, lot: int, stops: list[tuple[int, int | None]], dies: dict[int, bool]
) -> None:
    got = run_moved(case, by_lot(lot), stops, dies, epoch_rows=rows)
    assert same_queries(case.expected(), got) is None


@examples(6)
@given(drawn, st.data())
def test_queries_that_come_later_see_what_follows(case: Case, data: st.DataObject) -> None:
    in_mid_stream(case, data, gone=data.draw(st.booleans(), label="gone"))
