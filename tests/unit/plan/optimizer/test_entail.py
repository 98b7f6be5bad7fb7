"""``entail_patterns``: what runs where entailment is asked for, and where it is not."""

from __future__ import annotations

from pairs import asked, check_same

from levada.core.rdf_terms import Iri
from levada.plan.logical.nodes import Entailed
from levada.plan.logical.ontology_schema import SUB_PROPERTY, Regime, Schema
from levada.plan.logical.traversal import level
from levada.plan.optimizer.pipeline import optimize
from levada.plan.optimizer.rule import Context
from levada.plan.optimizer.rules.entailment import entail_patterns

GROUP = "WINDOW :w { ?s :p ?v . ?s :q ?x }"
P, Q = Iri("http://e/p"), Iri("http://e/q")
BELOW = Context(Schema.from_triples([(P, SUB_PROPERTY, Q)], Regime.RDFS))


def test_without_a_schema_patterns_are_what_they_say() -> None:
    check_same(asked(GROUP), entail_patterns)


def test_a_schema_of_which_nothing_follows_changes_nothing() -> None:
    query = asked("WINDOW :w { ?s :p ?v . ?s :r ?x }")
    assert entail_patterns(query, BELOW) is query


def test_the_pattern_of_a_super_property_has_alternatives_and_comes_first() -> None:
    query = asked(GROUP)
    found = [n for n in level(entail_patterns(query, BELOW).pattern) if isinstance(n, Entailed)]
    assert [[str(a.pattern.predicate) for a in n.alternatives] for n in found] == [
        ["<http://e/q>", "<http://e/p>"]
    ]
    (flat,) = [n for n in level(optimize(query, BELOW).pattern) if hasattr(n, "parts")]
    assert found[0] in flat.parts, "the conjunction has what entailment made"
