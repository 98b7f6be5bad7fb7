"""Syntax errors: the place, what stands there, what was expected, and the near miss."""

from __future__ import annotations

import pytest

from levada.errors import QuerySyntaxError, Span
from levada.language import parse


def error(text: str) -> QuerySyntaxError:
    with pytest.raises(QuerySyntaxError) as caught:
        parse(text)
    assert caught.value.text == text
    return caught.value


@pytest.mark.parametrize(
    ("text", "column", "hint"),
    [
        ("SELCT * {}", 1, "Did you mean SELECT?"),
        ("SELECTT * {}", 1, "Did you mean SELECT or SILENT?"),
        ("SELECT * WERE {}", 10, "Did you mean WHERE?"),
        ("SELECT * { ?s ?p ?o OPTONAL {} }", 21, "Did you mean OPTIONAL?"),
        ("SELECT * { ?s ?p ?o FILTR(?o) }", 21, "Did you mean FILTER?"),
        ("SELECT (STRLN(?o) AS ?n) {}", 9, "Did you mean STRLEN or STRLANG or STR?"),
        ("SELECT * {} LIMT 5", 13, "Did you mean LIMIT?"),
        ("SELECT * FROM NAMED WINDW <w> ON <s> [NOW] {}", 21, "Did you mean WINDOW?"),
        (
            "SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE PT1S STP PT1S] {}",
            51,
            "Did you mean STEP?",
        ),
        ("REGISTER RTREAM <o> AS ASK {}", 10, "Did you mean RSTREAM or STREAM or ISTREAM?"),
    ],
)
def test_a_misspelt_word_gets_a_hint(text: str, column: int, hint: str) -> None:
    caught = error(text)
    assert (caught.span, caught.hint) == (Span(1, column), hint)


@pytest.mark.parametrize(
    ("text", "column", "message", "expected"),
    [
        (
            "SELECT WHERE {}",
            8,
            "WHERE cannot stand here.",
            ("a variable", '"("', '"*"', "DISTINCT", "RSTREAM, ISTREAM or DSTREAM"),
        ),
        ("SELECT * FROM NAMED WINDOW <w> [NOW] {}", 32, '"[" cannot stand here.', ("ON",)),
        (
            "SELECT * FROM NAMED WINDOW <w> ON <s> [RANGE x STEP PT5S] {}",
            46,
            "x cannot stand here.",
            ("a number", "a duration such as PT10S", "TRIPLES"),
        ),
        (
            "SELECT * FROM NAMED WINDOW <w> ON <s> [ ] {}",
            39,
            "Nothing stands in the brackets; a window is said there, "
            "such as [RANGE PT10S STEP PT5S] or [NOW].",
            (),
        ),
        ("SELECT * {} LIMIT -1", 19, '"-1" cannot stand here.', ("a number",)),
        ("SELECT * {} ORDER ?x", 19, '"?x" cannot stand here.', ("BY",)),
        ("SELECT * { ?s ?p ?o } }", 23, '"}" cannot stand here.', None),
        (
            "SELECT * { ?s ?p 'x }",
            18,
            "The string that starts here is not closed, "
            "or has an escape that SPARQL does not know.",
            (),
        ),
        (
            "SELECT * { ?s ?p '\\x' }",
            18,
            "The string that starts here is not closed, "
            "or has an escape that SPARQL does not know.",
            (),
        ),
        (
            "SELECT * { ?s <a b> ?o }",
            15,
            "The IRI that starts here is not closed, or has a character that no IRI has.",
            (),
        ),
    ],
)
def test_what_stands_there_and_what_was_expected(
    text: str, column: int, message: str, expected: tuple[str, ...] | None
) -> None:
    caught = error(text)
    assert (caught.span, caught.message) == (Span(1, column), message)
    assert expected is None or caught.expected == expected


def test_at_most_eight_words_the_most_useful_first() -> None:
    caught = error("SELECT * { ?s ?p }")
    assert caught.expected == (
        "a variable",
        "an IRI",
        "a prefixed name",
        "a number",
        '"("',
        "a string",
        '"()"',
        '"["',
    )


def test_only_what_could_really_stand_there_is_named() -> None:
    """The parser has reduced the sum when it sees the bracket; what stood before must not count,
    nor what it merges.
    """
    caught = error("SELECT (?x AS ?y ?z) {}")
    assert caught.expected == ('")"',)


