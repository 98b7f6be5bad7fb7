"""The table of operators and what steps say of themselves, over the plans of queries that reach
each of them.
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator
from dataclasses import fields
from itertools import product
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
import pytest

from levada.core.event_time import MIN
from levada.core.frame import Frame
from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.cql.translate import translate_cql
from levada.language.translate.sparql.translate import translate
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.operator_registry import OPERATORS, evaluate
from levada.operators.rows.constants import identities
from levada.plan.execution import steps as s
from levada.plan.execution.joins import JoinForm
from levada.plan.execution.plan import Plan, PlanNode
from levada.plan.logical.query_options import QueryOptions
from levada.plan.optimizer.pipeline import optimize
from levada.plan.physical import operators as p
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.topology.topology import Topology
from support import user_functions as user_functions  # declares the operator Running
from support.operator_nodes import STREAM, Bench, state

SCHEMA = {"k": "integer", "v": "double"}
STEPPED, SLIDING = "[RANGE PT4S STEP PT2S]", "[RANGE PT4S]"

ONE_STEP = (JoinForm.MULTIWAY, JoinForm.AUTO, JoinForm.REPLICATED)


class Asked(NamedTuple):
    """A query: what the window holds, what is beside it."""

    head: str
    inside: str
    beside: str = ""
    tail: str = ""
    output: str = "RSTREAM"
    window: str = STEPPED


GREATEST = "{ SELECT ?s (MAX(?x) AS ?v) { WINDOW :w { ?s :p ?x } } GROUP BY ?s }"
STATIC = "{ SELECT ?s (COUNT(?n) AS ?c) { ?s :name ?n } GROUP BY ?s }"
SPARQL = [
    Asked("SELECT ?s ?o", "?s :p ?o"),
    Asked("SELECT ?s", "?s :p ?o . ?o :q ?z OPTIONAL { ?s :r ?x }", output="ISTREAM"),
    Asked("SELECT (COUNT(*) AS ?n)", "?s :p ?o FILTER(?o > 1)", window=SLIDING),
    Asked("SELECT DISTINCT ?s", "{ ?s :p ?o } UNION { ?s :q ?o }", tail="ORDER BY ?s"),
    Asked("SELECT (COUNT(DISTINCT ?o) AS ?n)", "?s :p ?o MINUS { ?s :q ?z }"),
    Asked("SELECT ?s", "?s :p ?o", window="[TRIPLES 3]"),
    Asked("SELECT ?s", "?s :p ?o", window="[SESSION PT1S]"),
    Asked("SELECT ?s ?x", "?s :p+ ?x"),
    Asked("SELECT ?s ?v", "?s :p ?v", GREATEST),
    Asked("SELECT ?s ?c", "?s :p ?v", STATIC),
    Asked("SELECT ?s ?c", "?s :p ?v", "MINUS { ?s :name ?n } BIND(?v + 1 AS ?c)"),
]
CQL = [
    "Rstream(Select k, v From S [Range 4 s Slide 2 s] Except Select k, v From S [Rows 3])",
    "Istream(Select k, Count(*) From S [Range 4 s] Group By k)",
    "Istream(Select Distinct k From S [Range 4 s])",
    "Dstream(Select k, v From S [Partition By k Rows 2])",
    "Rstream(Select a.v, b.v As w From S [Now] As a, S [Rows 2] As b)",
    "Register Relation V (k Integer) As Select Distinct k From S [Range 4 s]; "
    "Rstream(Select k From V)",
    "Rstream(Select k, n From Table(Running(Table S Partition By k)) [Now])",
    "Rstream(Select k, Row_Number() Over (Order By v) As n From S [Range 4 s])",
]
STEPS = sorted(get_args(s.Step), key=lambda step: step.__name__)


def sparql(asked: Asked, *, unique: bool) -> Plan:
    """The plan of a query over one window and static data."""
    text = (
        f"PREFIX : <http://e/> REGISTER {asked.output} :q AS {asked.head} "
        f"FROM NAMED WINDOW :w ON <{STREAM}> {asked.window} "
        f"WHERE {{ WINDOW :w {{ {asked.inside} }} {asked.beside} }} {asked.tail}"
    )
    topology = Topology({STREAM: StreamFacts(unique=unique)})
    topology.add("q", optimize(translate(parse(text), QueryOptions(), text=text)), MIN)
    return topology.seal()


def relaxed(
    *windows: str, inside: str = "?s :p :c{} . ?s :q ?z", beside: str = "", output: str = "RSTREAM"
) -> Plan:  # fmt: skip
    """The plan of two queries that differ in a constant of a join, and in their windows."""
    topology = Topology({STREAM: StreamFacts()}, (), Sharing.RELAX)
    for i, window in enumerate(windows):
        text = (
            f"PREFIX : <http://e/> REGISTER {output} :q{i} AS SELECT ?s "
            f"FROM NAMED WINDOW :w ON <{STREAM}> {window} "
            f"WHERE {{ WINDOW :w {{ {inside.format(i)} }} {beside.format(i)} }}"
        )
        topology.add(f"q{i}", optimize(translate(parse(text), QueryOptions(), text=text)), MIN)
    return topology.seal()


def in_one_step(form: JoinForm) -> Plan:
    """The plan of a join of three patterns that is one step, or may be."""
    chain = form is JoinForm.REPLICATED
    topology = Topology({STREAM: StreamFacts()}, joins=form)
    text = (
        f"PREFIX : <http://e/> SELECT ?s FROM NAMED WINDOW :w ON <{STREAM}> {STEPPED} "
        f"WHERE {{ WINDOW :w {{ ?s :p ?o . ?s :q ?z . {'?z' if chain else '?s'} :r ?x }} }}"
    )
    topology.add("q", optimize(translate(parse(text), QueryOptions(), text=text)), MIN)
    return topology.seal()


def in_common(*terms: str) -> Plan:
    """The plan of two joins with a side in common, also for several terms of it."""
    topology = Topology({STREAM: StreamFacts()}, (), Sharing.RELAX)
    for name, o in product("qr", terms or ("?o",)):
        text = (
            f"PREFIX : <http://e/> SELECT ?s FROM NAMED WINDOW :w ON <{STREAM}> {STEPPED} "
            f"WHERE {{ WINDOW :w {{ ?s :p {o} . ?s :{name} ?z }} }}"
        )
        topology.add(
            f"{name} {o}", optimize(translate(parse(text), QueryOptions(), text=text)), MIN
        )
    return topology.seal()


def in_one_window_and_two() -> Plan:
    """The plan of two queries that read patterns in one window and in two."""
    topology = Topology({STREAM: StreamFacts()}, (), Sharing.RELAX)
    for group in (
        "WINDOW :w { ?s :p ?o . ?s :q ?z } BIND(STR(?z) AS ?t)",
        "WINDOW :w { ?s :p ?o } WINDOW :u { ?s :q ?z }",
    ):
        text = (
            f"PREFIX : <http://e/> SELECT * FROM NAMED WINDOW :w ON <{STREAM}> {STEPPED} "
            f"FROM NAMED WINDOW :u ON <{STREAM}> [RANGE PT9S] WHERE {{ {group} }}"
        )
        topology.add(group, optimize(translate(parse(text), QueryOptions(), text=text)), MIN)
    return topology.seal()


def cql(text: str) -> Plan:
    """The plan of a query over one stream of tuples."""
    topology = Topology({"S": StreamFacts(SCHEMA)})
    topology.add("q", optimize(translate_cql(text, {"S": SCHEMA}, QueryOptions())), MIN)
    return topology.seal()


@pytest.fixture(scope="module")
def plans() -> list[Plan]:
    """Triples with and without the promise that none repeats, and tuples."""
    triples = [sparql(query, unique=unique) for query in SPARQL for unique in (False, True)]
    both = [relaxed(STEPPED, STEPPED), relaxed("[TRIPLES 3]", "[TRIPLES 5]")]
    both += [in_common(), in_common(":c0", ":c1"), in_one_window_and_two()]
    both += [relaxed(STEPPED, STEPPED, inside="?s :q ?z", beside="?s :kind :c{}")]
    lengths = [f"[RANGE PT{i}S]" for i in (2, 3)]
    both += [relaxed(*lengths, inside="?s :p ?o . ?s :q ?z", output="ISTREAM")]
    return [*triples, *both, *map(in_one_step, ONE_STEP), *map(cql, CQL)]


def inputs_of(plans: list[Plan]) -> Iterator[tuple[PlanNode, int, PlanNode]]:
    """All inputs of evaluated nodes: node, which input, whose rows."""
    for plan in plans:
        for node in plan.nodes.values():
            for i, producer in enumerate(node.inputs):
                yield node, i, plan.nodes[producer]


def test_every_step_has_one_operator_or_is_read_at_the_intake() -> None:
    assert set(OPERATORS) == set(STEPS) - set(get_args(s.Leaf))
    assert len(set(OPERATORS.values())) == len(OPERATORS)


def test_every_operator_by_names_becomes_a_step_of_its_name() -> None:
    in_the_edges = {"Rename", "Applied"}
    # a Join, a ReportJoin and Changes by names
    over_arrange = {"ArrangedJoin", "StreamJoin", "ArrangedReportJoin", "RangedChanges"}
    named = {o.__name__ for o in get_args(p.Spec)} - in_the_edges
    assert named == {t.__name__ for t in STEPS} - over_arrange


@pytest.mark.parametrize("step", sorted(OPERATORS, key=repr))
def test_operators_have_one_signature(step: type[s.Step]) -> None:
    operator = OPERATORS[step]
    assert list(inspect.signature(operator).parameters) == ["node", "inputs", "env"]
    hints = get_type_hints(operator)
    assert hints.pop("node") == PlanNode[step]  # type: ignore[valid-type]
    assert hints == {"inputs": Inputs, "env": OperatorContext, "return": Frame | None}


def test_these_queries_reach_every_operator(plans: list[Plan]) -> None:
    reached = {type(node.step) for plan in plans for node in plan.nodes.values()}
    assert set(OPERATORS) <= reached


def test_what_is_not_due_has_nothing_to_do_without_rows(plans: list[Plan]) -> None:
    bench = Bench("SELECT ?s", "?s :p ?o")
    for plan in plans:
        for node in plan.nodes.values():
            if type(node.step) in OPERATORS and not node.step.due:
                kept = state()
                none = [None] * len(node.inputs)
                assert evaluate(node, none, bench.env(0, 9000, [100], kept=kept)) is None
                assert not kept.changed


def test_the_intakes_rows_can_wait_for_their_stream(plans: list[Plan]) -> None:
    """Rows that come from the intake have one window, and their node knows which."""
    waiting = 0
    for node, i, producer in inputs_of(plans):
        if node.stage > 0 and producer.stage == 0 and producer.layout.windows:
            (place,) = node.step.row_windows(i, 1) or ()
            assert (node.windows.stream[place] >= 0).all()
            waiting += 1
    assert waiting > len(SPARQL)


def test_rows_have_windows_of_their_nodes_table(plans: list[Plan]) -> None:
    for node, i, _ in inputs_of(plans):
        width = len(node.input_layouts[i].windows)
        places = node.step.row_windows(i, width) if width else None
        if places is not None:
            assert len(set(places)) == width
            assert max(places) < len(node.windows.kind)


def test_a_step_cannot_do_without_inputs_that_it_has(plans: list[Plan]) -> None:
    for plan in plans:
        for node in plan.nodes.values():
            for side in node.step.starving(len(node.inputs)):
                assert side
                assert set(side) <= set(range(len(node.inputs)))


def test_what_a_node_knows_is_worked_out_once_and_not_written(plans: list[Plan]) -> None:
    (node,) = [n for n in plans[10].nodes.values() if isinstance(n.step, s.Select)]
    found = node.compute_once(identities, 7)
    assert node.compute_once(identities, 7) is found
    assert not np.array_equal(node.compute_once(identities, 8), found), (
        "another seed, other identities"
    )
    again: PlanNode[Any] = pickle.loads(pickle.dumps(node))
    assert set(vars(again)) == {field.name for field in fields(PlanNode)}
    assert again.compute_once(identities, 7).tolist() == found.tolist()
