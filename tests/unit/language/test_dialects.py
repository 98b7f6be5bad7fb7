"""Each dialect's clauses: how they are recognised, and what of them is in the tree."""

from __future__ import annotations

import pytest

from levada.errors import QueryError, QuerySyntaxError, Span, UnsupportedError, UsageError
from levada.language import parse
from levada.language.dialects.detect import (
    DIALECTS,
    dialect_of,
    dialect_of_ending,
    evidence,
    recognise,
)
from levada.language.sparql import ast
from levada.language.sparql.common_mistakes import find_unclosed_bracket


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("SELECT ?s { ?s ?p ?o }", "rspql"),
        (
            "SELECT ?s FROM NAMED WINDOW <w> ON STREAM <s> [NOW] { WINDOW <w> { ?s ?p ?o } }",
            "rspql",
        ),
        ("SELECT ?s { STREAM <s> [NOW] { ?s ?p ?o } }", "cqels"),
        ("select ?s { stream ?g [range 5s] { ?s ?p ?o } }", "cqels"),
        ("SELECT ?s FROM STREAM S [NOW] { STREAM S { ?s ?p ?o } }", "cqels2"),
        ("SELECT ?s FROM STREAM <s> [NOW] { ?s ?p ?o }", "csparql"),
        ("REGISTER QUERY q AS SELECT ?s { ?s ?p ?o }", "csparql"),
        ("With c As (Select k From A) Select k From c", "cql"),
        ("(Select k From A) Union All (Select k From B)", "cql"),
        (
            "Select window_end From Table(Tumble(Table A, Descriptor(ts), Interval '1' Minute))",
            "cql",
        ),
        ("SELECT ?s FROM NAMED STREAM <s> [NOW] { GRAPH <s> { ?s ?p ?o } }", "csparql"),
        ("SELECT ?s FROM NAMED STREAM <s> [NOW] { ?s ?p ?o }", "sparqlstream"),
        ("SELECT ISTREAM ?s { ?s ?p ?o }", "sparqlstream"),
        ("Select * From S [Now]", "cql"),
        ("Istream(Select * From S)", "cql"),
        ("# FROM STREAM\nSELECT ?stream { ?s <STREAM> 'STREAM x [' ; stream:x stream:y }", "rspql"),
        ("", "rspql"),
    ],
)
def test_a_text_shows_its_dialect(text: str, name: str) -> None:
    assert recognise(text).name == name


def test_a_dialect_is_given_by_name_or_by_a_file_ending() -> None:
    assert (
        dialect_of("SELECT ?s FROM STREAM <s> [NOW] { ?s ?p ?o }", "cqels2").title == "CQELS-QL 2"
    )
    assert [dialect_of_ending(e) for e in (".CQL", ".rspql", ".rq")] == ["cql", "rspql", None]
    with pytest.raises(UsageError, match=r"no dialect sparql.*sparqlstream"):
        dialect_of("", "sparql")


def spec(text: str, dialect: str) -> ast.WindowSpec:
    """The window of brackets in a dialect."""
    around = {
        "rspql": "ASK FROM NAMED WINDOW <w> ON <s> [{}] {{ WINDOW <w> {{ ?s ?p ?o }} }}",
        "cqels": "ASK {{ STREAM <s> [{}] {{ ?s ?p ?o }} }}",
        "cqels2": "ASK FROM STREAM S [{}] {{ STREAM S {{ ?s ?p ?o }} }}",
        "csparql": "ASK FROM STREAM <s> [{}] {{ ?s ?p ?o }}",
        "sparqlstream": "SELECT * FROM NAMED STREAM <s> [{}] {{ ?s ?p ?o }}",
    }
    return parse(around[dialect].format(text), dialect).windows[0].spec


