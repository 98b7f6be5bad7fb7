"""What operators are charged is attributed to the queries that stand on them."""

from __future__ import annotations

import numpy as np
import pytest

from levada.core.event_time import MIN
from levada.core.expression_budget import Charge
from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.execution import steps as s
from levada.plan.execution.plan import Plan, gather_up, queries_of_member
from levada.plan.execution.query_charges import charge_members, find_heaviest_query, members_below
from levada.plan.topology.topology import Topology

STREAM = "http://e/s"
LONG = " ".join(f"BIND(?y + {i} AS ?z{i})" for i in range(200))
QUERIES = {
    "one": "{ ?x :p ?y . ?x :q ?z }",
    "two": "{ ?x :p ?y . ?x :q ?z FILTER(?z > 2) }",
    "three": "{ ?x :p ?y . ?x :q ?z FILTER(?z > 3) }",
    "twice": "{ { ?x :p ?y } UNION { ?x :p ?y FILTER(?y > 1) } UNION { ?x :p ?y } }",
    "apart": "{ ?x :r ?y }",
    "long": f"{{ ?x :l ?y {LONG} }}",
}


@pytest.fixture(scope="module")
def plan() -> Plan:
    topology = Topology({STREAM: StreamFacts()})
    for name, group in QUERIES.items():
        head = "PREFIX : <http://e/> SELECT * FROM NAMED WINDOW :w ON"
        text = f"{head} <{STREAM}> [RANGE PT4S STEP PT2S] {{ WINDOW :w {group} }}"
        topology.add(name, translate(parse(text), text=text), MIN)
    return topology.seal()


def nodes_of(plan: Plan, name: str, kind: type[s.Step]) -> list[int]:
    query = plan.queries[name]
    below = sorted(members_below(plan, (query.node, query.member)))
    return [node for node, _ in below if isinstance(plan.nodes[node].step, kind)]


def test_whose_finds_the_queries_of_every_member(plan: Plan) -> None:
    for node in plan.order:
        for member in range(len(plan.nodes[node].members)):
            expected = [
                name
                for name, query in plan.queries.items()
                if (node, member) in members_below(plan, (query.node, query.member))
            ]
            assert queries_of_member(plan, node, member) == expected


def test_operators_of_a_query_that_are_each_below_the_limit_are_summed(plan: Plan) -> None:
    extends = nodes_of(plan, "long", s.Extend)
    assert len(extends) == 200
    amount, node, member = find_heaviest_query(plan, [Charge(n, None, 10.0) for n in extends], 1999)
    assert (amount, queries_of_member(plan, node, member)) == (2000, ["long"])
    assert find_heaviest_query(plan, [Charge(n, None, 10.0) for n in extends], 2000) == (
        2000,
        -1,
        -1,
    )


def test_a_member_that_a_query_reads_twice_is_charged_once(plan: Plan) -> None:
    query = plan.queries["twice"]
    ((node, member),) = {
        (n, m)
        for n, m in members_below(plan, (query.node, query.member))
        if not plan.nodes[n].inputs
    }
    charges = [Charge(node, np.eye(len(plan.nodes[node].members))[member], 100.0)]
    up = gather_up(plan, charge_members(plan, charges))
    assert up[query.node][query.member] > 100.0
    assert find_heaviest_query(plan, charges, 99.0)[0] == 100.0
    assert find_heaviest_query(plan, charges, 150.0)[0] <= 150.0


def test_of_a_shared_operator_each_query_has_its_members(plan: Plan) -> None:
    (node,) = set(nodes_of(plan, "two", s.Filter)) & set(nodes_of(plan, "three", s.Filter))
    rows = np.array([10, 90])
    _, at, member = find_heaviest_query(plan, [Charge(node, rows, 1000.0)], 500)
    assert queries_of_member(plan, at, member) == ["three"]


def test_amounts_that_are_divided_add_up(plan: Plan) -> None:
    charges = [Charge(node, None, float(node + 1)) for node in plan.order]
    up = gather_up(plan, charge_members(plan, charges), divided=True)
    parts = {name: up[query.node][query.member] for name, query in plan.queries.items()}
    assert sum(parts.values()) == pytest.approx(sum(charge.amount for charge in charges))
    assert parts["one"] > 0 and parts["two"] == pytest.approx(parts["three"])


def test_nodes_and_members_that_are_gone_are_nobodys(plan: Plan) -> None:
    assert find_heaviest_query(plan, [Charge(10_000, None, 5.0)], 1.0) == (0.0, -1, -1)
    emit = plan.queries["apart"]
    rows = np.zeros(emit.member + 3)
    rows[-1] = 1
    assert find_heaviest_query(plan, [Charge(emit.node, rows, 5.0)], 1.0)[1:] == (-1, -1)
