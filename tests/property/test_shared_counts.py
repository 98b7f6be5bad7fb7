"""Joins over count windows of any length are one, and each query has what it has alone.

Few triples are told again and again, some at one instant, some in disorder, while queries come and
go, in each mode of sharing and in several on one checkpoint, beside the naive reference and runs of
their own (``coming``). What is shared is counted, and that all rows below a query's end have one
axis of numbers. 4 sets and 6 of CQL; ``LEVADA_CASES`` is another number of each, of up to 12
queries.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from levada.core.event_time import MIN
from levada.core.stream_facts import StreamFacts
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.execution import steps as s
from levada.plan.execution.plan import Plan
from levada.plan.optimizer.pipeline import optimize
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.topology.topology import Topology
from support.dynamic_queries import MODES, PHASES, Coming, World, check, comings, counters
from support.generators.case import CaseQuery
from support.generators.cql import SCHEMAS
from support.generators.cql_sketches import OUTPUTS as CQL_OUTPUTS
from support.generators.cql_sketches import VALUES, CqlSketch
from support.generators.elements import elements, rows
from support.generators.sketches import OUTPUTS, STREAM, Sketch, differing, others
from support.generators.windows import Clause
from support.query_dsl import at

SETS = int(os.environ.get("LEVADA_CASES", "0"))
MOST = 12 if SETS else 5
"""The most queries of a set."""
pytestmark = pytest.mark.timeout(0)

JOINS = (
    ("?x :q ?y", "?y :q :c"),
    (":a :q ?y", "?y :p ?v"),
    ("?x :q :b", "?x :p ?v", "?x :r ?s"),
    ("?x :q ?y", "?y :q ?x"),
    ("?x :q ?y", "?x :q ?z"),
    (":a ?x :b", "?y ?x ?v"),
)
TRIPLES = (
    ":a :q :b", ":b :q :a", ":a :q :c", ":b :q :b", ":a :p 1", ":b :p 2", ":a :p 5", ':a :r "ab"',
)  # fmt: skip
OPTIONS: tuple[dict[str, Any], ...] = (
    {}, {}, {}, {"t0": 500}, {"t0": 1300}, {"report": "periodic:700ms"}, {"report": "nonempty"},
)  # fmt: skip
CONDITIONS = ("{0}.v > 1.5", "{0}.v Between 1.0 And 3.0", "{0}.k <> 2", "{0}.k In (1, 2)")
clauses = st.integers(1, 9).map(lambda n: Clause("count", count=n))
mixed_modes = st.lists(st.sampled_from(MODES), min_size=PHASES + 1, max_size=PHASES + 1)
latenesses = st.sampled_from((0, 0, 1500))


@st.composite
def sets(draw: st.DrawFn) -> list[CaseQuery]:
    """Queries over one join that differ in how many triples their windows hold, and in more."""
    first, found = Sketch(draw(st.sampled_from(JOINS)), shown=(0, 1, 2)), []
    for _ in range(draw(st.integers(2, MOST))):
        one = draw(differing(first)) if draw(st.integers(0, 2)) == 0 else first
        if draw(st.booleans()):
            one = replace(one, patterns=tuple(draw(others(p)) for p in one.patterns))
        output, options = draw(st.sampled_from(OUTPUTS)), draw(st.sampled_from(OPTIONS))
        form = draw(st.sampled_from(("select", "select", "distinct", "count")))
        one = replace(one, output=output, options=options, form=form, second=None)
        found.append(replace(one, clause=draw(clauses)))
    return [sketch.query(f"q{i}") for i, sketch in enumerate(found)]


@st.composite
def cql_sets(draw: st.DrawFn) -> list[CaseQuery]:
    """The same of a stream of tuples with itself."""
    tables, found = draw(st.sampled_from((("A", "A"), ("A", "A", "A")))), []
    for _ in range(draw(st.integers(2, MOST))):
        where = st.tuples(st.integers(0, len(tables) - 1), st.sampled_from(CONDITIONS))
        told = tuple(draw(st.lists(where, max_size=2)))
        output = draw(st.sampled_from([*CQL_OUTPUTS]))
        form = draw(st.sampled_from(("select", "select", "distinct", "group")))
        found.append(CqlSketch(tables, (draw(clauses),) * len(tables), told, output, form))
    return [sketch.query(f"q{i}") for i, sketch in enumerate(found)]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """One stream of few triples."""
    lateness = draw(latenesses)
    told = tuple(at(0, triple).triples[0] for triple in TRIPLES)
    stream = draw(elements(lateness=lateness, least=8, triples=told))
    return World({STREAM: stream}, {STREAM: _cuts(draw, len(stream))}, lateness)


@st.composite
def tuple_worlds(draw: st.DrawFn) -> World:
    """One stream of tuples."""
    lateness = draw(latenesses)
    values = st.tuples(*(VALUES[kind] for kind in SCHEMAS["A"].values()))
    stream = draw(rows(values, lateness=lateness, base=0, gap=False))
    return World({"A": stream}, {"A": _cuts(draw, len(stream))}, lateness, {}, {"A": SCHEMAS["A"]})


def _cuts(draw: st.DrawFn, size: int) -> list[int]:
    return sorted(draw(st.integers(0, size)) for _ in range(PHASES - 1))


def judge(
    queries: st.SearchStrategy[list[CaseQuery]], worlds: st.SearchStrategy[World], number: int
) -> Mapping[str, Counter[str]]:
    """Judges so many sets in all modes; what is shared."""
    shared = counters()

    @settings(
        max_examples=SETS or number,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(comings(queries), worlds, mixed_modes, st.integers(0, 9))
    def each(coming: Sequence[Coming], world: World, mixed: Sequence[str], alone: int) -> None:
        check(coming, world, shared, alone, mixed)

    each()
    print(shared)
    return shared


@pytest.mark.long
def test_each_has_what_it_has_alone() -> None:
    shared = judge(sets(), worlds(), 4)
    assert shared["relax"]["there"] < shared["exact"]["there"], f"joins are shared: {shared}"
    assert not shared["exact"]["picked"] + shared["containment"]["picked"]


@pytest.mark.long
def test_each_has_in_cql_what_it_has_alone() -> None:
    assert judge(cql_sets(), tuple_worlds(), 6)["relax"]["picked"]


def counted(group: str, *counts: int, tail: str = "") -> Topology:
    """Queries with windows of so many triples."""
    topology = Topology({STREAM: StreamFacts()}, (), Sharing.RELAX)
    for n in counts:
        text = (
            f"PREFIX : <http://e/> SELECT ?x FROM NAMED WINDOW :w ON <{STREAM}> [TRIPLES {n}] "
            f"WHERE {{ WINDOW :w {{ {group} }} {tail} }}"
        )
        topology.add(f"q{n}{tail}", optimize(translate(parse(text), text=text)), MIN)
    return topology


def axes(plan: Plan, number: int) -> Iterator[int]:
    """The nodes that number the rows below one."""
    node = plan.nodes[number]
    if isinstance(node.step, s.Numbered):
        yield number
        return
    for below in node.inputs:
        yield from axes(plan, below)


def test_windows_of_a_hundred_lengths_are_one_join_whose_rows_have_one_axis() -> None:
    topology = counted("?x :p :c . ?x :q ?z", *range(1, 101))
    for n in (5, 7):  # who reads more of the rows has the same numbers
        topology.add(*_filtered(n), MIN)
    plan = topology.seal()
    joins = [node for node in plan.nodes.values() if isinstance(node.step, s.Join)]
    relaxed = [node for node in joins if node.step.relaxed]
    assert len(relaxed) == 1
    assert len({axis for node in relaxed for axis in axes(plan, node.id)}) == 1
    for node in plan.nodes.values():
        if isinstance(node.step, s.Narrow):
            assert {*axes(plan, node.inputs[0])} == {*axes(plan, node.inputs[1])}


def _filtered(n: int) -> tuple[str, Any]:
    text = (
        f"PREFIX : <http://e/> SELECT ?x ?z FROM NAMED WINDOW :w ON <{STREAM}> [TRIPLES {n}] "
        "WHERE { WINDOW :w { ?x :p :c . ?x :q ?z FILTER(?z > 3) } }"
    )
    return f"f{n}", optimize(translate(parse(text), text=text))


def test_a_window_reaches_as_far_as_the_longest_of_those_that_are_there() -> None:
    topology = counted("?x :p :c . ?x :q ?z", 10, 1000, 100)

    def reach() -> set[int]:
        nodes = topology.seal().nodes.values()
        kinds = s.Numbered | s.Join
        return {int(n.windows.range[-1].max()) for n in nodes if isinstance(n.step, kinds)}

    assert max(reach()) == 1000
    topology.remove("q1000")
    assert max(reach()) == 100


def test_an_occurrence_goes_on_in_a_long_window_and_begins_anew_in_a_short_one() -> None:
    """The same triples come again when the short windows have lost them, and the long ones not."""
    sketches = [
        Sketch(("?x :q ?y", "?y :q ?z"), clause=Clause("count", count=n), output=output, shown=(0,))
        for n in (2, 3, 5, 40)
        for output in OUTPUTS
    ]
    found = [Coming(sketch.query(f"q{i}"), i % PHASES) for i, sketch in enumerate(sketches)]
    other = [":a :p 1", ":b :p 2", ":c :p 5"]
    told = [":a :q :b . :b :q :a", *other, ":a :q :b", ":b :q :a", ":a :q :b", *other, *other]
    stream = [at(200 * (i // 2), triple) for i, triple in enumerate(told * 3)]
    shared = counters()
    check(found, World({STREAM: stream}, {STREAM: (9, 20)}), shared)
    assert shared["relax"]["there"] < shared["exact"]["there"]
