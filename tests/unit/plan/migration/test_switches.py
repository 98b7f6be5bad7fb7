"""Which queries go over to other orders, by what has been measured; what is left of the old one."""

from __future__ import annotations

from levada.core.event_time import MIN
from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.execution.steps import Join
from levada.plan.logical.nodes import Query
from levada.plan.lowering.join_order import Tree, order_of, units_of
from levada.plan.migration.reoptimizer import Reoptimizer, ReorderProposal
from levada.plan.migration.running_migrations import begin, finish, members_to_remove
from levada.plan.optimizer.pipeline import optimize
from levada.plan.sharing.join_orders.order_cost import mask_of
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.topology.topology import Topology

STREAM = "http://e/s"
TEXT = """PREFIX : <http://e/> SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S]
WHERE {{ WINDOW :w {{ {} }} }}"""
CHAIN = "?x :p ?y . ?y :q ?z . ?z :r ?u"


def meant(body: str = CHAIN) -> Query:
    text = TEXT.format(body)
    return optimize(translate(parse(text), text=text))


def topology(*names: str, mode: Sharing = Sharing.EXACT) -> Topology:
    found = Topology({STREAM: StreamFacts()}, (), mode)
    for name in names:
        found.add(name, meant(), MIN)
    found.seal()
    return found


def measure(found: Topology, name: str, rows: dict[int, int]) -> None:
    """Of 1,000 elements so many rows, by bits of parts."""
    (own,) = found.sharing.orders.standing[name]
    for mask, at in own.places.items():
        found.sharing.flows.counts[at] = rows[mask], 1000


FIRST_RARE = {0b001: 10, 0b010: 900, 0b100: 900, 0b011: 10, 0b110: 4000, 0b111: 40}
LAST_RARE = {0b100: 10, 0b010: 900, 0b001: 900, 0b110: 10, 0b011: 4000, 0b111: 40}


def go_over(found: Topology, name: str, better: ReorderProposal) -> None:
    """From the first version to the second one."""
    begun = begin(found, name, meant(), 1000, better.units)
    assert begun is not None
    found.seal()
    finish(found, name)
    found.sharing.orders.forget(name)
    for each in begun.joins:
        found.sharing.orders.record_query(each)
    found.seal()


def tree_of(found: Topology, name: str) -> Tree:
    (own,) = found.sharing.orders.standing[name]
    return own.conjunction.tree


def joins(found: Topology) -> int:
    nodes = (node for node in found.graph.nodes.values() if isinstance(node.shape.step, Join))
    return sum(len(node.members.index) for node in nodes)


def test_rates_that_turn_round_change_the_order() -> None:
    found, looks = topology("q"), Reoptimizer()
    firsts, at = [], []
    for rows in (LAST_RARE, FIRST_RARE, LAST_RARE):
        measure(found, "q", rows)
        for _ in range(4):
            for better in looks.propose(found, lambda name: ""):
                assert better.cost < 0.8 * better.current_cost
                go_over(found, "q", better)
                looks.note_migration("q")
                at.append(looks.looks)
                measure(found, "q", rows)
        tree = tree_of(found, "q")
        assert isinstance(tree, tuple)
        firsts.append(max(map(mask_of, tree), key=int.bit_count))
        assert joins(found) == 2
    assert firsts == [0b110, 0b011, 0b110]
    assert at[1] - at[0] >= 2
    assert at[2] - at[1] >= 4, "who has gone over again and again is asked more seldom"


def test_nothing_is_done_on_a_guess_or_for_little() -> None:
    found, looks = topology("q"), Reoptimizer()
    assert not list(looks.propose(found, lambda name: ""))
    measure(found, "q", dict.fromkeys(FIRST_RARE, 500))
    assert not list(looks.propose(found, lambda name: ""))
    measure(found, "q", {mask: rows // 500 for mask, rows in LAST_RARE.items()})
    assert not list(looks.propose(found, lambda name: "")), "too few rows to be worth it"


def test_queries_that_have_a_join_in_common_go_over_together() -> None:
    found, looks = topology("a", "b"), Reoptimizer()
    assert joins(found) == 2
    measure(found, "a", LAST_RARE)
    names = []
    for better in looks.propose(found, lambda name: ""):
        names.append(better.name)
        go_over(found, better.name, better)
    assert names == ["a", "b"]
    assert joins(found) == 2
    assert tree_of(found, "a") == tree_of(found, "b")


def test_who_shares_a_join_with_one_that_stays_stays_too() -> None:
    found, looks = topology("a", "b"), Reoptimizer()
    measure(found, "a", LAST_RARE)
    assert not list(looks.propose(found, lambda name: "no" if name == "b" else ""))


def test_why_a_query_keeps_its_order_is_told_once() -> None:
    found, looks = topology("q"), Reoptimizer()
    measure(found, "q", LAST_RARE)
    for _ in range(3):
        assert not list(looks.propose(found, lambda name: "it may not"))
    told = [what for _, what in found.sharing.journal.kept.log if "it may not" in what]
    assert len(told) == 1, told


def test_what_goes_with_queries_is_what_nobody_else_uses() -> None:
    found = topology("a", "b")
    alone = members_to_remove(found, ["a"])
    assert all(found.graph.nodes[n].members.uses[own] == 1 for n, own in alone)
    before = len(found.graph.nodes)
    both = members_to_remove(found, ["a", "b"])
    assert len(both) == sum(len(node.members.index) for node in found.graph.nodes.values())
    found.remove("a")
    found.remove("b")
    assert before and not found.graph.nodes


def test_an_order_is_a_text_in_the_plan() -> None:
    units: dict[int, list[Tree]] = {0: [((1, 2), 0)], 3: [(0, 1)]}
    assert units_of(order_of(units)) == {0: (((1, 2), 0),), 3: ((0, 1),)}
    assert (order_of({}), units_of("")) == ("", {})


def asked_of(many: int) -> list[str]:
    """Who is asked at a look whether it may go over, of so many queries of one join."""
    found, asked = topology(*map(str, range(many))), list[str]()
    measure(found, "0", FIRST_RARE)

    def why_not(name: str) -> str:
        asked.append(name)
        return ""

    assert not list(Reoptimizer().propose(found, why_not))
    return asked


def test_a_look_asks_each_of_those_who_share_a_join_once() -> None:
    """Found by a bench: of 1,000 queries each asked all others, for a second."""
    assert len(asked_of(8)) == 8
    assert not asked_of(20), "too many do not go over together"
