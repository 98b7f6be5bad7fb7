"""Memory that is bounded changes no result: random queries over random streams, with runs that are
cut and come together at a tiny theta (another one, or none, at each start), with another group
table and number of partitions at each epoch, stops and deaths between, against the reference
(Parallel windowed joins, W56).
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_moving_groups import deaths, lots, starts

from levada.core.query_limits import Memory
from levada.engine.engine import Engine
from levada.testing.compare import same_queries
from support.example_counts import PATIENCE, examples
from support.generators import Case, cases, cql_cases, cql_view_cases, entailment_cases
from support.random_key_groups import by_lot, looked_up
from support.stepped_runs import run_between

pytestmark = pytest.mark.timeout(PATIENCE)
queries = cases(most=4) | cql_cases(most=4) | cql_view_cases(most=2) | entailment_cases(most=3)
# less than a page: so few rows as random streams have are cut by it. Half of the starts of a case
# may hold few rows, too, so that epochs become smaller
thetas = st.lists(st.sampled_from((0, 60, 100, 200, 400, 4000)), min_size=1, max_size=3)


@examples(6)
@given(queries, st.sampled_from((2, 3, 5, 9)), lots, starts, deaths, thetas)
def test_a_bound_does_not_show(
    case: Case,
    rows: int,
    lot: int,
    stops: list[tuple[int, int | None]],
    dies: dict[int, bool],
    bounds: list[int],
) -> None:
    number = iter(range(10_000))

    def prepare(engine: Engine) -> None:
        theta = bounds[next(number) % len(bounds)]
        engine._memory = Memory(theta and 10**9, theta)
        engine._open().tables.dealing = by_lot(lot)

    with looked_up(small=lot % 2 == 0):
        got = run_between(case, prepare, stops, dies, epoch_rows=rows)
    assert same_queries(case.expected(), got) is None
