"""The schema's closure, and what of an ontology is refused."""

from __future__ import annotations

import pytest

from levada.core.rdf_terms import Blank, Iri, Literal, Term
from levada.errors import UsageError
from levada.plan.logical.ontology_schema import (
    DOMAIN,
    EQUAL_CLASS,
    EQUAL_PROPERTY,
    INVERSE,
    RANGE,
    SAME,
    SUB_CLASS,
    SUB_PROPERTY,
    SYMMETRIC,
    TRANSITIVE,
    TYPE,
    Regime,
    Schema,
    Typing,
    regime_of,
)

A, B, C, D = (Iri(f"e:{c}") for c in "ABCD")
P, Q, R, S = (Iri(f"e:{p}") for p in "pqrs")
Statement = tuple[Term, Term, Term]


def schema(*statements: Statement, regime: Regime = Regime.OWL) -> Schema:
    return Schema.from_triples(statements, regime)


def test_classes_are_closed_along_cycles() -> None:
    found = schema((A, SUB_CLASS, B), (B, SUB_CLASS, C), (C, SUB_CLASS, B), (D, SUB_CLASS, A))
    assert found.superclasses(A) == {A, B, C}
    assert found.superclasses(C) == {B, C}
    assert found.subclasses(B) == {A, B, C, D}
    assert found.superclasses(Iri("e:other")) == {Iri("e:other")}


def test_properties_turn_and_turn_back() -> None:
    found = schema(
        (P, SUB_PROPERTY, Q), (Q, INVERSE, R), (R, SUB_PROPERTY, S), (S, TYPE, SYMMETRIC)
    )
    straight, turned, twice = (False, False), (True, True), (False, True)
    assert found.superproperties(P) == {
        (P, *straight),
        (Q, *straight),
        (R, *turned),
        (S, *turned),
        (S, *twice),
    }
    assert found.subproperties(Q) == {(Q, *straight), (P, *straight), (R, *turned)}


def test_domains_and_ranges_are_inherited_along_both_hierarchies_and_turned() -> None:
    found = schema(
        (P, SUB_PROPERTY, Q), (Q, DOMAIN, A), (A, SUB_CLASS, B), (R, INVERSE, P), (P, RANGE, C)
    )
    assert set(found.typings[B]) == {
        Typing(P, False, False),
        Typing(Q, False, False),
        Typing(R, True, True),
    }
    assert set(found.typings[C]) == {Typing(P, True, True), Typing(R, False, True)}


def test_rdfs_knows_nothing_of_owl() -> None:
    said = [
        (P, INVERSE, Q),
        (A, EQUAL_CLASS, B),
        (P, TYPE, TRANSITIVE),
        (A, SAME, B),
        (P, EQUAL_PROPERTY, Q),
    ]
    found = schema(*said, regime=Regime.RDFS)
    assert found.superclasses(A) == {A} and found.superproperties(P) == {(P, False, False)}
    assert not found.transitive and not found.alike
    owl = schema(*said)
    assert owl.superclasses(A) == {A, B} == owl.superclasses(B)
    assert owl.superproperties(P) == {
        (p, turned, turned) for p in (P, Q) for turned in (False, True)
    }
    assert owl.transitive == {P}


def test_what_is_the_same_shares_all_that_is_said() -> None:
    found = schema(
        (A, SAME, B),
        (C, SAME, B),
        (B, SUB_CLASS, D),
        (P, SAME, Q),
        (Q, DOMAIN, A),
        (D, SAME, Literal("d")),
    )
    assert found.alike == ((A, B, C), (P, Q))
    assert found.superclasses(C) == {A, B, C, D}
    assert {typing.property for typing in found.typings[D]} == {P, Q}
    assert found.same_as(B) == (B, A, C) and found.same_as(D) == (D,)


def test_blank_nodes_lie_between_but_are_no_predicates() -> None:
    found = schema(
        (P, SUB_PROPERTY, Blank("x")), (Blank("x"), SUB_PROPERTY, Q), (A, SUB_CLASS, Blank("c"))
    )
    assert (Q, False, False) in found.superproperties(P)
    assert found.subproperties(Q) == {(Q, False, False), (P, False, False)}
    assert Blank("c") in found.superclasses(A)


@pytest.mark.parametrize(
    "statement",
    [
        (P, SUB_PROPERTY, TYPE),
        (SUB_CLASS, SUB_PROPERTY, P),
        (TYPE, RANGE, A),
        (SAME, INVERSE, P),
        (P, SAME, DOMAIN),
        (P, EQUAL_PROPERTY, RANGE),
    ],
)
def test_an_ontology_about_the_vocabulary_itself_is_refused(statement: Statement) -> None:
    with pytest.raises(UsageError, match="which is not supported"):
        schema(statement)


@pytest.mark.parametrize(
    "statement", [(A, SUB_CLASS, TRANSITIVE), (P, RANGE, SYMMETRIC), (A, SAME, TRANSITIVE)]
)
def test_other_ways_to_say_that_a_property_is_transitive_are_refused(statement: Statement) -> None:
    with pytest.raises(UsageError, match="has sub-classes of"):
        schema(statement)
    if statement[1] != SAME:
        schema(statement, regime=Regime.RDFS)  # where there are no transitive properties


def test_an_unknown_regime_names_the_known() -> None:
    with pytest.raises(UsageError) as caught:
        regime_of("rdf")
    assert caught.value.message == "There is no entailment rdf." and "rdfs" in caught.value.hint
