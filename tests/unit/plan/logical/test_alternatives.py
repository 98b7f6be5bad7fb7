"""The alternatives of single patterns, as text: ``pattern | what it binds``."""

from __future__ import annotations

from levada.core.expressions import Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Iri, Literal, Term
from levada.plan.logical.ontology_schema import (
    DOMAIN,
    INVERSE,
    RANGE,
    SAME,
    SUB_CLASS,
    SUB_PROPERTY,
    TYPE,
    Regime,
    Schema,
)
from levada.plan.optimizer.rules.entailment import alternatives

X, Y, P = Var("x"), Var("y"), Var("p")
A, B = Iri("A"), Iri("B")
p, q = Iri("p"), Iri("q")


def _word(term: Var | Term) -> str:
    if isinstance(term, Var):
        return f"?{term.name}"
    return "a" if term == TYPE else "sub" if term == SUB_CLASS else str(term).strip("<>")


def shown(goal: TriplePattern, schema: Schema, *, static: bool = False) -> set[str]:
    found = set()
    for way in alternatives(goal, schema, static=static):
        binds = "".join(f" | {name}={_word(value)}" for name, value in way.binds)
        found.add(
            " ".join(map(_word, way.pattern.positions)) + binds + " | no literal" * way.resource
        )
    return found


def test_a_class_is_had_by_sub_classes_domains_and_ranges() -> None:
    schema = Schema.from_triples([(A, SUB_CLASS, B), (p, DOMAIN, A), (q, RANGE, B)], Regime.RDFS)
    assert shown(TriplePattern(X, TYPE, B), schema) == {
        "?x a B",
        "?x a A",
        "?x p ?..o",
        "?..s q ?x | no literal",
    }
    assert shown(TriplePattern(X, TYPE, A), schema) == {"?x a A", "?x p ?..o"}
    assert shown(TriplePattern(X, TYPE, Iri("C")), schema) == {"?x a C"}


def test_a_variable_class_gets_the_class_of_each_alternative() -> None:
    schema = Schema.from_triples([(A, SUB_CLASS, B), (p, RANGE, A)], Regime.RDFS)
    assert shown(TriplePattern(X, TYPE, Y), schema) == {
        "?x a ?y", "?x a A | y=B", "?..s p ?x | y=A | no literal", "?..s p ?x | y=B | no literal",
    }  # fmt: skip


def test_a_variable_predicate_gets_all_that_follows_from_any_property() -> None:
    schema = Schema.from_triples([(p, SUB_PROPERTY, q), (q, DOMAIN, A)], Regime.RDFS)
    assert shown(TriplePattern(X, P, Y), schema) == {
        "?x ?p ?y", "?x p ?y | p=q", "?x p ?..o | p=a | y=A", "?x q ?..o | p=a | y=A",
    }  # fmt: skip
    assert shown(TriplePattern(X, P, A), schema) == {
        "?x ?p A",
        "?x p A | p=q",
        "?x p ?..o | p=a",
        "?x q ?..o | p=a",
    }


def test_constants_go_to_their_place_in_the_explicit_triple() -> None:
    schema = Schema.from_triples([(p, INVERSE, q)], Regime.OWL)
    a, b = Iri("a1"), Iri("b1")
    assert shown(TriplePattern(a, q, X), schema) == {"a1 q ?x", "?x p a1"}
    assert shown(TriplePattern(a, q, b), schema) == {"a1 q b1", "b1 p a1"}
    assert shown(TriplePattern(X, q, Literal("l")), schema) == {
        '?x q "l"'
    }  # no literal is a subject
    assert shown(TriplePattern(X, q, Y), schema) == {"?x q ?y", "?y p ?x | no literal"}


def test_a_variable_that_stands_twice_is_one_value() -> None:
    schema = Schema.from_triples([(A, SUB_CLASS, B), (p, RANGE, A), (p, INVERSE, q)], Regime.OWL)
    assert shown(TriplePattern(X, TYPE, X), schema) == {
        "?x a ?x", "B a A | x=B", "?..s p A | x=A", "?..s p B | x=B", "A q ?..o | x=A | no literal",
        "B q ?..o | x=B | no literal",
    }  # fmt: skip
    assert shown(TriplePattern(X, q, X), schema) == {"?x q ?x", "?x p ?x | no literal"}
    assert "p p ?..o | p=q" not in shown(TriplePattern(P, P, Y), schema)


def test_terms_that_are_the_same_stand_for_a_constant() -> None:
    schema = Schema.from_triples(
        [(Iri("a1"), SAME, Iri("a2")), (A, SAME, B), (p, SAME, q)], Regime.OWL
    )
    assert shown(TriplePattern(Iri("a1"), q, X), schema) == {
        "a1 q ?x",
        "a2 q ?x",
        "a1 p ?x",
        "a2 p ?x",
    }
    assert shown(TriplePattern(X, TYPE, B), schema) == {"?x a B", "?x a A"}


def test_in_static_data_classes_are_below_themselves() -> None:
    schema = Schema.from_triples([(p, DOMAIN, A)], Regime.RDFS)
    goal = TriplePattern(X, SUB_CLASS, Y)
    assert shown(goal, schema) == {"?x sub ?y"}
    assert shown(goal, schema, static=True) == {
        "?x sub ?y", "?x sub ?..o | y=?x", "?..s sub ?x | y=?x | no literal",
        "?..s a ?x | y=?x | no literal",
        "?..s p ?..o | x=A | y=A",
    }  # fmt: skip
    assert "?..s p ?..o" in shown(TriplePattern(A, SUB_CLASS, A), schema, static=True)
