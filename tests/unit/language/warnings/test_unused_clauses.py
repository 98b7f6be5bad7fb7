"""Clauses of SPARQL and RSP-QL that have no effect are named, with their place."""

from __future__ import annotations

import pytest

from levada.language import parse, show
from levada.language.warnings.sparql import warnings_of

W = "FROM NAMED WINDOW <w> ON <e:s> [RANGE PT4S STEP PT2S]"
READ = "WINDOW <w> { ?s <p> ?o }"
SELECT = f"SELECT * {W} {{ {READ}"


def messages(text: str) -> list[str]:
    found = warnings_of(parse(text), text, ("e:s",), frozenset({None, "g", "h"}))
    lines = text.split("\n")
    for warning in found:
        assert warning.span is not None
        assert warning.span.column <= len(lines[warning.span.line - 1])
        assert warning.hint
    return [warning.message for warning in found]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"REGISTER RSTREAM <q> AS SELECT * {W} TICK TIME_DRIVEN {{ {READ} }}",
         "TICK TIME_DRIVEN has no effect: results do not depend on when the engine reads its "
         "input."),
        (f"SELECT * {W} REPORT ON_WINDOW_CLOSE, ON_CONTENT_CHANGE {{ {READ} }}",
         "ON_WINDOW_CLOSE has no effect: ON_CONTENT_CHANGE replaces it."),
        (f"SELECT * {W} REPORT PERIODIC PT10S, ON_CONTENT_CHANGE {{ {READ} }}",
         "ON_CONTENT_CHANGE has no effect: PERIODIC replaces it."),
        (f"SELECT * {W} T0 0 T0 1000 {{ {READ} }}", "T0 has no effect: T0 replaces it."),
        ("SELECT * REPORT ON_CONTENT_CHANGE { ?s ?p ?o }",
         "ON_CONTENT_CHANGE has no effect: the query has no window, so it reports once."),
        ("SELECT * T0 5 { ?s ?p ?o }",
         "T0 has no effect: the query has no window, so it reports once."),
        ("REGISTER QUERY q COMPUTED EVERY 10s AS SELECT * { ?s ?p ?o }",
         "COMPUTED EVERY has no effect: the query has no window, so it reports once."),
        (f"CONSTRUCT {{ ?s ?p ?o }} {W} {{ {READ} . ?s ?p ?o }} ORDER BY ?s",
         "ORDER BY has no effect: triples have no order."),
        (f"ASK {W} {{ {READ} }} ORDER BY ?s",
         "ORDER BY has no effect: ASK only says whether there is a solution."),
        (f"ASK {W} {{ {READ} }} ORDER BY (1 + ?s)",
         "ORDER BY has no effect: ASK only says whether there is a solution."),
        (f"ASK {W} {{ {READ} }} LIMIT 3",
         "LIMIT has no effect: ASK only says whether there is a solution."),
        (f"{SELECT} {{ SELECT ?s {{ {READ} }} ORDER BY ?s }} }}",
         "ORDER BY has no effect in a sub-query without LIMIT or OFFSET."),
        (f"{SELECT} MINUS {{ ?a <q> ?b }} }}",
         "MINUS has no effect: it has no variable of the patterns before it."),
        (f"{SELECT} OPTIONAL {{ ?o <q> ?x MINUS {{ ?a <q> <b> }} }} }}",
         "MINUS has no effect: it has no variable of the patterns before it."),
        (f"{SELECT} FILTER(?o = 1 && NOT EXISTS {{ ?s <q> ?x MINUS {{ ?a <q> <b> }} }}) }}",
         "MINUS has no effect: it has no variable of the patterns before it."),
        (f"SELECT * FROM NAMED <g> FROM NAMED <h> {W} {{ {READ} GRAPH <h> {{ ?s <q> 2 }} }}",
         "FROM NAMED <g> has no effect: no GRAPH reads it."),
        (f"SELECT * FROM NAMED <g> {W} {{ {READ} }}",
         "FROM NAMED <g> has no effect: no GRAPH reads it."),
        (f"SELECT * FROM <g> {W} {{ {READ} }}",
         "FROM <g> has no effect: all patterns are in a window or a named graph."),
    ],
)  # fmt: skip
def test_a_clause_without_an_effect_is_named(text: str, message: str) -> None:
    assert message in messages(text)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT * {W} REPORT ON_WINDOW_CLOSE, NON_EMPTY_CONTENT T0 1000 {{ {READ} }} ORDER BY ?s",
        f"SELECT * {W} REPORT PERIODIC PT10S {{ {READ} }} LIMIT 3",
        f"CONSTRUCT {{ ?s <p> ?o }} {W} {{ {READ} }} ORDER BY ?s LIMIT 3",
        f"ASK {W} {{ {READ} }} LIMIT 1 OFFSET 1",
        f"ASK {W} {{ {READ} }} LIMIT 0",
        f"{SELECT} {{ SELECT ?s {{ {READ} }} ORDER BY ?s LIMIT 3 }} }}",
        f"{SELECT} MINUS {{ ?s <q> ?b }} }}",
        f"{SELECT} {{ ?a <q> ?c }} MINUS {{ ?a <q> ?b }} }}",
        f"{SELECT} {{ ?a <q> ?c }} UNION {{ ?x <q> ?d }} MINUS {{ ?a <q> ?b }} }}",
        f"{SELECT} BIND(1 AS ?a) MINUS {{ ?a <q> ?b }} }}",
        f"{SELECT} {{ SELECT ?a {{ ?a <q> ?c }} }} MINUS {{ ?a <q> ?b }} }}",
        f"{SELECT} VALUES ?a {{ 1 }} MINUS {{ ?a <q> ?b }} }}",
        f"SELECT * FROM NAMED <g> FROM <h> {W} {{ {READ} GRAPH ?g {{ ?s <q> 1 }} }}",
        f"SELECT * FROM NAMED <g> FROM <h> {W} {{ {READ} ?s <q> 1 GRAPH <g> {{ ?s <q> 2 }} }}",
        f"SELECT * FROM <h> {W} {{ {READ} FILTER EXISTS {{ ?s <q> 1 }} }}",
        f"SELECT * FROM NAMED <g> {W} {{ {READ} GRAPH <h> {{ ?s <q> 2 }} }}",
        f"SELECT * FROM <g> {W} {{ {READ} GRAPH <h> {{ ?s <q> 2 }} }}",
        f"SELECT * FROM NAMED <g> {W} {{ {READ} ?s <q> 1 }}",
        f"DESCRIBE ?s FROM <h> {W} {{ {READ} }}",
    ],
)
def test_a_clause_with_an_effect_is_not(text: str) -> None:
    assert not [message for message in messages(text) if "no effect" in message]


def test_clauses_on_reports_do_not_take_part_in_the_printed_tree() -> None:
    text = f"SELECT * {W} REPORT ON_WINDOW_CLOSE TICK BATCH_DRIVEN {{ {READ} }}"
    tree = parse(text)
    assert [clause.words for clause in tree.report_clauses] == [
        "ON_WINDOW_CLOSE",
        "TICK BATCH_DRIVEN",
    ]
    assert show(tree) == show(parse(text.replace(" TICK BATCH_DRIVEN", "")))
