"""The order of joins follows from what others join: what is common is joined first, and once; what
is measured decides; of a query alone nothing is asked.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from levada.core.event_time import MIN
from levada.core.stream_facts import StreamFacts
from levada.engine.engine import Engine
from levada.engine.query_request import QueryRequest
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.execution.steps import Join
from levada.plan.lowering.join_order import Conjunction, Tree, parts_of
from levada.plan.optimizer.pipeline import optimize
from levada.plan.sharing.decision_log import show_orders
from levada.plan.sharing.join_orders.running_subjoins import RunningSubjoins
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.topology.topology import Topology
from support.call_counter import calls

STREAM = "http://e/s"
TEXT = """PREFIX : <http://e/> SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]
WHERE {{ WINDOW :w {{ {} }} }}"""
SHARED = [Sharing.EXACT, Sharing.RELAX]
FIG4 = (
    "?x :s1 ?y . ?y :s2 ?z . ?z :s3 ?u",
    "?y :s2 ?z . ?z :s3 ?u",
    "?y :s2 ?z . ?z :s3 ?u . ?u :s4 ?v",
    "?a :s2 ?b . ?b :s3 ?c . ?c :s4 ?d",
)


def topology(mode: Sharing = Sharing.EXACT) -> Topology:
    return Topology({STREAM: StreamFacts()}, (), mode)


def add(found: Topology, *groups: str) -> None:
    """Queries that come together."""
    for group in groups:
        text = TEXT.format(group)
        found.add(f"q{len(found.queries)}", optimize(translate(parse(text), text=text)), MIN)
    found.seal()


def joins(found: Topology) -> int:
    nodes = (node for node in found.graph.nodes.values() if isinstance(node.shape.step, Join))
    return sum(len(node.members.index) for node in nodes)


def shapes(n: int) -> list[str]:
    """Of three patterns two are common, and stand where a query alone joins them last."""
    return [f"?x :{'arz'[i % 3]}{i} ?y . ?y :p ?z . ?z :q ?u" for i in range(n)]


@pytest.mark.parametrize("mode", SHARED)
def test_a_hundred_shapes_with_two_patterns_in_common_are_1_and_100_joins(mode: Sharing) -> None:
    found = topology(mode)
    add(found, *shapes(100))
    assert joins(found) == 101


def test_off_keeps_the_order_of_each_query() -> None:
    found = topology(Sharing.OFF)
    add(found, *shapes(10))
    assert joins(found) == 20
    assert not found.sharing.journal.kept.orders


@pytest.mark.parametrize("mode", SHARED)
def test_shapes_that_come_one_by_one_take_the_common_join_too(mode: Sharing) -> None:
    found = topology(mode)
    add(found, "?z :p ?y . ?y :q ?u")
    for shape in shapes(10):
        add(found, shape)
    assert joins(found) == 11


@pytest.mark.parametrize("mode", SHARED)
def test_figure_4_of_cqels_cloud_is_three_joins(mode: Sharing) -> None:
    found = topology(mode)
    add(found, *FIG4)
    assert joins(found) == 3
    assert {name: len(own) for name, own in found.sharing.journal.kept.orders.items()} != {}


def test_a_query_alone_has_the_plan_that_it_has_without_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for group in (*FIG4, *shapes(3), "?x :a ?y . ?x :b ?z . ?z :c ?u . ?u :d ?x"):
        one, other = topology(), topology()
        add(one, group)
        with monkeypatch.context() as patch:
            patch.setattr(RunningSubjoins, "choose", lambda *_: {})
            add(other, group)
        assert list(one.graph.index) == list(other.graph.index)


def test_names_and_the_order_of_the_text_do_not_decide() -> None:
    found = topology()
    add(found, "?b :q ?c . ?a :p ?b", "?z :q ?u . ?y :p ?z . ?x :a ?y", "?k :p ?l . ?l :q ?m")
    assert joins(found) == 2


def test_patterns_that_are_alike_are_told_apart_by_how_they_hang_together() -> None:
    found = topology()
    add(found, "?x :p ?y . ?y :p ?z", "?x :p ?y . ?x :p ?z")
    assert joins(found) == 2
    add(found, "?w :a ?x . ?x :p ?y . ?y :p ?z", "?w :b ?x . ?x :p ?y . ?x :p ?z")
    assert joins(found) == 4


def test_what_is_measured_decides() -> None:
    found = topology()
    add(found, *(f"?x :{p} ?y . ?y :z{p} ?z" for p in "abc"))
    rows = {"a": 900, "b": 900, "c": 10}
    matches = next(n for n, node in found.graph.nodes.items() if not node.inputs)
    for at, member in enumerate(found.graph.nodes[matches].members.living_numbers()):
        name = str(found.graph.nodes[matches].members[member].constants[1])[-2]
        found.sharing.flows.counts[matches, at] = rows.get(name, 500), 1000
    add(found, "?x :a ?y . ?y :b ?z . ?z :c ?u")
    (own,) = found.sharing.journal.kept.orders.values()
    chosen, other = own
    assert chosen.order.startswith("((?y <http://e/b> ?z, ?z <http://e/c> ?u)"), own
    assert chosen.chosen
    assert chosen.cost < other.cost / 2


Q4 = "?u{0} :knows :u{0} . ?u{0} :made ?p . ?p :tag ?t . ?o :tag ?t . ?v :made ?o"
SIDES = ":a{0} :p ?x . ?x :q ?y . ?y :r ?z . ?z :s :b{0}"
FILTERED = "?x :p ?y . ?y :q ?z . ?z :r ?v FILTER(?v > {0})"


@pytest.mark.parametrize("group", [Q4, SIDES, FILTERED])
def test_unmeasured_sub_joins_do_not_run_before_constants_and_conditions(group: str) -> None:
    """Pairs of unrestricted rows may be any number: LSBench Q4 took eight times as long as without
    sharing.
    """
    alone, many = topology(), topology()
    add(alone, group.format(0))
    own = alone.queries["q0"].manner.order
    add(many, *map(group.format, range(10)))
    assert {many.queries[f"q{i}"].manner.order for i in range(10)} == {own}


def test_measured_sub_joins_may_run_before_constants() -> None:
    found = topology()
    add(found, "?y :q ?z . ?z :s ?k", *(f"?x :{p} ?y . ?y :z{p} ?z" for p in "pq"))
    for number, node in found.graph.nodes.items():
        for member in node.members.living_numbers():
            # a join of few rows, of two parts with many
            found.sharing.flows.counts[number, member] = 1 if node.inputs else 900, 1000
    add(found, ":a :p ?x . ?x :p ?y . ?y :q ?z . ?z :s ?k")
    orders = found.sharing.journal.kept.orders[f"q{len(found.queries) - 1}"]
    (chosen,) = [one.order for one in orders if one.chosen]
    assert chosen.startswith("(((?y <http://e/q> ?z, ?z <http://e/s> ?k), ")


def test_many_parts_are_joined_greedily_and_what_is_common_once() -> None:
    path = [f"?x{i} :p{i} ?x{i + 1}" for i in range(12)]
    found = topology()
    add(found, *(" . ".join([*path[3:6], *path[6 : 7 + i]]) for i in range(5)))
    before = joins(found)
    add(found, " . ".join(path))
    assert joins(found) <= before + 6, "the join of nine parts runs, three more join it"


def test_what_has_gone_is_joined_no_more() -> None:
    found = topology()
    add(found, *shapes(3))
    for name in list(found.queries):
        found.remove(name)
    add(found, *shapes(1))
    assert joins(found) == 2
    assert not [one for own in found.sharing.journal.kept.orders.values() for one in own]


def test_what_is_known_does_not_grow_with_queries_that_come_and_go() -> None:
    found = topology()
    for i in range(300):
        add(found, f"?x :a{i} ?y . ?y :b{i} ?z . ?z :c ?u")
        found.remove(f"q{len(found.queries) - 1}")
    assert len(found.sharing.orders._joins) + len(found.sharing.orders._parts) < 1100
    assert len(found.sharing.orders._numbers.known) < 1100


def shapes_of_ten(engine: Engine) -> None:
    texts = [
        TEXT.format(f"?x :r{i % 20} ?y . ?y :p ?z . ?z :q :c{i // 20}").replace(
            "WHERE", "# \n WHERE"
        )
        for i in range(200)
    ]
    engine.register_all([QueryRequest(text, f"q{i}") for i, text in enumerate(texts)])


@pytest.mark.long
@pytest.mark.parametrize(("mode", "most"), [("exact", 210), ("relax", 21), ("off", 400)])
def test_rows_of_a_template_that_differ_in_shape_and_constant(
    mode: str, most: int, tmp_path: Path
) -> None:
    lines = [f"<http://e/x{i}> <http://e/r{i}> <http://e/y{i}> {i} .\n" for i in range(20)]
    lines += [f"<http://e/y{i}> <http://e/p> <http://e/z{i % 3}> {i} .\n" for i in range(20)]
    lines += [f"<http://e/z{i % 3}> <http://e/q> <http://e/c{i % 10}> {i} .\n" for i in range(30)]
    (tmp_path / "s.nt").write_text("".join(lines))
    with Engine(spark=False, checkpoint=tmp_path / "c", sharing=mode) as engine:
        engine.stream(STREAM, tmp_path / "s.nt")
        shapes_of_ten(engine)
        engine.start(once=True)
        engine.await_end()
        assert engine._driver is not None
        assert engine._driver.last.results == 400, "each query has a row in two windows"
        found = engine._driver._catalog._topology
        assert found is not None
        assert joins(found) == most


def test_explain_tells_orders_with_what_they_add() -> None:
    found = topology()
    add(found, *shapes(3))
    told = list(show_orders(found.sharing.journal.kept.orders))
    assert told[0] == "orders of joins"
    assert sum(line.endswith(", chosen") for line in told) == 3
    assert any(what.startswith("q0 joins ((") for _, what in found.sharing.journal.kept.log), told
    found.remove("q0")
    assert "q0" not in found.sharing.journal.kept.orders


def drawn(random: Random, parts: int) -> Tree:
    """A random order of all parts."""
    trees: list[Tree] = list(range(parts))
    while len(trees) > 1:
        a, b = (trees.pop(random.randrange(len(trees))) for _ in range(2))
        trees.append((a, b))
    return trees[0]


def test_orders_can_be_forced() -> None:
    random, asked = Random(7), Counter[str]()

    def forced(name: str, number: int, conjunction: Conjunction) -> list[Tree]:
        asked[name] += 1
        return [drawn(random, len(conjunction.parts))]

    found = topology()
    found.sharing.orders.forced = forced
    add(found, *FIG4)
    assert set(asked) == set(found.queries)
    assert parts_of(drawn(random, 4)) != ()


def test_shapes_of_which_each_has_a_constant_of_its_own_share_a_relaxed_sub_join() -> None:
    found = topology(Sharing.RELAX)
    add(found, *(f"?x :r{i} ?y . ?y :p ?z . ?z :q :c{i}" for i in range(30)))
    assert joins(found) == 31
    add(found, "?x :r99 ?y . ?y :p ?z . ?z :q :c99")
    assert joins(found) == 32
    for name in list(found.queries):
        found.remove(name)
    assert not found.graph.nodes
    assert not found.sharing.relaxations.alike


@pytest.mark.parametrize("mode", [Sharing.EXACT, Sharing.RELAX])
def test_planning_one_more_query_costs_the_same_among_ten_times_as_many(mode: Sharing) -> None:
    """Queries that differ in a constant, a condition and a window; calls are counted."""

    def calls_of_one_more(queries: int) -> int:
        found = topology(mode)
        for i in range(queries):
            text = TEXT.format(f"?x :p :c{i} . ?x :q ?y FILTER(?y > {i})")
            text = text.replace("PT4S", f"PT{2 * (i % 5) + 2}S")
            found.add(f"q{i}", optimize(translate(parse(text), text=text)), MIN)
        found.seal()
        one_more = TEXT.format("?x :p :new . ?x :q ?y FILTER(?y > 7)")
        query = optimize(translate(parse(one_more), text=one_more))

        def plan() -> None:
            found.add("one more", query, MIN)
            found.install()

        return calls(plan)

    few, many = calls_of_one_more(40), calls_of_one_more(400)
    assert many < 1.2 * few, (few, many)
