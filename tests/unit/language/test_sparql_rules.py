"""What SPARQL forbids beyond its grammar, each rule with a text that keeps it and one that breaks
it.
"""

from __future__ import annotations

import pytest

from levada.errors import QuerySyntaxError, Span
from levada.language import parse


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { ?s ?p ?o BIND(?o + 1 AS ?z) ?s ?q ?z }",
        "SELECT * { { ?s ?p ?o } { BIND(1 AS ?o) } }",
        "SELECT * { ?s ?p ?o MINUS { ?s ?p ?z } BIND(1 AS ?z) }",
        "SELECT * { { SELECT ?s { ?s ?p ?o } } BIND(1 AS ?o) }",
        "SELECT (COUNT(*) AS ?n) (?n + 1 AS ?m) { ?s ?p ?o }",
        "SELECT ?k (SUM(?o) AS ?n) { ?s ?p ?o } GROUP BY (STR(?p) AS ?k) "
        "HAVING (SUM(?o) > 1) ORDER BY COUNT(?s)",
        "SELECT (SUM(?o + STRLEN(?p)) / COUNT(*) AS ?n) { ?s ?p ?o }",
        "SELECT * { _:a ?p ?o FILTER(?o > 1) _:a ?q ?r }",
        "CONSTRUCT { _:a ?p ?o } { _:a ?p ?o }",
        "ASK { ?s ?p ?o } HAVING (COUNT(*) > 3)",
        "SELECT * { VALUES (?a ?b) { (1 UNDEF) (UNDEF 2) } VALUES () { () () } VALUES ?c { } }",
    ],
)
def test_what_keeps_the_rules_parses(text: str) -> None:
    assert parse(text).where is not None


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        (
            "SELECT * { ?s ?p ?o BIND(1 AS ?o) }",
            "The variable ?o is already in scope; BIND needs a new one.",
            31,
        ),
        (
            "SELECT * { OPTIONAL { ?s ?p ?o } BIND(1 AS ?o) }",
            "The variable ?o is already in scope; BIND needs a new one.",
            44,
        ),
        (
            "SELECT (1 AS ?o) { ?s ?p ?o }",
            "The variable ?o is already in scope; AS needs a new one.",
            14,
        ),
        (
            "SELECT (1 AS ?o) (2 AS ?o) {}",
            "The variable ?o is already in scope; AS needs a new one.",
            24,
        ),
        ("SELECT ?o (2 AS ?o) {}", "The variable ?o is already in scope; AS needs a new one.", 17),
        (
            "SELECT ?o { ?s ?p ?o } GROUP BY (1 AS ?o)",
            "The variable ?o is already in scope; AS needs a new one.",
            39,
        ),
        (
            "SELECT * { ?s ?p ?o } GROUP BY ?s",
            "SELECT * cannot stand in a query with groups; name the keys and aggregates.",
            1,
        ),
        (
            "SELECT ?o { ?s ?p ?o } GROUP BY ?s",
            "The variable ?o is neither a key of GROUP BY nor within an aggregate.",
            8,
        ),
        (
            "SELECT (?o + COUNT(*) AS ?x) { ?s ?p ?o }",
            "The variable ?o is neither a key of GROUP BY nor within an aggregate.",
            9,
        ),
        (
            "SELECT (SUM(COUNT(?o)) AS ?x) { ?s ?p ?o }",
            "The aggregate COUNT cannot stand in SUM.",
            13,
        ),
        (
            "SELECT * { ?s ?p ?o FILTER(SUM(?o) > 1) }",
            "The aggregate SUM cannot stand in FILTER.",
            28,
        ),
        ("SELECT * { BIND(1 + SUM(?o) AS ?p) }", "The aggregate SUM cannot stand in BIND.", 21),
        (
            "SELECT ?x { ?x ?p ?o } GROUP BY ?x (MAX(?o) AS ?y)",
            "The aggregate MAX cannot stand in GROUP BY.",
            37,
        ),
        (
            "SELECT * { FILTER EXISTS { FILTER(MIN(?o) = 1) } }",
            "The aggregate MIN cannot stand in FILTER.",
            35,
        ),
        (
            "SELECT * { _:a ?p ?o { _:a ?q ?r } }",
            "The label _:a is used in two basic graph patterns; use a variable.",
            24,
        ),
        (
            "SELECT * { _:a ?p ?o BIND(1 AS ?z) _:a ?q ?r }",
            "The label _:a is used in two basic graph patterns; use a variable.",
            36,
        ),
        (
            "SELECT * { _:a ?p ?o { SELECT * { ?q ?r _:a } } }",
            "The label _:a is used in two basic graph patterns; use a variable.",
            41,
        ),
        ("CONSTRUCT { ?s ?p/<q> ?o } { ?s ?p ?o }", None, 18),
        (
            "CONSTRUCT { ?s <p>/<q> ?o } { ?s ?p ?o }",
            "A property path cannot stand in a template.",
            16,
        ),
        ("CONSTRUCT WHERE { ?s ^<q> ?o }", "A property path cannot stand in a template.", 23),
        (
            "SELECT * { VALUES (?a ?b) { (1 2) (1) } }",
            "Row 2 of VALUES does not have one value per variable: 1 for 2.",
            12,
        ),
        (
            "SELECT * {} LIMIT 99999999999999999999",
            "The number 99999999999999999999 is too large here.",
            19,
        ),
    ],
)
def test_what_breaks_a_rule_is_an_error_at_its_place(
    text: str, message: str | None, column: int
) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse(text)
    assert caught.value.span == Span(1, column)
    assert message is None or caught.value.message == message


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    with pytest.raises(QuerySyntaxError, match="nested too deeply"):
        parse("SELECT * " + "{" * 5000 + "}" * 5000)


def test_long_texts_are_no_deep_ones() -> None:
    condition = " || ".join(f"?x = {n}" for n in range(3000))
    triples = " . ".join(f"?s <p{n}> ?o{n}" for n in range(3000))
    unions = " UNION ".join(f"{{ ?s <p> {n} }}" for n in range(1000))
    assert parse(f"SELECT * {{ {triples} FILTER({condition}) {unions} }}").where is not None
