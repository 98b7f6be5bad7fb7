"""The number of partitions that the model chooses changes no result: random queries over random
streams, with costs that are drawn, so that another number is the best all the time and each change
is judged by lot; with stops, deaths, replays and balance between, against the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.engine.engine import Engine
from levada.runtime.cost_model import partition_count
from levada.runtime.driver.parallelism import ParallelismPolicy
from levada.testing.compare import same_queries
from support.example_counts import PATIENCE, examples
from support.generators import Case, cases, cql_cases, cql_view_cases, entailment_cases
from support.stepped_runs import run_between

pytestmark = pytest.mark.timeout(PATIENCE)
MOST = 4  # partitions
queries = cases(most=2) | cql_cases(most=2) | cql_view_cases(most=1) | entailment_cases(most=2)
lots = st.integers(0, 2**32 - 1)
starts = st.sampled_from(
    (
        [(10_000, "auto")],
        [(4, "auto"), (10_000, "auto")],
        [(5, "auto"), (3, None), (3, 2), (9, "auto")],
    )
)
deaths = st.dictionaries(st.integers(1, 8), st.booleans(), max_size=2)
balance = st.sampled_from((None, None, {"reorganize_every": 1}))


def drawn(lot: int) -> Callable[[ParallelismPolicy], dict[int, float]]:
    """What epochs would take over each number, by lot: each time another one is the best."""
    rng = np.random.default_rng(lot)
    return lambda pace: {n: float(1 + 99 * rng.random()) for n in range(1, MOST + 1)}


@examples(10)
@given(queries, st.sampled_from((2, 3)), lots, starts, deaths, balance)
def test_a_chosen_number_does_not_show(
    case: Case, rows: int, lot: int, stops: list[tuple[int, Any]],
    dies: dict[int, bool], balanced: dict[str, object] | None,
) -> None:  # fmt: skip
    if balanced is not None:
        stops = [(epochs, "auto") for epochs, _ in stops]
    soon: dict[str, Any] = {"SURE": 0, "STEADY": 0, "SETTLES": 0, "JUDGED": 1}
    with (
        patch.multiple(partition_count, **soon, REST=2, MOST_REST=4, GAIN=0.0),
        patch.object(ParallelismPolicy, "times_by_partitions", drawn(lot)),
        patch(
            "support.stepped_runs.Engine",
            partial(Engine, master=f"local[{MOST}]", balance=balanced),
        ),
    ):
        got = run_between(case, lambda engine: None, stops, dies, epoch_rows=rows)
    assert same_queries(case.expected(), got) is None
