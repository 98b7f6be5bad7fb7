"""What is said of queries that can run and are surely not what was meant: a table of each warning,
and of what is none.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import levada
from levada.cli.main import main
from levada.errors import Span
from levada.language import parse
from levada.language.warnings.cql import warnings_of_cql
from levada.language.warnings.sparql import warnings_of
from levada.language.warnings.warning import QueryWarning

W = "FROM NAMED WINDOW <w> ON <e:s> [RANGE PT4S STEP PT2S]"
READ = "WINDOW <w> { ?s <p> ?o }"
STREAM = (
    "A stream is read through a window: FROM NAMED WINDOW <w> ON <stream> [RANGE PT10S STEP "
    "PT5S], and WINDOW <w> { .. } around the pattern."
)
UNREAD = "The window <v> is declared, and nothing reads it: it only makes reports."
ELSEWHERE = "?o is bound elsewhere, which is not to be seen from here."
OUTSIDE = "This pattern is in no window, and there are no static data that it could read."
PUT = "Put it into WINDOW <w> { .. }, or name static data by --static FILE."
MONTHS = "Write {0}m or PT{0}M; a month is as many days as are meant, such as P{1}D."


def minutes(number: int) -> str:
    return (
        f"{number}M is minutes here; in ISO 8601 an M without T is months, of which no length is "
        "fixed."
    )


NO_WINDOW = "The query has no window, and there are no static data that it could read."


def of(
    text: str, streams: tuple[str, ...] = ("e:s",), graphs: frozenset[str | None] | None = None
) -> list[QueryWarning]:
    return list(warnings_of(parse(text), text, streams, graphs))


def unbound(name: str, clause: str) -> str:
    return f"?{name} stands in {clause}, and nothing binds it there."


def after(clause: str, advice: str, name: str = "n") -> str:
    return f"SELECT computes ?{name} after {clause}: {advice}"


XPATH = "Patterns and flags are those of XPath functions 3.1, 5.6."


def invalid(name: str, why: str) -> str:
    return f"{name} has no value, whatever the data are: it has {why}."


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
        (f"ASK {W} FROM NAMED WINDOW <v> ON <e:s> [NOW] {{ {READ} }}", 59, UNREAD,
         "Read it by WINDOW <v> { .. }, or leave it out."),
        ("ASK FROM NAMED STREAM <v> [NOW] FROM NAMED STREAM <e:s> [NOW] { "
         "GRAPH <e:s> { ?s ?p ?o } }", 5, UNREAD, "Read it by GRAPH <v> { .. }, or leave it out."),
        (f"SELECT ?s ?oo {W} {{ {READ} }}", 11, unbound("oo", "SELECT"), "Did you mean ?o?"),
        (f"SELECT ?zebra {W} {{ {READ} }}", 8, unbound("zebra", "SELECT"), ""),
        (f"SELECT (?t + 1 AS ?n) {W} {{ {READ} }}", 9, unbound("t", "SELECT"), ""),
        (f"SELECT (SUM(?t) AS ?n) {W} {{ {READ} }}", 13, unbound("t", "SELECT"), ""),
        (f"SELECT ?s {W} {{ {READ} FILTER(?t > 1) }}", 99, unbound("t", "FILTER"), ""),
        (f"SELECT ?s {W} {{ {READ} {{ FILTER(?o > 1) }} }}", 101, unbound("o", "FILTER"),
         ELSEWHERE),
        (f"SELECT ?s {W} {{ BIND(?o AS ?b) {READ} }}", 72, unbound("o", "BIND"), ELSEWHERE),
        (f"SELECT ?s {W} {{ {READ} }} ORDER BY ?t", 103, unbound("t", "ORDER BY"), ""),
        (f"SELECT (COUNT(*) AS ?n) {W} {{ {READ} }} GROUP BY ?t", 117, unbound("t", "GROUP BY"),
         ""),
        (f"SELECT ?s {W} {{ {READ} }} GROUP BY ?s HAVING(SUM(?t) > 1)", 117, unbound("t", "HAVING"),
         ""),
        (f"SELECT ?s (COUNT(*) AS ?n) {W} {{ {READ} }} GROUP BY ?s HAVING (?n > 1)", 131,
         unbound("n", "HAVING"), after("HAVING", "write its expression there in place of ?n.")),
        (f"SELECT (COUNT(*) AS ?n) {W} {{ {READ} }} HAVING (?n > 1)", 116, unbound("n", "HAVING"),
         after("HAVING", "write its expression there in place of ?n.")),
        (f"SELECT ?s {W} {{ {{ SELECT ?s (COUNT(*) AS ?n) {{ {READ} }} GROUP BY ?s "
         "HAVING (?n > 1) } }", 145, unbound("n", "HAVING"),
         after("HAVING", "write its expression there in place of ?n.")),
        (f"SELECT ?s (?o + 1 AS ?n) {W} {{ {READ} FILTER(?n > 1) }}", 114, unbound("n", "FILTER"),
         after("WHERE", "write BIND(.. AS ?n) in WHERE, and SELECT ?n.")),
        (f"SELECT ?s (?o + 1 AS ?n) {W} {{ {READ} BIND(?n AS ?m) }}", 112, unbound("n", "BIND"),
         after("WHERE", "write BIND(.. AS ?n) in WHERE, and SELECT ?n.")),
        (f"SELECT ?s (COUNT(*) AS ?n) {W} {{ {READ} FILTER(?n > 1) }} GROUP BY ?s", 116,
         unbound("n", "FILTER"),
         after("WHERE", "write HAVING with its expression in place of ?n behind WHERE and "
               "GROUP BY, or compute it in a sub-query.")),
        (f"SELECT (COUNT(*) AS ?n) {W} {{ {READ} }} GROUP BY ?n", 117, unbound("n", "GROUP BY"),
         after("GROUP BY", "compute it in a sub-query.")),
        (f"SELECT ?s (COUNT(*) AS ?n) {W} {{ {READ} }} GROUP BY ?s HAVING EXISTS {{ ?s <q> ?x "
         "FILTER(?x > ?n) }", 161, unbound("n", "FILTER"),
         after("HAVING", "compute it in a sub-query.")),
        (f"SELECT ?s (STR(?s) AS ?n) {W} {{ {READ} }} GROUP BY ?s HAVING(?s != <a> && NOT EXISTS "
         "{ { ?s <q> ?x FILTER EXISTS { ?s <q> ?y FILTER(?x > ?n) } } })", 205,
         unbound("n", "FILTER"), after("HAVING", "compute it in a sub-query.")),
        (f"SELECT ?s (COUNT(*) AS ?n) {W} {{ {READ} }} GROUP BY ?s HAVING EXISTS {{ ?s <q> ?n }}",
         130, "?n in this EXISTS is not the ?n that SELECT computes.",
         after("HAVING", "compute it in a sub-query.")),
        (f"SELECT ?s (EXISTS {{ ?s <q> ?x FILTER(?x > ?n) }} AS ?e) (COUNT(*) AS ?n) {W} "
         f"{{ {READ} }} GROUP BY ?s", 43, unbound("n", "FILTER"),
         after("that", "put (.. AS ?n) first, or into a sub-query.")),
        (f"SELECT ?s (COUNT(*) AS ?n) {W} {{ {READ} {{ SELECT ?s {{ {READ} }} GROUP BY ?s "
         "HAVING(COUNT(*) > ?n) } } GROUP BY ?s", 180, unbound("n", "HAVING"),
         "?n is bound elsewhere, which is not to be seen from here."),
        (f"SELECT (?b AS ?a) (?o AS ?b) {W} {{ {READ} }}", 9, unbound("b", "SELECT"),
         after("that", "put (.. AS ?b) first, or into a sub-query.", "b")),
        (f"SELECT (COUNT(*) AS ?n) (SUM(?n) AS ?m) {W} {{ {READ} }}", 30, unbound("n", "SELECT"),
         after("that", "put (.. AS ?n) first, or into a sub-query.")),
        (f"SELECT (COUNT(*) AS ?n) {W} {{ {READ} }} ORDER BY SUM(?n)", 121,
         unbound("n", "ORDER BY"), after("the aggregates", "compute it in a sub-query.")),
        (f"SELECT ?s {W} {{ {READ} FILTER(REGEX(?o, '(?i)a')) }}", 99,
         invalid("REGEX", "an invalid regular expression: a group that is not of XPath"), XPATH),
        (f"SELECT ?s {W} {{ {READ} FILTER(!REGEX(?o, 'a', 'g')) }}", 100,
         invalid("REGEX", "an unknown flag of a regular expression"), XPATH),
        (f"SELECT (REPLACE(?o, '[', '') AS ?n) {W} {{ {READ} }}", 9,
         invalid("REPLACE", "an invalid regular expression: an unexpected end"), XPATH),
        (f"CONSTRUCT {{ ?s <p> ?t }} {W} {{ {READ} }}", 20, unbound("t", "the template"), ""),
        (f"DESCRIBE ?t {W} {{ {READ} }}", 10, unbound("t", "DESCRIBE"), ""),
        (f"SELECT ?s {W} {{ {READ} FILTER EXISTS {{ ?s <q> ?x FILTER(?x > ?t) }} }}", 130,
         unbound("t", "FILTER"), ""),
        ("ASK FROM NAMED WINDOW <w> ON <e:s> [RANGE PT1H STEP PT3H] { WINDOW <w> { ?s ?p ?o } }", 5,
         "PT2H of each PT3H are in no window: STEP is longer than RANGE.", ""),
        ("ASK FROM NAMED WINDOW <w> ON <e:s> [FROM NOW-PT5S TO NOW-PT3S STEP PT3S] { "
         "WINDOW <w> { ?s ?p ?o } }", 5,
         "PT1S of each PT3S are in no window: STEP is longer than RANGE.", ""),
        ("ASK FROM NAMED WINDOW <w> ON <e:s> [ELEMENTS 2 STEP 5] { WINDOW <w> { ?s ?p ?o } }", 5,
         "3 of each 5 triples are in no window: STEP is more than the window holds.", ""),
        ("ASK FROM NAMED WINDOW <w> ON <e:s> [RANGE 90000 STEP 60] { WINDOW <w> { ?s ?p ?o } }", 43,
         "A number alone counts seconds: 90000 is P1DT1H.",
         "Write PT1M30S if milliseconds are meant, else P1DT1H."),
        (f"ASK {W} {{ {READ} GRAPH <e:s> {{ ?s ?p ?o }} }}", 92,
         "<e:s> is a stream, and no static graph.", f"e:s is a stream. {STREAM}"),
        ("ASK FROM NAMED WINDOW <w> ON <e:s> [RANGE 5M STEP 60s] { WINDOW <w> { ?s ?p ?o } }", 43,
         minutes(5), MONTHS.format(5, 150)),
        ("ASK FROM STREAM <e:s> [RANGE 2h STEP 3 M] { ?s ?p ?o }", 38, minutes(3),
         MONTHS.format(3, 90)),
        ("ASK { STREAM <e:s> [RANGE 1M] { ?s ?p ?o } }", 27, minutes(1), MONTHS.format(1, 30)),
        ("ASK FROM <e:s> { ?s ?p ?o }", 10, "<e:s> is a stream, and no static graph.",
         f"e:s is a stream. {STREAM}"),
    ],
)  # fmt: skip
def test_each_warning(text: str, column: int, message: str, hint: str) -> None:
    assert of(text) == [QueryWarning(message, Span(1, column), hint)]


@pytest.mark.parametrize(
    ("text", "graphs", "expected"),
    [
        (f"ASK {W} {{ {READ} ?s <q> ?x }}", frozenset(), [(OUTSIDE, PUT)]),
        (f"ASK {W} {{ {READ} ?s <q> ?x }}", frozenset({"e:g"}), [(OUTSIDE, PUT)]),
        (f"ASK {W} {{ {READ} ?s <q> ?x }}", frozenset({None}), []),
        (f"ASK {W} {{ {READ} ?s <q> ?x }}", None, []),
        (f"ASK FROM <e:g> {W} {{ {READ} ?s <q> ?x }}", frozenset({"e:g"}), []),
        (f"ASK FROM NAMED <e:g> {W} {{ {READ} ?s <q> ?x }}", frozenset({"e:g", None}),
         [(OUTSIDE, PUT)]),
        ("ASK { ?s ?p ?o }", frozenset(), [(NO_WINDOW, f"There is the stream e:s. {STREAM}")]),
        ("ASK { ?s ?p ?o }", frozenset({None}), []),
        (f"ASK {W} {{ {READ} GRAPH <e:h> {{ ?s <q> ?x }} }}", frozenset({"e:g"}),
         [("There is no static graph <e:h>.", "Did you mean e:g?")]),
        (f"ASK {W} {{ {READ} GRAPH <e:g> {{ ?s <q> ?x }} }}", frozenset({"e:g"}), []),
    ],
)  # fmt: skip
def test_what_depends_on_the_data_that_are_there(
    text: str, graphs: frozenset[str | None] | None, expected: list[tuple[str, str]]
) -> None:
    assert [(w.message, w.hint) for w in of(text, graphs=graphs)] == expected


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT ?s (?o + 1 AS ?n) {W} {{ {READ} }} ORDER BY ?n",
        f"SELECT ?s (COUNT(*) AS ?n) {W} {{ {READ} }} GROUP BY ?s ORDER BY DESC(?n)",
        f"SELECT ?k (COUNT(*) AS ?n) {W} {{ {READ} }} GROUP BY (STR(?s) AS ?k) HAVING EXISTS "
        "{ WINDOW <w> { ?x <q> ?k } } ORDER BY EXISTS { WINDOW <w> { ?x <q> ?n } }",
        f"SELECT ?t (COUNT(?t) AS ?n) {W} {{ {READ} }} GROUP BY (STR(?s) AS ?t) HAVING (?t > 'a')",
        f"SELECT (?o AS ?a) (?a AS ?b) {W} {{ {READ} }}",
        f"SELECT ?s {W} {{ {READ} FILTER(REGEX(?o, '^[a-z-[b]]+$', 'smix') || REGEX(?o, ?s)) }}",
        f"SELECT ?s {W} {{ {READ} FILTER(REGEX(REPLACE(?o, 'a', '['), 'a', ?s)) }}",
        f"SELECT ?s {W} {{ {READ} FILTER(REGEX(?o, '[', 'q')) }}",
        f"SELECT * {W} {{ {READ} OPTIONAL {{ WINDOW <w> {{ ?s <q> ?x }} "
        f"FILTER(?x > ?o) }} FILTER(!BOUND(?x)) }}",
        f"SELECT ?s ?n {W} {{ {READ} {{ SELECT ?s (COUNT(*) AS ?n) {{ {READ} }} "
        f"GROUP BY ?s }} FILTER(?n > 1) }}",
        f"SELECT ?s ?v {W} {{ {READ} VALUES ?v {{ 1 }} FILTER NOT EXISTS {{ {READ} "
        f"FILTER(?o > ?v) }} }}",
        f"SELECT ?w ?s {W} FROM NAMED WINDOW <v> ON <e:s> [NOW] {{ WINDOW ?w {{ ?s ?p ?o }} }}",
        f"SELECT ?s {W} {{ FILTER EXISTS {{ {READ} }} VALUES ?s {{ <a> }} }}",
        f"DESCRIBE <a> {W} {{ }}",
        "SELECT ?s FROM STREAM <e:s> [RANGE 1d STEP 86400s] { ?s ?p ?o }",
        "SELECT ?s { STREAM <e:s> [RANGE 10s] { ?s ?p ?o } }",
        "SELECT ?s FROM NAMED STREAM <e:s> [RANGE 1h STEP 1h] { GRAPH <e:s> { ?s ?p ?o } }",
        "ASK FROM NAMED WINDOW <w> ON <e:s> [RANGE 86400 STEP 60] { WINDOW <w> { ?s ?p ?o } }",
    ],
)
def test_what_is_no_slip(text: str) -> None:
    assert of(text, graphs=frozenset()) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Select k From A [Range 1 minute Slide 10 seconds]", []),
        ("Select k From A [Range 10 s Slide 1 minute]",
         [(18, "PT50S of each PT1M are in no window: Slide is longer than Range.")]),
        ("Select k From A [Range 90000]",
         [(24, "A number alone counts seconds: 90000 is P1DT1H.")]),
        ("Select k From (Select k From A [Range 1 s Slide 2 s]) [Now] As B",
         [(33, "PT1S of each PT2S are in no window: Slide is longer than Range.")]),
        ("Select k From A [Now] Union Select k From B [Now]",
         [(23, "Union keeps equal rows in CQL, and in SQL it does not.")]),
        ("Select k From A [Now] Union All Select 'Except' From B [Now]", []),
        ("Select k From A [Now] Union Distinct Select k From B [Now]", []),
        ("Select k From A [Now] Except Select k From B [Now]",
         [(23, "Except takes one row away for each on its right in CQL, and in SQL all equal "
               "ones.")]),
    ],
)  # fmt: skip
def test_cql(text: str, found: list[tuple[int, str]]) -> None:
    assert [(w.span.column, w.message) for w in warnings_of_cql(text)] == found


def test_check_warns_on_standard_error_and_is_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.rq").write_text(f"SELECT ?s ?oo\n{W}\n{{ {READ} }}")
    assert main(["check", "q.rq"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "q: ok, SELECT RSTREAM over e:s [RANGE PT4S STEP PT2S close [)]\n"
    assert printed.err == (
        "levada: q: Warning: line 1, column 11: ?oo stands in SELECT, and nothing binds it there.\n"
        "  SELECT ?s ?oo\n"
        "            ^\n"
        "Did you mean ?o?\n"
    )


def test_of_many_warnings_some_are_shown_each_with_the_place_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = " ".join(f"?x{i}" for i in range(3000))
    Path("q.rq").write_text(f"SELECT {names} {W} {{ {READ} }} # {'y' * 200_000}")
    assert main(["check", "q.rq"]) == 0
    printed = capsys.readouterr().err
    assert printed.count("nothing binds it there.") == 10
    assert printed.endswith("levada: q: Warning: 2,990 more warnings are not shown.\n")
    assert "  SELECT ?x0 ?x1 ?x2 ?x3 " in printed
    assert max(map(len, printed.splitlines())) < 120


def test_of_a_long_name_the_beginning_and_the_end_are_shown() -> None:
    name = "a" + "b" * 100_000 + "c"
    (warning,) = of(f"SELECT ?{name} {W} {{ {READ} }}")
    shown = warning.shown(f"SELECT ?{name}")
    assert len(shown) < 1000
    assert "?abbb" in shown and "bbc stands in SELECT, and nothing binds it there." in shown


def test_an_engine_warns_once_for_each_registration() -> None:
    engine = levada.Engine(spark=False)
    engine.stream("e:s", iter(()), columns=["a", "b", "c", "ts"])
    with pytest.warns(UserWarning, match=r"^q: Warning: line 1, column 8: \?t stands") as caught:
        engine.register(f"SELECT ?t {W} {{ {READ} }}", name="q")
    assert len(caught) == 1
    assert Path(caught[0].filename).name != "registry.py"
    engine.close()


def test_minutes_of_cql_with_a_capital_m() -> None:
    assert [w.message for w in warnings_of_cql("Select k From A [Range 5 M Slide 1 m]")] == [
        minutes(5)
    ]
    assert not warnings_of_cql("Select k From A [Range 5 Minutes]")
    assert not of("ASK FROM STREAM <e:s> [RANGE 5m STEP 1m] { ?s ?p 'RANGE 7M' }")
