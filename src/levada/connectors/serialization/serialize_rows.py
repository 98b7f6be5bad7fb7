"""Serializes small batches, a term at a time: the slow twin of the vectorised serialization, and
faster than it for few rows.

A vectorised call costs some milliseconds for any number of rows. With ten thousand queries that
each have a row or two an epoch that would be most of the work. Here a row costs some microseconds.
Both write the same bytes: each is the other's oracle in the tests. At ``MAX_LOOPED_ROWS`` rows
their costs are equal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from levada.core.event_time import TIMELESS
from levada.core.rdf_terms import XSD, Blank, Iri, Literal, parse_term

MAX_LOOPED_ROWS = 200  # rows
_LITERAL = re.compile(r'("(?:.*)")(?:@([A-Za-z0-9-]+)|\^\^<([^>]*)>)?', re.DOTALL)
_NUMBER = re.compile(
    r'"(?:([+-]?[0-9]+)"\^\^<X#integer>|([+-]?[0-9]*\.[0-9]+)"\^\^<X#decimal>'
    r'|([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eE][+-]?[0-9]+)"\^\^<X#double>)'.replace(
        "X#", re.escape(XSD)
    )
)
Text = str | None


@lru_cache(1 << 14)
def json_term(text: str) -> str:
    """Returns a term as a JSON object.

    >>> json_term("_:b")
    '{"type": "bnode", "value": "b"}'
    """
    if match := _LITERAL.fullmatch(text):
        quoted, language, datatype = match.groups()
        if language:
            return f'{{"type": "literal", "value": {quoted}, "xml:lang": "{language}"}}'
        tail = f', "datatype": "{datatype}"}}' if datatype else "}"
        return f'{{"type": "literal", "value": {quoted}{tail}'
    term = parse_term(text)
    if isinstance(term, Blank):
        return f'{{"type": "bnode", "value": "{term.label}"}}'
    assert isinstance(term, Iri), "a term is a literal, a blank node or an IRI"
    return f'{{"type": "uri", "value": {json.dumps(term.value, ensure_ascii=False)}}}'


@lru_cache(1 << 14)
def csv_value(text: str) -> str:
    """Returns a term as a CSV field."""
    match parse_term(text):
        case Iri(value):
            return csv_field(value)
        case Literal(lexical):
            return csv_field(lexical)
        case Blank():
            return csv_field(text)


def csv_field(value: str) -> str:
    """Returns a plain text as a CSV field, in quotes if it needs them.

    >>> csv_field("a, b")
    '"a, b"'
    """
    return '"' + value.replace('"', '""') + '"' if any(c in value for c in '",\r\n') else value


@lru_cache(1 << 14)
def tsv_value(text: str) -> str:
    """Returns a term as a TSV field; plain numbers in their short Turtle form."""
    match = _NUMBER.fullmatch(text)
    return next(filter(None, match.groups())) if match else text


Row = tuple[int, int, tuple[Text, ...]]  # report, sign, terms


def json_lines(
    query: str, variables: Sequence[str], rows: Sequence[Row], *, relation: bool
) -> Iterator[str]:
    """Yields NDJSON lines of solutions that are sorted by report, and by sign within one."""
    names = [json.dumps(name, ensure_ascii=False) for name in variables]
    prefix = f'{{"query": {json.dumps(query, ensure_ascii=False)}, "report": '
    head = json.dumps({"vars": list(variables)}, ensure_ascii=False)
    for (report, sign), members in groupby(rows, key=lambda row: row[:2]):
        change = f', "change": "{word(sign)}"' if relation else ""
        bindings = ", ".join(_binding(names, terms) for _, _, terms in members)
        results = f'"results": {{"bindings": [{bindings}]}}'
        yield f'{prefix}{json_report(report)}{change}, "head": {head}, {results}}}\n'


def _binding(names: Sequence[str], terms: tuple[Text, ...]) -> str:
    bound = zip(names, terms, strict=True)
    return (
        "{"
        + ", ".join(f"{name}: {json_term(text)}" for name, text in bound if text is not None)
        + "}"
    )


def table_lines(
    separator: str, convert: Callable[[str], str], rows: Sequence[Row], *, relation: bool
) -> Iterator[str]:
    """Yields CSV or TSV lines of solutions in order."""
    for report, sign, terms in rows:
        change = [word(sign)] if relation else []
        fields = ("" if text is None else convert(text) for text in terms)
        yield separator.join(["" if report == TIMELESS else str(report), *change, *fields]) + "\n"


def json_report(report: int) -> str:
    """Returns a report time; null for that of a query without windows.

    >>> json_report(TIMELESS), json_report(5)
    ('null', '5')
    """
    return "null" if report == TIMELESS else str(report)


def word(sign: int) -> str:
    """Returns the word for a sign."""
    return "insert" if sign > 0 else "delete"