@pytest.mark.parametrize(
    ("dialect", "text", "meaning"),
    [
        ("rspql", "RANGE PT10S SLIDE PT5S", ast.Range(10_000, 5_000)),
        ("rspql", "RANGE 10 STEP 5", ast.Range(10_000, 5_000)),
        ("rspql", "RANGE PT10S TUMBLING", ast.Range(10_000, 10_000)),
        ("rspql", "RANGE 3 TRIPLES", ast.LastTriples(3)),
        ("rspql", "ELEMENTS 10 STEP 4", ast.LastTriples(10, 4)),
        ("rspql", "FROM NOW-PT35M TO NOW-PT5M", ast.Range(2_100_000, None, 300_000)),
        ("rspql", "FROM NOW-PT35M TO NOW-PT0S", ast.Range(2_100_000, None, 0)),
        ("sparqlstream", "NOW - 10 S TO NOW - 0 S", ast.Range(10_000, None, 0)),
        ("rspql", "FROM NOW-PT35M TO NOW-PT5M STEP PT1M", ast.Range(2_100_000, 60_000, 300_000)),
        ("rspql", "SESSION PT5M", ast.Session(300_000)),
        ("cqels", "RANGE 5s", ast.Range(5_000, None)),
        ("cqels", "range 1h30m slide 10ms", ast.Range(5_400_000, 10)),
        ("cqels", "RANGE 5s TUMBLING", ast.Range(5_000, 5_000)),
        ("cqels", "RANGE 2000000ns", ast.Range(2, None)),
        ("cqels", "TRIPLES 7", ast.LastTriples(7)),
        ("cqels", "NOW", ast.Instant.NOW),
        ("cqels", "ALL", ast.Instant.ALL),
        ("cqels2", "RANGE 5s", ast.Range(5_000, 5_000)),
        ("cqels2", "SLIDE 30s STEP 10s", ast.Range(30_000, 10_000)),
        ("cqels2", "TRIPLES 7", ast.LastTriples(7)),
        ("csparql", "RANGE 3h STEP 10m", ast.Range(10_800_000, 600_000)),
        ("csparql", "RANGE 1h TUMBLING", ast.Range(3_600_000, 3_600_000)),
        ("csparql", "TRIPLES 5", ast.LastTriples(5, 5)),
        ("csparql", "RANGE TRIPLES 5", ast.LastTriples(5, 5)),
        ("csparql", "RANGE TRIPLES 5 STEP 1", ast.LastTriples(5, 1)),
        ("sparqlstream", "RANGE 1h STEP", ast.Range(3_600_000, 3_600_000)),
        (
            "sparqlstream",
            "NOW - 10 MINUTES TO NOW - 5 MINUTES SLIDE 3 MINUTES",
            ast.Range(600_000, 180_000, 300_000),
        ),
        (
            "sparqlstream",
            "NOW - 10 MINUTES TO NOW - 5 MINUTES STEP",
            ast.Range(600_000, 300_000, 300_000),
        ),
        ("sparqlstream", "FROM NOW - 10 S TO NOW STEP 1 S", ast.Range(10_000, 1_000)),
        ("sparqlstream", "NOW-10 S", ast.Range(10_000, None)),
    ],
)
def test_what_stands_in_brackets(dialect: str, text: str, meaning: ast.WindowSpec) -> None:
    assert spec(text, dialect) == meaning


