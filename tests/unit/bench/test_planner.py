"""Queries come and go: each gets what it would get alone, and what is shared is what pays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from airport import MINUTE, Q1, Q2, SOURCES, drawn, statistics, two_regions
from bench.papers.streamreuse.model.conditions import where
from bench.papers.streamreuse.model.cost import Costs, Price
from bench.papers.streamreuse.model.dataflow import Demand
from bench.papers.streamreuse.model.descriptor import Descriptor, descriptor, part, rows
from bench.papers.streamreuse.model.explain import show_decision
from bench.papers.streamreuse.model.planner import Planner, Query
from bench.papers.streamreuse.model.statistics import Spread, Statistics, StreamStatistics
from bench.papers.streamreuse.model.value_intervals import values
from bench.papers.streamreuse.model.windows import every
from naive_rows import alone, by_operators, random_data, report

from levada.errors import UsageError

MODES = ["off", "exact", "containment", "relax"]
HOUR = 3600.0


def planner(mode: str = "relax", *, locality: bool = True, flights: int = 2000) -> Planner:
    told = statistics(flights)
    return Planner(told, two_regions(), dict(SOURCES), mode=mode, locality=locality)


def check(plan: Planner, rng: np.random.Generator) -> None:
    """Every query's rows are its own, and all sums are those of what is there."""
    data = random_data(rng)
    for name, (query, number) in plan.queries.items():
        wanted = rows(query.wanted)
        now = report(wanted)
        found = by_operators(plan.dataflow, number, (name, 0), data, now)
        assert found == alone(wanted, data, now), name
    flow = plan.dataflow
    for number, operator in flow.operators.items():
        assert operator.demands, "what nobody uses is gone"
        assert operator.cpu == pytest.approx(flow.work(operator, operator.definition))
        sent = (flow._wire(operator, demand) for demand in operator.demands.values())
        assert operator.wires == pytest.approx(sum(sent), abs=1e-9)
        assert operator.until == max(d.until for d in operator.demands.values())
        assert flow.lattice._operators[number][0] == operator.definition
        for place, source in enumerate(operator.inputs):
            demand = flow.operators[source].demands[number, place]
            assert demand.definition == operator.wants(place, operator.definition)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(4))
