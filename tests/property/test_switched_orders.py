"""A query that goes over to other orders of its joins while it runs says what the naive reference
says of it: no gap, no row twice, no window lost.

Sets of queries as of ``test_orders_of_joins`` run in small epochs, and each time that is looked the
orders of all that may go over are drawn anew (``Lots``), so that switches are under way nearly all
the time, while queries come and go, in each mode of sharing, and over stops and starts (``check``:
one at the end, more where modes are mixed). Switches that are done, and those that go on after a
start, are counted. 2 sets; ``LEVADA_CASES`` is another number.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_arrangements_of_streams import joined
from test_orders_of_joins import sets
from test_shared_is_alone import latenesses

from levada.plan.logical.nodes import Query
from levada.plan.migration.running_migrations import RunningMigration
from levada.plan.topology.topology import Topology
from levada.runtime.cost_model import plan_migrations
from levada.testing.reference_model import Element
from support.dynamic_queries import MODES, PHASES, Coming, World, check, comings
from support.generators.elements import elements
from support.generators.sketches import STREAM
from support.generators.vocabulary import STATIC
from support.generators.windows import Clause
from support.query_dsl import S, T, at, query
from support.random_join_orders import Lots

SETS = int(os.environ.get("LEVADA_CASES", "0"))
OWN = MODES if SETS else ("exact",)
"""Modes of which each set has a run of its own, beside one in which they are mixed."""
pytestmark = pytest.mark.timeout(0)

mixed_modes = st.lists(
    st.sampled_from((*MODES, "exact", "exact")), min_size=PHASES + 1, max_size=PHASES + 1
)


@st.composite
def worlds(draw: st.DrawFn, names: Sequence[str] = (STREAM,)) -> World:
    """Streams that are long beside most windows."""
    lateness = draw(latenesses)
    streams, cuts = dict[str, tuple[Element, ...]](), dict[str, list[int]]()
    for name in names:
        found: list[Element] = []
        for _ in range(5 if SETS else 3):
            base = max((e.ts for e in found), default=0) + 250
            found += draw(elements(lateness=lateness, base=base, least=8))
        streams[name] = tuple(found)
        cuts[name] = sorted(draw(st.integers(0, len(found))) for _ in range(PHASES - 1))
    return World(streams, cuts, lateness, STATIC)


@st.composite
def in_common(draw: st.DrawFn) -> list[Coming]:
    """Joins that have sides in common and come one by one, the first two at once or one later."""
    found = draw(comings(joined()))
    stays = [replace(one, comes=i, goes=PHASES, life=None) for i, one in enumerate(found[:2])]
    return [*stays, *found[2:]]


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many switches were done, and how many of a run before."""
    found: Counter[str] = Counter()
    finish = plan_migrations.finish

    def counted(topology: Topology, name: str) -> None:
        found["done"] += 1
        found["after a start"] += name not in topology.sharing.orders.standing
        found[topology.sharing.mode] += 1
        finish(topology, name)

    monkeypatch.setattr(plan_migrations, "finish", counted)
    return found


@pytest.mark.long
def test_queries_that_go_over_by_lot_say_what_each_says_alone(done: Counter[str]) -> None:
    shared: dict[str, Counter[str]] = {mode: Counter() for mode in OWN}

    @settings(
        max_examples=SETS or 2,
        deadline=None,
        print_blob=True,
        suppress_health_check=[
            HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture,
        ],
    )  # fmt: skip
    @given(
        comings(sets()), worlds(), mixed_modes, latenesses, st.integers(0, 99), st.integers(1, 3)
    )
    def each(
        coming: Sequence[Coming],
        world: World,
        mixed: Sequence[str],
        alone: int,
        seed: int,
        rows: int,
    ) -> None:
        check(
            coming, world, shared, alone, mixed, orders=Lots(seed), looks=rows, epoch_rows=2 * rows
        )

    each()
    print(f"{dict(done)} of {shared}")
    assert done["done"] > 0


@pytest.mark.long
def test_queries_that_go_over_to_what_others_keep_say_what_each_says_alone(
    done: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared: dict[str, Counter[str]] = {mode: Counter() for mode in OWN}
    begin = plan_migrations.begin_anew

    def counted(
        topology: Topology, name: str, query: Query, start: int, apart: str = ""
    ) -> RunningMigration | None:
        begun = begin(topology, name, query, start, apart)
        done["anew"] += begun is not None
        return begun

    monkeypatch.setattr(plan_migrations, "begin_anew", counted)

    @settings(
        max_examples=SETS or 2,
        deadline=None,
        print_blob=True,
        suppress_health_check=[
            HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture,
        ],
    )  # fmt: skip
    @given(in_common(), worlds((S, T)), mixed_modes, latenesses, st.integers(1, 3))
    def each(
        coming: Sequence[Coming], world: World, mixed: Sequence[str], alone: int, rows: int
    ) -> None:
        check(coming, world, shared, alone, mixed, looks=rows, epoch_rows=2 * rows)

    each()
    print(f"{dict(done)} of {shared}")
    assert (done["anew"] and done["done"]) or (SETS < 20 and "CI" not in os.environ)


def test_of_several_conjunctions_the_right_one_goes_over() -> None:
    """One of a single pattern stands before the one of three that may go over."""
    windows = {"w": Clause("step", 1000, 500), "w2": Clause("step", 4000, 500)}
    group = (
        "WINDOW :w { ?y :p ?u FILTER(4.5 != ?u) FILTER(?u != 3) } "
        "WINDOW :w2 { ?y :p ?u . ?x :q ?y }"
    )
    one = Coming(query("SELECT ?y ?u ?x", group, windows=windows))
    told = (":a :p 1", ":b :q :a", ":a :p 3", ":c :q :a", ":b :p 2", ":a :q :b")
    stream = [at(200 * i, told[i % len(told)]) for i in range(36)]
    world = World({S: stream}, {S: (12, 24)})
    check([one], world, {"exact": Counter()}, orders=Lots(87), looks=1, epoch_rows=2)