def test_the_end_comes_too_early() -> None:
    caught = error("SELECT *\n{ ?s ?p ?o \n\n")
    assert (caught.span, caught.message) == (Span(2, 11), "The query ends too early.")
    assert '"}"' in caught.expected
    assert error("").span == Span(1, 1)
    assert error("  # nothing").message == "The query ends too early."


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("ASK {\n  { ?s ?p '}' }  # }", 'The "{" in line 1, column 5 is not closed.'),
        ('ASK { FILTER(?x IN (1, """)""", 2)', 'The "(" in line 1, column 13 is not closed.'),
        ("ASK { ?s <p)> [ <q> ?o", 'The "[" in line 1, column 15 is not closed.'),
        ("PREFIX : <e>", ""),
    ],
)
def test_a_bracket_that_is_left_open_is_named(text: str, hint: str) -> None:
    caught = error(text)
    assert (caught.message, caught.hint) == ("The query ends too early.", hint)


def test_the_message_shows_the_line_and_a_caret() -> None:
    assert str(error("SELECT *\n  WERE { }")) == (
        "line 2, column 3: WERE cannot stand here.\n"
        "    WERE { }\n"
        "    ^\n"
        'expected: "{", WHERE, FROM, REPORT, T0, TICK\n'
        "Did you mean WHERE?"
    )


@pytest.mark.parametrize(
    ("text", "column", "hint"),
    [
        ("SELECT ?s, ?o {}", 10, "Variables stand one after the other, without commas."),
        ("SELECT ?my-x {}", 11, "A variable's name has letters, digits and _."),
        ("SELECT COUNT(?s) {}", 8,
         "What is computed stands in brackets and has a name: (COUNT(?x) AS ?n)."),
        ("SELECT ?s AS ?x {}", 11,
         "What is computed stands in brackets and has a name: (COUNT(?x) AS ?n)."),
        ("SELECT (COUNT(?s)) {}", 18, "What is computed has a name: (COUNT(?x) AS ?n)."),
        ("SELECT * { FILTER ?x > 1 }", 19, "A condition stands in brackets: FILTER(?x > 1)."),
        ("SELECT * { FILTER(?x == 1) }", 22, "= compares."),
        ("SELECT * { FILTER(?x <> 1) }", 22, "Write !=; there is no <>."),
        ("SELECT * { FILTER(?x => 1) }", 22, "Write >=; there is no =>."),
        ("SELECT * { FILTER(?x > 1 AND ?y) }", 26, "Did you mean &&?"),
        ("SELECT * { FILTER(lower(?x) = 'a') }", 19, "Did you mean LCASE?"),
        ("SELECT * { ?s ?p \u201ca\u201d }", 18, "Strings stand in straight quotes, \" or '."),
        ("SELECT * { ?s ?p ?o ?x ?y ?z }", 21, 'Triples are separated by ".".'),
        ("SELECT * {} LIMIT 3 ORDER BY ?x", 21,
         "The clauses stand in this order: GROUP BY, HAVING, ORDER BY, LIMIT and OFFSET, VALUES."),
        ("SELECT * {} FROM NAMED WINDOW <w> ON <s> [NOW]", 13, "FROM stands before WHERE."),
        ("ASK { STREAM [NOW] { ?s ?p ?o } }", 7,
         "A stream is read by STREAM <s> [RANGE PT10S] {..}, or by FROM NAMED WINDOW <w> and "
         "WINDOW <w> {..}."),
        ("SELECT * { FILTER(REGEX(?o)) }", 27, ""),
    ],
)  # fmt: skip
def test_what_other_languages_write(text: str, column: int, hint: str) -> None:
    caught = error(text)
    assert (caught.span, caught.hint) == (Span(1, column), hint)


def test_a_stream_without_its_window() -> None:
    caught = error("SELECT * FROM STREAM <s> WHERE { ?s ?p ?o }")
    assert caught.hint == (
        "A window stands in brackets, such as [RANGE PT10S STEP PT5S]. "
        "The text was read as C-SPARQL."
    )


def test_a_mistake_behind_many_computed_columns_is_found_at_once() -> None:
    columns = " ".join(f"(COUNT(?x{i}) AS ?n{i})" for i in range(200))
    with pytest.raises(QuerySyntaxError) as caught:
        parse(f"SELECT {columns} WHERE {{ ?a ?b ; }}")
    assert caught.value.span is not None and caught.value.span.column == len(
        f"SELECT {columns} WHERE {{ ?a ?b ;"
    )
