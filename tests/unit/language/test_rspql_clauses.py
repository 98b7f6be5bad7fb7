"""RSP-QL's clauses: REGISTER, windows and their durations."""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.errors import QuerySyntaxError, Span
from levada.language import parse
from levada.language.sparql import ast
from levada.language.sparql.build.windows import milliseconds

CITYBENCH = Path(__file__).parents[4] / "shared/data/rsp4j/csparql2/src/test/resources/citybench"

needs_citybench = pytest.mark.skipif(
    not CITYBENCH.is_dir(), reason="RSP4J's queries are not there: ../shared/data/rsp4j is absent"
)


def spec(text: str) -> ast.WindowSpec:
    return (
        parse(f"ASK FROM NAMED WINDOW <w> ON <s> [{text}] {{ WINDOW <w> {{ ?s ?p ?o }} }}")
        .windows[0]
        .spec
    )


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("RANGE PT10S STEP PT5S", ast.Range(10_000, 5_000)),
        ("range PT1.5S step PT0.25S", ast.Range(1_500, 250)),
        ("RANGE P1DT2H", ast.Range(93_600_000, None)),
        ("TRIPLES 7", ast.LastTriples(7)),
        ("ELEMENTS 7", ast.LastTriples(7)),
        ("elements 7 step 3", ast.LastTriples(7, 3)),
        ("FROM NOW-PT35M TO NOW-PT5M", ast.Range(2_100_000, None, 300_000)),
        ("from now - PT10S to now step PT5S", ast.Range(10_000, 5_000)),
        ("SESSION PT10M", ast.Session(600_000)),
        ("NOW", ast.Instant.NOW),
        (" all ", ast.Instant.ALL),
    ],
)
def test_what_stands_in_brackets(text: str, meaning: ast.WindowSpec) -> None:
    assert spec(text) == meaning


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        (
            "RANGE P1M STEP PT5S",
            "P1M has years or months, whose length is not fixed; PT1M would be minutes.",
            41,
        ),
        (
            "RANGE PT5S STEP P1Y",
            "P1Y has years or months, whose length is not fixed; use days.",
            51,
        ),
        ("RANGE PT0S", "PT0S is not positive.", 41),
        ("RANGE -PT5S", "-PT5S is not positive.", 41),
        ("RANGE PT0.0005S", "PT0.0005S is finer than a millisecond.", 41),
        ("RANGE PT", "PT is not an ISO 8601 duration such as PT10S or P1DT2H.", 41),
        ("RANGE P10S", "P10S is not an ISO 8601 duration such as PT10S or P1DT2H.", 41),
        (
            "RANGE P99999999999999999D",
            "P99999999999999999D is longer than event times reach; use ALL.",
            41,
        ),
        (
            "FROM NOW-PT5S TO NOW-PT6S",
            "A window in the past ends after it starts: FROM is longer ago than TO.",
            40,
        ),
        ("FROM NOW+PT5S TO NOW", "A window does not reach into the future: NOW-PT5M.", 43),
        (
            "FROM NOW-P1Y TO NOW",
            "P1Y has years or months, whose length is not fixed; use days.",
            44,
        ),
        ("SESSION PT0S", "PT0S is not positive.", 43),
        ("ELEMENTS 5 STEP 0", "A step is at least one triple.", 51),
        ("TRIPLES 0", "A window of the last triples holds at least one.", 43),
    ],
)
def test_a_wrong_duration_is_an_error_at_its_place(text: str, message: str, column: int) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        spec(text)
    assert (caught.value.message, caught.value.span) == (message, Span(1, column))


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("PT1S", 1_000),
        ("PT1M", 60_000),
        ("PT1H1M1.001S", 3_661_001),
        ("P1D", 86_400_000),
        ("P2W", 1_209_600_000),
        ("P0.5D", 43_200_000),
        ("PT0.1S", 100),
        ("+PT1S", 1_000),
    ],
)
def test_lengths(text: str, ms: int) -> None:
    assert milliseconds(text) == ms


def test_windows_and_graphs_in_any_order() -> None:
    unit = parse(
        "PREFIX : <http://e/> REGISTER DSTREAM :out AS SELECT * "
        "FROM NAMED WINDOW :w ON STREAM :s [NOW] FROM <g>\n"
        "FROM NAMED <h> FROM NAMED WINDOW <v> ON <s> [ALL] { WINDOW :w { ?s ?p ?o } WINDOW ?x { } }"
    )
    assert unit.register is not None
    assert (unit.register.operator, str(unit.register.name.term)) == ("DSTREAM", "<http://e/out>")
    assert [(str(w.name.term), str(w.stream.term), w.spec) for w in unit.windows] == [
        ("<http://e/w>", "<http://e/s>", ast.Instant.NOW),
        ("<v>", "<s>", ast.Instant.ALL),
    ]
    assert [(str(d.graph.term), d.named) for d in unit.datasets] == [("<g>", False), ("<h>", True)]
    assert (unit.windows[1].span, unit.datasets[1].span) == (Span(2, 16), Span(2, 1))


def test_words_of_windows_are_no_reserved_words() -> None:
    text = "PREFIX range: <r> PREFIX now: <n> SELECT ?now ?step { ?now range:x now:y }"
    assert parse(text).where is not None


@needs_citybench
def test_the_citybench_queries_parse() -> None:
    wrong = {"q12.rspql"}
    found = sorted(path for path in CITYBENCH.glob("*.rspql") if path.name not in wrong)
    assert len(found) == 10
    for path in found:
        assert parse(path.read_text()).windows, path.name


@needs_citybench
def test_a_citybench_query_that_shows_what_it_does_not_group_by_is_refused() -> None:
    with pytest.raises(QuerySyntaxError, match="neither a key of GROUP BY"):
        parse((CITYBENCH / "q12.rspql").read_text())


@pytest.mark.parametrize("form", ["SELECT ISTREAM ?s", "CONSTRUCT ISTREAM { ?s ?p ?o }"])
def test_output_beside_the_form(form: str) -> None:
    rest = "FROM NAMED WINDOW <w> ON <s> [ELEMENTS 10 STEP 2] WHERE { WINDOW <w> { ?s ?p ?o } }"
    unit = parse(f"REGISTER STREAM <o> AS {form} {rest}")
    assert unit.register is not None
    assert (unit.output, unit.register.operator) == ("ISTREAM", "ISTREAM")
    assert parse(f"REGISTER ISTREAM <o> AS {form} {rest}").output == "ISTREAM"
    with pytest.raises(QuerySyntaxError, match="REGISTER says DSTREAM") as refused:
        parse(f"REGISTER DSTREAM <o> AS {form} {rest}")
    assert refused.value.span is not None
    assert refused.value.span.column == 25 + form.index("ISTREAM")
