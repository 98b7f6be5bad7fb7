"""Queries that come and go: what a plan holds, and what it costs, follows from those that are
there.
"""

from __future__ import annotations

from unittest.mock import patch

from levada.core.event_time import MIN
from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.encoding.plan_codec import encode_plan
from levada.plan.execution.plan import Plan
from levada.plan.logical.nodes import Query
from levada.plan.logical.query_options import QueryOptions
from levada.plan.topology import catalog_members
from levada.plan.topology.catalog_file import encode_catalog
from levada.plan.topology.topology import Topology

STREAM = "http://e/s"


def query(number: int, window: str = "RANGE PT10S STEP PT5S") -> Query:
    """Queries of one shape."""
    text = (
        f"SELECT ?s ?o FROM NAMED WINDOW <w> ON <{STREAM}> [{window}] WHERE {{ "
        f"WINDOW <w> {{ ?s <http://e/p{number}> ?o }} }}"
    )
    return translate(parse(text), QueryOptions(), text=text)


def topology(*queries: int) -> Topology:
    found = Topology({STREAM: StreamFacts()})
    for number in queries:
        found.add(f"q{number}", query(number), MIN)
    return found


def churn(found: Topology, numbers: range) -> Plan:
    """Each query goes when the next comes."""
    for number in numbers:
        found.add(f"q{number}", query(number), MIN)
        found.remove(f"q{number}")
    return found.seal()


def size(plan: Plan) -> int:
    return sum(len(node.members) for node in plan.nodes.values())


def test_places_do_not_grow_with_queries_that_are_gone() -> None:
    with patch.object(catalog_members, "EMPTY", 10):
        found = topology(-1)
        least, most = size(churn(found, range(20))), size(churn(found, range(20, 500)))
    assert most <= 2 * least
    assert len(found.graph.nodes) <= 12
    (emit,) = [
        n
        for n in found.graph.nodes.values()
        if n.members.index and "q-1" in {m.query for m in n.members.index}
    ]
    assert emit.members[0].query == "q-1", "what stays has the place that it had"


def written(plan: Plan, found: Topology) -> int:
    """The bytes of the files of a plan and its catalog."""
    return len(encode_plan(plan)) + len(encode_catalog(found, {}))


def test_a_gone_member_costs_a_few_bytes() -> None:
    found = topology(-1)
    before = written(found.seal(), found)
    after = written(churn(found, range(400)), found)
    assert after - before < 400 * 300


def test_a_node_goes_with_its_last_member_and_its_number_with_it() -> None:
    found = topology(0)
    before = set(found.seal().nodes)
    found.remove("q0")
    assert not found.graph.nodes and not found.seal().nodes
    found.add("q1", query(1), MIN)
    assert not before & set(found.seal().nodes)


def test_what_is_there_is_shared_whichever_generation_it_is_of() -> None:
    with patch.object(catalog_members, "EMPTY", 1), patch.object(catalog_members, "SHARE", 0):
        found = topology(0)
        churn(found, range(1, 5))
        found.add("new", query(5), MIN)
        found.add("same", query(0, "RANGE PT20S STEP PT5S"), MIN)
        plan = found.seal()
    matches = [n for n in plan.nodes.values() if type(n.step).__name__ == "Match"]
    assert sorted(int(n.alive.sum()) for n in matches) == [1, 1], (
        "q0 and same have one pattern, new has its own"
    )


def test_an_empty_place_shows_a_member_that_is_there() -> None:
    plan = churn(topology(7), range(1, 4))
    for node in plan.nodes.values():
        assert node.alive.tolist()[0] and set(node.members) == {node.members[0]}
        assert len(node.windows.kind.T) == len(node.schedules.of_member) == len(node.members)


def test_members_are_fresh_until_an_epoch_has_had_them() -> None:
    """Two plans can come between two epochs: what is new in the first has had no epoch in the
    second.
    """
    found = topology(0)
    found.seal()
    found.add("q1", query(1), MIN)
    found.seal(1)
    found.add("q2", query(2), MIN)
    third, fourth = found.seal(1), found.seal(3)
    for node in third.nodes.values():
        assert node.fresh.tolist() == [False, True, True]
    assert not any(node.fresh.any() for node in fourth.nodes.values())
