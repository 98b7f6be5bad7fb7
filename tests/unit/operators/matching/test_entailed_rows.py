"""Rows of entailed patterns against their twin: the alternatives matched triple by triple in
Python.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.connectors.ingest.parse.ntriples import parse
from levada.core.event_time import MIN, Window, WindowKind
from levada.core.expressions import Var
from levada.core.query_model import Form, Output, StreamWindow, TriplePattern
from levada.core.rdf_terms import Term, parse_term
from levada.core.stream_facts import StreamFacts
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.matching.pattern_table import patterns_of
from levada.operators.matching.scan_rows import match_
from levada.operators.matching.slot_columns import Chunk
from levada.plan.execution import steps as s
from levada.plan.execution.plan import Plan
from levada.plan.logical.nodes import Bgp, Entailed, InWindow, Query
from levada.plan.logical.ontology_schema import Regime, Schema
from levada.plan.optimizer.rules.entailment import entail
from levada.plan.topology.topology import Topology
from support.generators.entailment import ontologies
from support.generators.vocabulary import iri

TERMS = (*(iri(t) for t in "abcdKLM"), '"5"^^<http://www.w3.org/2001/XMLSchema#integer>', "_:n")
PREDICATES = (*(iri(p) for p in "pqrtuw"), "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>")
WINDOW = StreamWindow("e:w", "e:s", Window(WindowKind.RANGE, range=1000))
Triple = tuple[str, str, str]
GOALS = st.tuples(
    st.sampled_from(("?x", "?x", iri("a"), iri("b"))),
    st.sampled_from(("?p", *PREDICATES)),
    st.sampled_from(("?y", "?y", "?x", iri("c"), iri("K"))),
)


def pattern_of(goal: Triple) -> TriplePattern:
    return TriplePattern(*(Var(t[1:]) if t.startswith("?") else parse_term(t) for t in goal))


def plan_of(node: Entailed | Bgp) -> Plan:
    """A plan that shows all variables of a pattern."""
    pattern = node.pattern if isinstance(node, Entailed) else node.patterns[0]
    names = tuple(dict.fromkeys(t.name for t in pattern.positions if isinstance(t, Var)))
    topology = Topology({"e:s": StreamFacts()})
    topology.add("q", Query(Form.SELECT, node, names, (WINDOW,), Output.RSTREAM), MIN)
    return topology.seal()


def twin(node: Entailed, triples: list[Triple]) -> Iterator[tuple[str, ...]]:
    """The rows that the alternatives give, spread over what is the same."""
    names = dict.fromkeys(t.name for t in node.pattern.positions if isinstance(t, Var))
    ends = {t.name for t in (node.pattern.subject, node.pattern.object) if isinstance(t, Var)}
    groups = {str(term): [str(t) for t in group] for group in node.alike for term in group}
    for way, triple in product(node.alternatives, triples):
        bound: dict[str, str] = {}
        given_ = zip(way.pattern.positions, triple, strict=True)
        if any(
            (bound.setdefault(t.name, v) if isinstance(t, Var) else str(t)) != v for t, v in given_
        ):
            continue
        if way.resource and triple[2].startswith('"'):
            continue
        fixed = {name: str(value) for name, value in way.binds if not isinstance(value, Var)}
        bound.update(
            {name: bound[value.name] for name, value in way.binds if isinstance(value, Var)},
            **fixed,
        )
        values = [
            groups.get(bound[name], [bound[name]])
            if name in ends and name not in fixed
            else [bound[name]]
            for name in names
        ]
        yield from product(*values)


@settings(max_examples=60, deadline=None)
@given(
    ontologies("owl"),
    GOALS,
    st.lists(
        st.tuples(st.sampled_from(TERMS[:7]), st.sampled_from(PREDICATES), st.sampled_from(TERMS)),
        max_size=12,
    ),
)
def test_rows_are_those_of_the_alternatives(
    said: tuple[str, ...], goal: Triple, triples: list[Triple]
) -> None:
    schema = Schema.from_triples([tuple(map(parse_term, t.split(" "))) for t in said], Regime.OWL)  # type: ignore[misc]
    query = Query(Form.SELECT, Bgp(InWindow(0), (pattern_of(goal),)), (), (WINDOW,), Output.RSTREAM)
    for node in _entailed(entail(query, schema).pattern):
        pool = TermLookup(7)
        plan = plan_of(node)
        nodes = [plan.nodes[n] for n in plan.order if isinstance(plan.nodes[n].step, s.Entailed)]
        patterns = patterns_of(nodes, [np.ones(1, bool)], 7)
        assert patterns is not None
        text = "".join(f"{a} {b} {c} .\n" for a, b, c in triples)
        parsed = parse(text.encode(), quads=False, timed=False, seed=7, document=1)
        own = [
            tuple(parsed.text(c, i) for c in (parsed.s, parsed.p, parsed.o))
            for i in range(parsed.n)
        ]
        found: Counter[tuple[str | None, ...]] = Counter()
        for at, frame in match_(patterns, Chunk(parsed, np.arange(parsed.n), pool)):
            slots = range(len(at.layout.slots))
            texts = [pool.texts(frame[f"x{i}"], frame[f"y{i}"]).to_list() for i in slots]
            found.update(zip(*texts, strict=True) if texts else [()] * frame.n)
        assert found == Counter(twin(node, own))  # type: ignore[arg-type]


def _entailed(node: object) -> Iterator[Entailed]:
    """The entailed patterns of a tree."""
    if isinstance(node, Entailed):
        yield node
    for name in ("left", "right", "child"):
        if hasattr(node, name):
            yield from _entailed(getattr(node, name))


def test_matches_are_counted_under_the_pattern() -> None:
    sub = parse_term("<http://www.w3.org/2000/01/rdf-schema#subClassOf>")
    classes: list[Term] = [parse_term(iri(c)) for c in "KLM"]
    schema = Schema.from_triples(
        [(classes[0], sub, classes[1]), (classes[1], sub, classes[2])], Regime.RDFS
    )
    query = Query(
        Form.SELECT,
        Bgp(InWindow(0), (pattern_of(("?x", PREDICATES[-1], iri("M"))),)),
        (),
        (WINDOW,),
        Output.RSTREAM,
    )
    (node,) = _entailed(entail(query, schema).pattern)
    plan = plan_of(node)
    nodes = [plan.nodes[n] for n in plan.order if isinstance(plan.nodes[n].step, s.Entailed)]
    patterns = patterns_of(nodes, [np.ones(1, bool)], 7)
    assert patterns is not None and patterns.table.n == 3
    text = "".join(
        f"{iri(x)} {PREDICATES[-1]} {iri(c)} .\n" for x, c in (("a", "K"), ("b", "L"), ("c", "N"))
    )
    parsed = parse(text.encode(), quads=False, timed=False, seed=7, document=1)
    hits: Counter[str] = Counter()
    assert [f.n for _, f in match_(patterns, Chunk(parsed, np.arange(3), TermLookup(7), hits))] == [
        2
    ]
    assert hits == {f"?a {PREDICATES[-1]} {iri('M')}, entailed": 2}


@pytest.mark.parametrize("size", [1, 2, 300])
def test_a_class_with_many_sub_classes_is_one_member(size: int) -> None:
    sub, top = (
        parse_term("<http://www.w3.org/2000/01/rdf-schema#subClassOf>"),
        parse_term(iri("Top")),
    )
    schema = Schema.from_triples(
        [(parse_term(iri(f"C{i}")), sub, top) for i in range(size)], Regime.RDFS
    )
    query = Query(
        Form.SELECT,
        Bgp(InWindow(0), (pattern_of(("?x", PREDICATES[-1], iri("Top"))),)),
        (),
        (WINDOW,),
        Output.RSTREAM,
    )
    (node,) = _entailed(entail(query, schema).pattern)
    plan = plan_of(node)
    (first,) = [plan.nodes[n] for n in plan.order if isinstance(plan.nodes[n].step, s.Entailed)]
    assert isinstance(first.step, s.Entailed)
    assert (
        len(first.members) == 1
        and len(first.step.forms) == 1
        and len(first.members[0].ways) == size + 1
    )
