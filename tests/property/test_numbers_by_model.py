"""The number of partitions that the model chooses changes no result: random queries over random
streams, with costs that are drawn, so that another number is the best all the time and each change
is judged by lot; with stops, deaths, replays and balance between, against the reference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import Case, cases, cql_cases, cql_view_cases, entailment_cases
from examples import PATIENCE, examples
from levada.engine.engine import Engine
from levada.runtime.driver.costs import by_model
from levada.runtime.driver.task_count import Pace
from levada.testing.compare import same_queries
from stepped import run_between

pytestmark = pytest.mark.timeout(PATIENCE)
MOST = 4  # partitions
queries = cases(most=2) | cql_cases(most=2) | cql_view_cases(most=1) | entailment_cases(most=2)
lots = st.integers(0, 2**32 - 1)
said = st.sampled_from(("auto", "auto", "auto", None, 2))
starts = st.lists(st.tuples(st.integers(2, 9), said), min_size=1, max_size=3)
deaths = st.dictionaries(st.integers(1, 8), st.booleans(), max_size=2)
balance = st.sampled_from((None, {"degree": "model", "reorganize_every": 1}))


def drawn(lot: int) -> Callable[[Pace], dict[int, float]]:
    """What epochs would take over each number, by lot: each time another one is the best."""
    rng = np.random.default_rng(lot)
    return lambda pace: {n: float(1 + 99 * rng.random()) for n in range(1, MOST + 1)}


@examples(6)
@given(queries, st.sampled_from((5, 9)), lots, starts, deaths, balance)
def test_a_chosen_number_does_not_show(
    case: Case, rows: int, lot: int, stops: list[tuple[int, int | None]],
    dies: dict[int, bool], balanced: dict[str, object] | None,
) -> None:  # fmt: skip
    if balanced is not None:
        stops = [(epochs, None) for epochs, _ in stops]
    tables: list[int] = []

    def look(engine: Engine) -> None:
        tables.append(engine._open().tables.current)

    soon = dict.fromkeys(("SURE", "STEADY", "SETTLES", "JUDGED"), 1)
    with (
        patch.multiple(by_model, **soon, REST=2, MOST_REST=4, GAIN=0.0),
        patch.object(Pace, "over", drawn(lot)),
        patch("stepped.Engine", partial(Engine, master=f"local[{MOST}]", balance=balanced)),
    ):
        got = run_between(case, look, stops, dies, epoch_rows=rows)
    assert same_queries(case.expected(), got) is None
