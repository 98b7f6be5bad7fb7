"""Which partition has which groups changes no result: random queries under random group tables, of
many partitions and few, against the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.plan.execution.key_group_table import GroupTable
from levada.testing.compare import same_queries
from support.example_counts import PATIENCE, examples
from support.generators import Case, cases, cql_cases, cql_view_cases, entailment_cases
from support.stepped_runs import run_case, run_stopped

pytestmark = pytest.mark.timeout(PATIENCE)
both = cases(most=4) | cql_cases(most=4) | cql_view_cases(most=2) | entailment_cases(most=3)
lots = st.integers(0, 2**32 - 1)
shares = st.sampled_from((0.001, 0.5, 1.0))


def by_lot(seed: int, share: float) -> Callable[[int, int], GroupTable]:
    """Deals this share of the groups out by lot, to all partitions or only to some of them."""

    def deal(groups: int, partitions: int) -> GroupTable:
        rng = np.random.default_rng(seed)
        moved = np.flatnonzero(rng.random(groups) < share).astype(np.int32)
        some = rng.integers(1, partitions + 1)
        to = rng.integers(0, some, len(moved)).astype(np.int32)
        return GroupTable(1, groups, partitions, moved, to)

    return deal


@examples(12)
@given(both, st.sampled_from((1, 3, 1000)), st.sampled_from((2, 3, 7)), lots, shares)
def test_no_group_table_shows(case: Case, rows: int, parts: int, lot: int, share: float) -> None:
    with patch("levada.checkpoint.key_group_tables.deal_round_robin", by_lot(lot, share)):
        got = run_case(case, epoch_rows=rows, partitions=parts)
    assert same_queries(case.expected(), got) is None


@examples(5)
@given(both, st.sampled_from((1, 7)), lots)
def test_a_run_goes_on_by_the_table_that_it_began_with(case: Case, rows: int, lot: int) -> None:
    """After a stop the table is read, not dealt anew."""
    deals = iter([by_lot(lot, 1.0)])
    target = "levada.checkpoint.key_group_tables.deal_round_robin"
    with patch(target, lambda *many: next(deals)(*many)):
        got = run_stopped(case, 2, epoch_rows=rows, partitions=3)
    assert same_queries(case.expected(), got) is None