@pytest.mark.parametrize(
    ("dialect", "text", "message"),
    [
        ("cqels", "RANGE 1500ns", "1500ns is finer than a millisecond."),
        ("cqels", "RANGE 0s", "0s is not positive."),
        (
            "rspql",
            "FROM NOW-PT5M TO NOW-PT5M",
            "A window in the past ends after it starts: FROM is longer ago than TO.",
        ),
        ("csparql", "TRIPLES 0", "A window of the last triples holds at least one."),
        ("rspql", "ELEMENTS 3 STEP 0", "A step is at least one triple."),
        ("rspql", "RANGE PT1H STEP", '"]" cannot stand here.'),
        ("csparql", "RANGE 5 parsecs", "parsecs cannot stand here."),
    ],
)
def test_wrong_brackets(dialect: str, text: str, message: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        spec(text, dialect)
    assert caught.value.message == message


def test_csparql() -> None:
    unit = parse(
        "REGISTER STREAM out COMPUTED EVERY 1m AS PREFIX : <http://e/> CONSTRUCT { ?s ?p ?o }\n"
        "FROM STREAM :a [RANGE 1h STEP 1m] FROM :g FROM STREAM :a [RANGE 1h STEP 1m] "
        "FROM NAMED STREAM :b [TRIPLES 2]\n"
        "WHERE { ?s ?p ?o GRAPH :b { ?s ?q ?x } GRAPH :h { ?x ?y ?z } }"
    )
    assert unit.register is not None and unit.register.name.term.value == "out"
    assert (unit.output, unit.reporting) == ("RSTREAM", ast.Reporting(every=60_000))
    assert [(w.stream.term.value, w.merged) for w in unit.windows] == [
        ("http://e/a", True),
        ("http://e/b", False),
    ]
    assert unit.where is not None
    _, named, static = unit.where.elements
    assert isinstance(named, ast.Window) and isinstance(static, ast.Graph)


def test_cqels_windows_of_one_stream_and_brackets_are_one() -> None:
    unit = parse(
        "SELECT * { STREAM <s> [NOW] { ?a ?b ?c } STREAM <s> [RANGE 1s] { ?a ?d ?e } "
        "STREAM <s> [NOW] { ?a ?f ?g } }"
    )
    assert [w.spec for w in unit.windows] == [ast.Instant.NOW, ast.Range(1_000, None)]
    assert (unit.output, unit.reporting.policy) == ("ISTREAM", "change")
    assert parse("REGISTER RSTREAM <q> AS ASK { STREAM <s> [NOW] { } }").output == "RSTREAM"


def test_cqels_2_with_one_stream_reads_it_everywhere() -> None:
    head = "REGISTER QUERY q AS SELECT ?s FROM STREAM S [RANGE 5s]"
    alone = parse(f"{head} {{ ?s ?p ?o }}", "cqels2").where
    assert alone is not None and isinstance(alone.elements[0], ast.Window)
    beside = parse(f"{head} FROM <g> {{ ?s ?p ?o STREAM S {{ ?s ?q ?x }} }}", "cqels2").where
    assert beside is not None and isinstance(beside.elements[0], ast.Triples)


def test_outputs_of_sparqlstream() -> None:
    text = "FROM NAMED STREAM <s> [NOW - 5 S TO NOW] { ?s ?p ?o }"
    assert parse(f"SELECT DSTREAM DISTINCT ?s {text}").output == "DSTREAM"
    assert parse(f"CONSTRUCT ISTREAM {{ ?s ?p ?o }} {text}").output == "ISTREAM"
    assert parse(f"SELECT ?s {text}").output == "RSTREAM"


def test_reports_and_start_of_rspql() -> None:
    window = "SELECT ?s FROM NAMED WINDOW <w> ON <s> [RANGE PT10S STEP PT5S]"
    unit = parse(
        f'{window} T0 "1970-01-01T00:00:01Z" REPORT ON_CONTENT_CHANGE, NON_EMPTY_CONTENT, '
        "PERIODIC PT1M TICK TIME_DRIVEN"
        " { WINDOW <w> { ?s ?p ?o } }"
    )
    assert unit.reporting == ast.Reporting("change", 60_000, True, 1_000)
    assert parse(f"{window} T0 -5 REPORT WINDOW_CLOSE {{ }}").reporting == ast.Reporting(
        "close", t0=-5
    )


@pytest.mark.parametrize(
    ("text", "feature", "span"),
    [
        (
            "ASK FROM NAMED WINDOW <w> ON <s> [NOW] TICK TUPLE_DRIVEN { }",
            "TICK TUPLE_DRIVEN",
            Span(1, 40),
        ),
    ],
)
def test_what_is_refused_by_name(text: str, feature: str, span: Span) -> None:
    with pytest.raises(UnsupportedError) as caught:
        parse(text)
    assert caught.value.message.startswith(feature) and caught.value.span == span


@pytest.mark.parametrize(
    ("text", "span", "expected", "hint"),
    [
        (
            "SELECT ?s FROM STREAM <s> [RANGE 10s STEPP 5s] { ?s ?p ?o }",
            Span(1, 38),
            '"]"',
            "Did you mean STEP? The text was read as C-SPARQL.",
        ),
        (
            "SELECT ?s { STREAM <s> [RANGE 10s] ?s ?p ?o }",
            Span(1, 36),
            '"{"',
            "The text was read as CQELS-QL.",
        ),
        (
            "SELECT ?s FROM NAMED STREAM <s> { ?s ?p ?o }",
            Span(1, 33),
            '"["',
            "A window stands in brackets, such as [RANGE PT10S STEP PT5S]. "
            "The text was read as SPARQLstream.",
        ),
    ],
)
def test_an_error_is_told_in_the_words_of_the_dialect(
    text: str, span: Span, expected: str, hint: str
) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse(text)
    assert (caught.value.span, caught.value.hint) == (span, hint)
    assert expected in caught.value.expected


def test_a_dialect_that_is_given_does_not_guess() -> None:
    with pytest.raises(QueryError) as caught:
        parse("SELECT ?s FROM STREAM <s> [NOW] { ?s ?p ?o }", "rspql")
    assert "was read as" not in str(caught.value)


def test_all_dialects_have_a_name_a_title_and_endings_of_their_own() -> None:
    endings = [e for d in DIALECTS.values() for e in d.endings]
    assert len(set(endings)) == len(endings)
    assert set(DIALECTS) == {"rspql", "cqels", "cqels2", "csparql", "sparqlstream", "cql", "stream"}


LONG_RUNS = {
    "digits": "9", "dots": "a.", "hyphens": "a-", "escaped quotes": '"\\"', "open string": '\\"',
    "open long string": '\\"""', "streams": "NAMED STREAM ", "names": "a:%",
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("run", LONG_RUNS.values(), ids=LONG_RUNS)
@pytest.mark.parametrize("quote", ["", '"', '"""'])
def test_a_long_run_is_read_once(run: str, quote: str) -> None:
    """A megabyte would take hours if a pattern were tried from each of its characters."""
    text = f"SELECT * {{ ?s ?p {quote}{run * (1_000_000 // len(run))} }} ("
    assert recognise(text) is not None
    assert evidence(text) is not None
    find_unclosed_bracket(text)


def test_words_in_runs_of_letters_and_signs_are_words() -> None:
    assert recognise("Select-x From.a 1e5").name == recognise("Select x From a").name == "cql"
    assert recognise("FROM NAMED STREAM x:y { GRAPH x.y:z }").name == "csparql"
