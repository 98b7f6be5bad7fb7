"""A delay changes no result: random queries over random streams, with delays and costs that are
drawn, so that each epoch has another size; with stops, deaths and starts between, against the
reference.
"""

from __future__ import annotations

import random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.engine.engine import Engine
from levada.runtime.cost_model import admission_control
from levada.runtime.cost_model.admission_control import Admission, LinearCost
from levada.testing.compare import same_queries
from support.example_counts import PATIENCE, examples
from support.generators import Case, cases, cql_cases
from support.stepped_runs import run_between

pytestmark = pytest.mark.timeout(PATIENCE)
starts = st.lists(st.tuples(st.integers(2, 9), st.none()), min_size=1, max_size=3)
deaths = st.dictionaries(st.integers(1, 8), st.booleans(), max_size=2)


@examples(12)
@given(
    cases(most=2) | cql_cases(most=2), st.integers(25, 400), st.integers(0, 2**32 - 1), starts,
    deaths,
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:Results are to come within")
def test_a_delay_does_not_show(
    case: Case, delay: int, lot: int, stops: list[tuple[int, int | None]], dies: dict[int, bool]
) -> None:
    draw, real, sizes = random.Random(lot), Admission.see, set()

    def see(
        self: Admission, elements: int, took: float, job: float, ways: list[LinearCost]
    ) -> None:
        each = draw.choice((0.1, 5.0, 40.0))
        real(self, elements, 5.0 + 2 * each * elements, each * elements, [LinearCost(5.0, each, 9)])
        sizes.add(self.rows)

    def prepare(engine: Engine) -> None:
        engine._delay = delay

    with (
        patch.object(Admission, "see", see),
        patch.multiple(admission_control, MIN_EPOCH_ELEMENTS=1, START=3),
    ):
        got = run_between(case, prepare, stops, dies, epoch_rows=9)
    assert same_queries(case.expected(), got) is None
    assert sizes <= set(range(1, 10))
