"""Joins whose rows are among another's are picks of it; what is not contained has its own."""

from __future__ import annotations

import pytest

from levada.core.event_time import MIN
from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.execution.sharing_demand import sharing_demand_of
from levada.plan.execution.steps import Join, Pick
from levada.plan.optimizer.pipeline import optimize
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.topology.topology import Topology

STREAM = "http://e/s"
TEXT = """PREFIX : <http://e/> SELECT *
FROM NAMED WINDOW :w ON :s [RANGE PT{}S STEP PT2S] WHERE {{ WINDOW :w {{ {} }} }}"""
JOIN = "?x :p ?v . ?x :q ?z . FILTER({})"


def topology(mode: Sharing = Sharing.CONTAINMENT) -> Topology:
    return Topology({STREAM: StreamFacts()}, (), mode)


def come(found: Topology, name: str, condition: str, seconds: int = 8) -> None:
    group = JOIN.format(condition) if condition else "?x :p :c . ?x :q ?z"
    text = TEXT.format(seconds, group)
    found.add(name, optimize(translate(parse(text), text=text)), MIN)
    found.seal()


def families(found: Topology) -> list[tuple[str, int]]:
    """The joins by their leaders, and how many picks there are of each."""
    told = []
    for number, node in found.graph.nodes.items():
        if isinstance(node.shape.step, Join):
            for member, at in node.members.index.items():
                picks = sum(
                    (number, at) == (other.inputs[0], own.inputs[0])
                    for other in found.graph.nodes.values()
                    if isinstance(other.shape.step, Pick)
                    for own in other.members.index
                )
                told.append((member.query, picks))
    return sorted(told)


def test_what_is_contained_is_picked_and_what_is_not_leads() -> None:
    found = topology()
    come(found, "first", "?v > 5")
    come(found, "less", "?v > 7 && ?v < 9")
    come(found, "equal", "?v > 5")
    come(found, "shorter", "?v > 5", seconds=4)
    come(found, "one", "?v = 6")
    assert families(found) == [("first", 4)], "equal ones are one pick"
    come(found, "more", "?v > 3")
    come(found, "longer", "?v > 5", seconds=12)
    assert families(found) == [("first", 4), ("longer", 1), ("more", 1)], "nothing is widened"


def test_rows_of_a_family_are_its_leader_s() -> None:
    found = topology()
    come(found, "wide", "", seconds=30)
    come(found, "short", "", seconds=4)
    plan = found.seal()
    (wants,) = sharing_demand_of(plan).wanted_terms.rest.values()
    assert len(wants) == 1, "a constant, over two windows"


@pytest.mark.parametrize(
    "condition", ["?v < 7", "?v > 4.99", "?v >= 5", "?v != 7", '?v > "7"', "?v > 1e1"]
)
def test_what_is_not_surely_contained_is_not(condition: str) -> None:
    found = topology()
    come(found, "first", "?v > 5")
    come(found, "other", condition)
    assert all(picks <= 1 for _, picks in families(found))


def test_a_family_ends_with_its_last_query_and_not_with_its_leader() -> None:
    found = topology()
    come(found, "first", "?v > 5")
    come(found, "less", "?v > 7")
    found.remove("first")
    assert families(found) == [("first", 1)]
    come(found, "first", "?v > 3")
    assert families(found) == [("first", 1), ("first'", 1)], "of the same name, another one"
    found.remove("less")
    found.remove("first")
    assert families(found) == []


def test_other_modes_have_no_families() -> None:
    for mode in (Sharing.OFF, Sharing.EXACT, Sharing.RELAX):
        found = topology(mode)
        come(found, "a", "?v > 5")
        come(found, "b", "?v > 7")
        assert {name for name, _ in families(found)} == {""}
