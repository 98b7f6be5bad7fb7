"""Balance changes no result: random queries over random streams, with loads that are drawn, a
reorganization before each epoch and absurd thresholds, so that groups move and partitions come and
go all the time; with stops, deaths and starts between, against the reference (Parallel windowed
joins, W17, W56).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.engine.engine import Engine
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions, Choice
from levada.testing.compare import same_queries
from support.example_counts import PATIENCE, examples
from support.generators import Case, cases, cql_cases, cql_view_cases, entailment_cases
from support.rebalancing_world import Drawn
from support.stepped_runs import run_between

pytestmark = pytest.mark.timeout(PATIENCE)
MOST = 4  # partitions
queries = cases(most=2) | cql_cases(most=2) | cql_view_cases(most=1) | entailment_cases(most=2)
lots = st.integers(0, 2**32 - 1)
partitions = st.none() | st.integers(1, MOST)
starts = st.lists(st.tuples(st.integers(2, 9), partitions), min_size=1, max_size=3)
deaths = st.dictionaries(st.integers(1, 8), st.booleans(), max_size=2)
options = st.builds(
    BalanceOptions,
    reorganize_every=st.sampled_from((1, 1, 2)),
    supplier_threshold=st.sampled_from((0.002, 0.5)),
    consumer_threshold=st.just(0.001),
    beta=st.sampled_from((0.01, 0.5)),
    buffer_rows=st.sampled_from((0, 1, 1000)),
    choice=st.sampled_from(list(Choice)),
    quiet=st.just(1),
)


@pytest.mark.long
@examples(30)
@given(queries, st.sampled_from((5, 9)), lots, options, starts, deaths)
def test_balance_does_not_show(
    case: Case, rows: int, lot: int, chosen: BalanceOptions,
    stops: list[tuple[int, int | None]], dies: dict[int, bool],
) -> None:  # fmt: skip
    def prepare(engine: Engine) -> None:
        engine._balancing = Drawn(chosen, 0 if engine._partitions else MOST, lot)

    got = run_between(case, prepare, stops, dies, epoch_rows=rows)
    assert same_queries(case.expected(), got) is None