def test_shared_is_alone(mode: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    plan = planner(mode, locality=bool(seed % 2))
    now = 0.0
    for number in range(14):
        now += float(rng.exponential(10))
        plan.expire(now)
        wanted = drawn(rng)
        until = now + float(rng.exponential(100))
        plan.add(Query(f"q{number}", wanted, int(rng.integers(6)), until), now)
        if rng.random() < 0.3:
            plan.remove(str(rng.choice(list(plan.queries))))
        if number % 5 == 4:
            plan.gather()
            check(plan, rng)
    check(plan, rng)
    for name in list(plan.queries):
        plan.remove(name)
    assert not plan.dataflow.operators and len(plan.dataflow.lattice) == 0
    assert plan.dataflow.price() == Price(0, 0)


def test_each_mode_shares_what_it_says() -> None:
    narrow = replace(Q2, where=where({"FLIGHTS.CARRIER": values("DL")}),
                     columns=frozenset({"CHECK-INS.STATUS", "FLIGHTS.CARRIER"}))  # fmt: skip
    wide = replace(Q2, columns=Q2.columns | {"FLIGHTS.CARRIER"})
    other = replace(Q2, where=where({"FLIGHTS.CARRIER": values("AA")}))
    kinds = {}
    for mode in MODES:
        plan = planner(mode)
        plan.add(Query("first", wide, 1, HOUR))
        kinds[mode] = [
            plan.add(Query(name, wanted, 1, HOUR)).chosen.kind
            for name, wanted in (("same", wide), ("narrow", narrow), ("other", other))
        ]
    assert kinds == {
        "off": ["new", "new", "new"],
        "exact": ["equal", "new", "new"],
        "containment": ["equal", "contained", "new"],
        "relax": ["equal", "contained", "relaxed"],
    }


def test_relaxing_goes_down_to_the_source_and_other_users_keep_their_rows() -> None:
    """S57: a third query uses the source's filter that is relaxed for the second."""
    plan, rng = planner(), np.random.default_rng(1)
    first = _flights(0, ["FLIGHTS.NUM", "CHECK-INS.STATUS"])
    plan.add(Query("join", first, 1, HOUR))
    alone_ = descriptor({"FLIGHTS": 3}, (), first.where, ["FLIGHTS.NUM"])
    plan.add(Query("filter", alone_, 2, HOUR))
    filter_ = plan.dataflow.operators[_filter(plan)]
    assert len(filter_.demands) == 2
    before = filter_.definition.where
    plan.add(Query("other", _flights(2, ["FLIGHTS.NUM", "FLIGHTS.GATE"]), 1, HOUR))
    assert filter_.definition.where == before | where({"FLIGHTS.CARRIER": values(2)})
    assert filter_.demands["filter", 0].definition == part(alone_, {"FLIGHTS"})
    check(plan, rng)
    assert [line.partition(":")[0] for line in plan.dataflow.log] == [
        f"operator {plan.queries['join'][1]} relaxed",
        f"operator {filter_.number} relaxed",
    ]


def _flights(carrier: int, columns: list[str]) -> Descriptor:
    return descriptor(
        {"FLIGHTS": 3, "CHECK-INS": 2},
        [("FLIGHTS.NUM", "CHECK-INS.FLIGHT")],
        where({"FLIGHTS.CARRIER": values(carrier)}),
        columns,
        instants=every(1),
    )


def test_a_life_ends_by_itself_and_the_operator_shrinks() -> None:
    """S56."""
    plan, rng = planner(), np.random.default_rng(2)
    plan.add(Query("long", _flights(0, ["FLIGHTS.NUM"]), 1, 100.0))
    before = {n: o.definition for n, o in plan.dataflow.operators.items()}
    paid = plan.dataflow.price()
    plan.add(Query("short", _flights(1, ["FLIGHTS.GATE", "FLIGHTS.DEST"]), 1, 50.0))
    [join] = [o for o in plan.dataflow.operators.values() if len(o.definition.sources) == 2]
    assert join.until == 100.0 and len(join.demands) == 2
    assert plan.expire(49.0) == [] and plan.expire(50.0) == ["short"]
    assert {n: o.definition for n, o in plan.dataflow.operators.items()} == before
    assert plan.dataflow.price().network == pytest.approx(paid.network)
    assert plan.dataflow.log[-1].startswith(f"operator {_filter(plan)} shrank")
    check(plan, rng)


def _filter(plan: Planner) -> int:
    return next(
        n for n, o in plan.dataflow.operators.items() if o.definition.sources == ("FLIGHTS",)
    )


def test_where_the_sink_is_decides() -> None:
    """S58: the streams begin in region 1, the join of the first query runs in region 0. Once its
    few rows are measured, a query there takes them; one in region 1 joins anew beside the sources.
    """
    streams = {
        "A": StreamStatistics(10.0, {"k": Spread(10), "v": Spread(10, 10)}),
        "B": StreamStatistics(10.0, {"k": Spread(10), "w": Spread(10, 10)}),
    }
    wanted = descriptor({"A": 60_000, "B": 60_000}, [("A.k", "B.k")], columns=["A.v", "B.w"])
    chosen = {}
    for sink, measured in ((1, False), (1, True), (4, True)):
        told = Statistics(streams)
        plan = Planner(told, two_regions(), {"A": 3, "B": 3}, costs=Costs(weight=0))
        first = plan.add(Query("first", wanted, 0, HOUR)).chosen
        assert first.node == 0, "ten times as much would come out as goes in"
        if measured:
            told.observe(wanted, rows=10, seconds=10)
        chosen[sink, measured] = plan.add(Query("second", wanted, sink, HOUR)).chosen
    assert chosen[1, False].operator is None, "1,200 rows a second were estimated"
    assert chosen[1, True].operator is not None and chosen[1, True].node == 0
    assert chosen[4, True].operator is None and chosen[4, True].node in (3, 4)


def test_a_result_that_was_carried_afar_serves_others_there() -> None:
    """A relay stands where the first query's rows go; the second takes them from there."""
    plan = planner("exact")
    plan.dataflow.statistics.observe(Q2, rows=10, seconds=10)
    plan.add(Query("first", Q2, 4, HOUR))
    before = plan.dataflow.price().network
    decision = plan.add(Query("second", Q2, 5, HOUR))
    assert decision.chosen.operator is not None and decision.chosen.node == 4
    assert plan.dataflow.price().network < 1.1 * before
    plan.remove("first")
    assert plan.dataflow.operators[decision.chosen.operator].relay
    check(plan, np.random.default_rng(3))


def test_what_does_not_pay_is_not_shared() -> None:
    """With four flights nearly everything meets: filtering the rows of one join for three users
    would cost more than a join of its own. With 2,000 there is little to filter.
    """
    chosen = {}
    for flights in (4, 2000):
        plan = planner(flights=flights)
        for name in ("a", "b"):
            plan.add(Query(name, Q2, 1, HOUR))
        other = replace(Q2, where=where({"FLIGHTS.CARRIER": values("AA")}))
        decision = plan.add(Query("other", other, 1, HOUR))
        assert {"new", "relaxed"} <= {way.kind for way in decision.ways}
        assert decision.chosen.cost == min(way.cost for way in decision.ways)
        chosen[flights] = decision.chosen.kind
        text = show_decision(decision, plan.costs)
        assert text.startswith("other: ") and text.count("\n  * ") == 1
        assert text.count("over its life") == len(decision.ways)
    assert chosen == {4: "new", 2000: "relaxed"}


def test_a_plan_that_lives_on_alone_is_priced_so() -> None:
    """What is nearly free beside a query that ends soon is dear afterwards."""
    plan = planner()
    plan.add(Query("first", Q2, 1, 10.0))
    [soon] = [w for w in plan.add(Query("a", Q2, 1, 10.0)).ways if w.kind == "equal"][:1]
    plan.remove("a")
    [late] = [w for w in plan.add(Query("b", Q2, 1, 100.0)).ways if w.kind == "equal"][:1]
    assert late.price == soon.price
    assert late.cost > 10 * soon.cost


def test_figure_4_of_cqels_cloud_is_three_joins() -> None:
    """Q1 over S1, S2, S3; Q2 over S2, S3; Q3 and Q4 over S2, S3, S4, with other windows."""
    one = StreamStatistics(10.0, {"k": Spread(2000), "v": Spread(5)})
    streams = {f"S{i}": one for i in range(1, 5)}
    plan = Planner(Statistics(streams), two_regions(), dict.fromkeys(streams, 0))
    wanted = {"Q2": (2, 3), "Q1": (1, 2, 3), "Q3": (2, 3, 4), "Q4": (2, 3, 4)}
    for n, (name, numbers) in enumerate(wanted.items()):
        names = [f"S{i}" for i in numbers]
        d = descriptor(
            dict.fromkeys(names, (n + 1) * MINUTE),
            [(f"{a}.k", f"{b}.k") for a, b in pairwise(names)],
            columns=[f"{names[0]}.k"],
        )
        plan.add(Query(name, d, 1, HOUR))
    joins = sorted(
        o.definition.sources for o in plan.dataflow.operators.values()
        if len(o.definition.sources) > 1
    )  # fmt: skip
    assert joins == [("S1", "S2", "S3"), ("S2", "S3"), ("S2", "S3", "S4")]


def test_the_papers_queries_share_the_join_and_keep_their_rows() -> None:
    plan = planner()
    plan.add(Query("Q1", Q1, 2, HOUR))
    plan.add(Query("Q2", Q2, 1, HOUR))
    joins = [o.definition for o in plan.dataflow.operators.values() if len(o.inputs) == 2]
    both = [d for d in joins if d.sources == ("CHECK-INS", "FLIGHTS")]
    assert len(joins) == 3 and len(both) == 1
    assert both[0].windows.instants == every(MINUTE)
    plan.remove("Q1")
    left = [o.definition for o in plan.dataflow.operators.values() if len(o.inputs) == 2]
    assert left == [Q2], "it has shrunk to what is left"


def test_groupings_share_their_rows_and_each_other() -> None:
    plan = planner()
    base = {"FLIGHTS": 3}
    counts = descriptor(base, group=["FLIGHTS.CARRIER", "FLIGHTS.GATE"], instants=every(1),
                        aggregates=[("COUNT", "FLIGHTS.NUM")])  # fmt: skip
    coarse = replace(counts, group=frozenset({"FLIGHTS.CARRIER"}))
    plan.add(Query("fine", counts, 0, HOUR))
    decision = plan.add(Query("coarse", coarse, 0, HOUR))
    assert decision.chosen.kind == "contained"
    other = replace(counts, windows=replace(counts.windows, ranges=(2,)))
    assert plan.add(Query("other", other, 0, HOUR)).chosen.kind == "new"
    leaves = [o for o in plan.dataflow.operators.values() if not o.inputs]
    assert len(leaves) == 1, "windows that differ have groupings of their own over one filter"


def test_a_relay_of_coarser_groups_is_not_asked_for_what_the_finer_ones_cannot_report() -> None:
    plan = planner()
    fine = descriptor(
        {"FLIGHTS": 3},
        group=["FLIGHTS.CARRIER", "FLIGHTS.GATE"],
        instants=every(4),
        aggregates=[("COUNT", "FLIGHTS.NUM")],
    )
    coarse = replace(fine, group=frozenset({"FLIGHTS.CARRIER"}))
    often = replace(coarse, windows=replace(coarse.windows, instants=every(3)))
    plan.add(Query("fine", fine, 0, HOUR))
    plan.add(Query("coarse", coarse, 4, HOUR))
    [relay] = [n for n, o in plan.dataflow.operators.items() if o.relay]
    assert plan.dataflow.operators[relay].definition == coarse
    assert not plan.dataflow.can_serve(relay, often) and plan.dataflow.can_serve(relay, coarse)
    assert plan.add(Query("often", often, 5, HOUR)).chosen.operator != relay


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: planner("relaxed"), "There is no mode relaxed. Did you mean relax?"),
        (lambda: planner().add(Query("q", Q2, 9, HOUR)), "The sink of q is node 9"),
        (lambda: planner().add(Query("q", Q2, 1, 5.0), 5.0), "The life of q ends at 5 s"),
        (lambda: planner().add(Query("q", Q2, 1, -1.0)), "The life of q ends at -1 s"),
        (lambda: planner().remove("q"), "There is no query q."),
        (lambda: _added("FLIHGTS.NUM"), "FLIHGTS.NUM is of no stream"),
        (lambda: _added("FLIGHTS.GAT"), "There is no attribute FLIGHTS.GAT. Did you mean GATE?"),
        (lambda: _apart(), "The streams of q are not connected"),
    ],
)
def test_what_cannot_be_is_a_sentence(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        make()
    assert str(error.value).startswith(sentence)


def _added(column: str) -> None:
    wanted = replace(Q2, columns=frozenset({column}))
    planner().add(Query("q", wanted, 1, HOUR))


def _apart() -> None:
    wanted = descriptor({"FLIGHTS": 1, "WEATHER": 1}, columns=["FLIGHTS.NUM"])
    planner().add(Query("q", wanted, 1, HOUR))


def test_a_demand_that_nothing_serves_is_a_mistake_of_the_program() -> None:
    plan = planner("exact")
    plan.add(Query("q", Q2, 1, HOUR))
    with pytest.raises(AssertionError, match="only what serves"):
        plan.dataflow.attach(plan.queries["q"][1], ("x", 0), Demand(Q1, 1, HOUR))
