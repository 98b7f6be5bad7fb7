"""What is valid and not evaluated yet, or names what does not exist: refused by its name, at its
place.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from levada.core.user_functions import HOW_TO_DECLARE
from levada.errors import LevadaError, QueryError, Span, UnknownNameError, UnsupportedError
from levada.language import parse
from levada.language.sparql import ast
from levada.language.translate.cql.translate import translate_cql
from levada.language.translate.sparql.translate import translate
from levada.plan.logical.query_options import QueryOptions

PROLOGUE = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
WINDOW = "FROM NAMED WINDOW <w> ON <s> [RANGE PT4S STEP PT2S]"


def refusal(text: str, options: QueryOptions | None = None) -> QueryError:
    unit = parse(text)
    with pytest.raises(QueryError) as caught:
        translate(unit, options or QueryOptions(), text=text)
    assert caught.value.text == text
    return caught.value


@pytest.mark.parametrize(
    ("pattern", "message", "column"),
    [
        ("SERVICE <x> { ?s <p> ?o }", "SERVICE is not supported yet.", 3),
    ],
)
def test_what_is_not_evaluated_yet(pattern: str, message: str, column: int) -> None:
    error = refusal(f"{PROLOGUE}SELECT * {WINDOW} {{\n  {pattern} }}")
    assert isinstance(error, UnsupportedError)
    assert (error.message, error.span) == (message, Span(3, column))


@pytest.mark.parametrize(
    ("inner", "feature"),
    [
        ("?s <q> ?x MINUS { ?s <r> ?y }", "A MINUS within EXISTS that uses ?s of the outer group"),
        ("?u <q> ?x MINUS { ?u <r> ?y }", "A MINUS within EXISTS that uses ?u of the outer group"),
        ("?x <q> ?y BIND(?x AS ?o)", "BIND or AS within EXISTS that uses ?o of the outer group"),
        (
            "{ SELECT ?s ?o { ?s <q> ?o } LIMIT 1 } ?o <r> ?x",
            "LIMIT or OFFSET within EXISTS that uses ?o of the outer group",
        ),
        (
            "{ SELECT ?x { ?x <q> ?y FILTER(?y > ?o) } }",
            "A sub-SELECT within EXISTS that uses ?o of the outer group",
        ),
        (
            "{ SELECT ?x { ?x <q> ?y { SELECT ?y { ?y <q> ?z BIND(?o AS ?k) } } } }",
            "A sub-SELECT within EXISTS that uses ?o of the outer group",
        ),
        (
            "?x <q> ?y FILTER NOT EXISTS { ?x <r> ?u, ?v, ?w }",
            "An EXISTS within EXISTS that uses ?w of the outer group",
        ),
    ],
)
def test_exists_is_refused_where_a_join_would_not_be_substitution(inner: str, feature: str) -> None:
    group = (
        f"?s <p> ?o OPTIONAL {{ ?s <q> ?u ; <q> ?v ; <q> ?w }}\n"
        f"   FILTER(?o > 1 && !EXISTS {{ {inner} }})"
    )
    error = refusal(f"SELECT * {WINDOW} {{ {group} }}")
    assert isinstance(error, UnsupportedError)
    assert (error.message, error.span) == (f"{feature} is not supported yet.", Span(2, 22))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("?s", "No triple pattern over a window binds ?s where f:timestamp() asks for its time."),
        ("?o, <t>", "The query reads no stream <t>."),
        ("?o, ?p, ?z", "?z of f:timestamp() is not bound here."),
        (
            "?o, ?p",
            "f:timestamp() takes a variable, or the subject, predicate and object of a triple.",
        ),
        (
            "?o + 1",
            "f:timestamp() takes a variable, or the subject, predicate and object of a triple.",
        ),
        ("?k", "No triple pattern over a window binds ?k where f:timestamp() asks for its time."),
    ],
)
def test_times_of_what_has_none(asked: str, message: str) -> None:
    group = (
        "WINDOW <w> { ?o ?p ?x } ?s <k> ?o { SELECT ?o { WINDOW <w> { ?o <q> ?k } } } "
        "VALUES ?k { 1 }"
    )
    error = refusal(
        f"SELECT * {WINDOW} {{ {group}\n"
        f" BIND(<http://larkc.eu/csparql/sparql/jena/ext#timestamp>({asked}) AS ?t) }}"
    )
    assert (error.message, error.span) == (message, Span(2, 7))


def test_without_a_window_there_are_no_times() -> None:
    text = "SELECT (<http://larkc.eu/csparql/sparql/jena/ext#timestamp>(?s) AS ?t) { ?s ?p ?o }"
    assert refusal(text).message == "f:timestamp() needs a window."


@pytest.mark.parametrize(
    ("before", "name"),
    [
        ("OPTIONAL { ?s <q> ?o } OPTIONAL { ?s <q> ?u } OPTIONAL { ?s <q> ?v }", "v"),
        ("BIND(RAND() AS ?o)", "o"),
    ],
)
def test_exists_in_optional_is_refused_where_what_it_sees_of_the_left_side_cannot_be_asked_twice(
    before: str, name: str
) -> None:
    error = refusal(
        f"SELECT * {WINDOW} {{ ?s <p> ?y {before}\n"
        f"OPTIONAL {{ ?s <q> ?x FILTER EXISTS {{ ?x <r> ?o, ?u, ?v }} }} }}"
    )
    message = (
        f"EXISTS in the FILTER of an OPTIONAL that uses ?{name} of what stands before is not "
        "supported yet."
    )
    assert (error.message, error.span) == (message, Span(2, 29))


@pytest.mark.parametrize(
    ("clauses", "pattern", "message", "hint", "column"),
    [
        ("", "WINDOW <x> {}", "The window <x> is not declared.", "Declared: <w>.", 10),
        (
            "FROM NAMED WINDOW <temp> ON <t> [NOW]",
            "WINDOW <tem> {}",
            "The window <tem> is not declared.",
            "Did you mean temp? Declared: <w>, <temp>.",
            10,
        ),
        ("", "GRAPH <w> {}", "<w> is a window, not a graph.", "Write WINDOW <w>.", 9),
        (
            "",
            "FILTER(<f>(1))",
            "The function <f> is not known.",
            "Known: xsd:boolean, xsd:double, xsd:float, xsd:decimal, xsd:integer, "
            "xsd:string, xsd:dateTime, xsd:date, xsd:time, "
            "xsd:duration, xsd:dayTimeDuration, xsd:yearMonthDuration, xsd:gYear, "
            f"xsd:gYearMonth, xsd:gMonth, xsd:gMonthDay, xsd:gDay. {HOW_TO_DECLARE}",
            10,
        ),
        (
            "",
            "FILTER(xsd:int(1))",
            "The function <http://www.w3.org/2001/XMLSchema#int> is not known.",
            None,
            10,
        ),
    ],
)
def test_names_that_do_not_exist(
    clauses: str, pattern: str, message: str, hint: str | None, column: int
) -> None:
    error = refusal(f"{PROLOGUE}SELECT * {WINDOW} {clauses} {{\n  {pattern} }}")
    assert isinstance(error, UnknownNameError)
    assert (error.message, error.span) == (message, Span(3, column))
    assert hint is None or error.hint == hint


def test_where_no_window_is_declared_the_hint_says_how() -> None:
    error = refusal("SELECT ?s { STREAM <s> { ?s ?p ?o } }")
    assert (error.message, error.span) == ("The window <s> is not declared.", Span(1, 20))
    assert error.hint.endswith("where it is read: STREAM <s> [RANGE PT10S] {..}.")


def test_a_near_cast_is_named() -> None:
    error = refusal(f"{PROLOGUE}SELECT * {WINDOW} {{ FILTER(xsd:int(1)) }}")
    assert error.hint.startswith("Did you mean http://www.w3.org/2001/XMLSchema#integer")


@pytest.mark.parametrize("call", ["xsd:integer()", "xsd:integer(1, 2)", "xsd:integer(DISTINCT 1)"])
def test_a_cast_takes_one_argument(call: str) -> None:
    error = refusal(f"{PROLOGUE}SELECT * {WINDOW}\n{{ FILTER({call}) }}")
    assert (
        error.message == "The cast <http://www.w3.org/2001/XMLSchema#integer> takes one argument."
    )
    assert error.span == Span(3, 10)


def test_a_window_is_declared_once() -> None:
    error = refusal(f"ASK {WINDOW}\n  FROM NAMED WINDOW <w> ON <t> [NOW] {{}}")
    assert (error.message, error.span) == ("The window <w> is declared twice.", Span(2, 3))


def test_report_on_close_needs_a_step() -> None:
    text = (
        "ASK\nFROM NAMED WINDOW <w> ON <s> [RANGE PT4S] FROM NAMED WINDOW <v> ON <s> [NOW] { "
        "WINDOW <w> { ?s ?p ?o } }"
    )
    error = refusal(text, QueryOptions(report="close"))
    assert (
        error.message
        == "The option report=close needs a window with a STEP: only such windows close."
    )
    assert error.span == Span(2, 1)


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    unit = parse(f"ASK {WINDOW} {'{' * 200} ?s ?p ?o {'}' * 200}")
    group = unit.where
    assert group is not None
    for _ in range(2000):
        group = ast.Group((group,), group.span)
    with pytest.raises(QueryError, match="nested too deeply"):
        translate(replace(unit, where=group))


@pytest.mark.parametrize(
    ("group", "hint"),
    [
        (" ".join(f"BIND({i} AS ?b{i})" for i in range(300)), "Say it with fewer than 250 "),
        (f"BIND({'+'.join(['1'] * 200)} AS ?b)", "An expression has at most 120 "),
    ],
)
def test_what_could_be_parsed_but_not_planned_is_refused(group: str, hint: str) -> None:
    error = refusal(f"SELECT * {WINDOW} {{ WINDOW <w> {{ ?s ?p ?o }} {group} }}")
    assert error.message == "The query is nested too deeply." and error.hint.startswith(hint)


def test_long_conditions_are_not_deep() -> None:
    text = (
        f"ASK {WINDOW} {{ WINDOW <w> {{ ?s ?p ?o }} "
        f"FILTER({' || '.join(f'?o = {i}' for i in range(2000))}) }}"
    )
    translate(parse(text), text=text)


@pytest.mark.parametrize(
    "text",
    [
        "Select k From A Where " + " Or ".join(["k = 1"] * 2000),
        f"Select {'+'.join(['k'] * 200)} As x From A",
    ],
)
def test_deep_cql_is_an_error_and_no_crash(text: str) -> None:
    with pytest.raises(QueryError, match="nested too deeply"):
        translate_cql(text, {"A": {"k": "integer"}})


def test_every_refusal_is_a_usage_error() -> None:
    error: LevadaError = refusal("ASK { SERVICE <x> { ?s ?p ?o } }")
    assert error.exit_code == 2
