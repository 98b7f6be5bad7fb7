"""A query for each row of a table: the row's values replace the columns in the text.

    SELECT ?x FROM NAMED WINDOW <w> ON <e:s> [RANGE PT1M STEP PT1M]
    WHERE { WINDOW <w> { <http://e/{{sensor}}> <e:temp> ?x FILTER(?x > {{threshold}}) } }

A row's query is exactly that of its text, so results, restarts and errors are those of separate
queries. That they are planned once follows from the texts (``query_templates``).
"""

from __future__ import annotations

import datetime
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from levada.core.frozen import frozen
from levada.core.names import check_query_name
from levada.core.rdf_terms import XSD
from levada.engine.query_request import QueryRequest
from levada.engine.templates.parameter_tables import Rows, table_of
from levada.errors import LevadaError, UsageError, near
from levada.language.dialects.detect import dialect_of, is_cql
from levada.plan.logical.query_options import QueryOptions

# Texts with columns of a table in them: ``{{column}}``, which has no meaning in any of the
# languages.
#
#     <http://e/{{sensor}}>       in an IRI: unchanged; characters that IRIs forbid are errors
#     "{{name}}"                  in a string: with the escapes that it needs
#     ?v > {{threshold}}          alone: a number, a truth value, an instant; a text is parsed as a
#                                 term (<e:a>, "a"@en), a number or a word
#     PT{{width}}S                within a word: a number or a word
#
# A row's query *is* the text with the row's values. No value ends its string or IRI, or becomes
# more than one term. Neither quotes nor ``"``, which SPARQL decodes before parsing, do that. Nor
# does a sign after a sign, which is a comment in CQL. ``$column`` would be a variable in SPARQL,
# and one brace a group.


_LISTS = (list, tuple, set, np.ndarray, pl.Series)
_HOLE = re.compile(r"\{\{\s*([^\W\d]\w*)\s*\}\}")
_TOKEN = re.compile(
    r"""(?P<iri><(?:[^<>"{}|^`\\\s]|\{\{\s*\w+\s*\}\})*>)
    |(?P<comment>\#[^\n\r]*)
    |(?P<text>\"{3}(?:[^"\\]|\\.|"(?!""))*\"{3}|'''(?:[^'\\]|\\.|'(?!''))*'''
        |"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<hole>\{\{\s*[^\W\d]\w*\s*\}\})""",
    re.VERBOSE | re.DOTALL,
)
_TOKEN_OF_CQL = re.compile(
    r"""(?P<comment>\#[^\n]*|--[^\n]*|/\*.*?\*/)
    |(?P<text>"[^"]*"|'[^']*')
    |(?P<hole>\{\{\s*[^\W\d]\w*\s*\}\})""",
    re.VERBOSE | re.DOTALL,
)
_NOT_IN_IRIS = re.compile(r"[\x00-\x20<>\"{}|^`\\]")
_IRI = r"""<[^<>"{}|^`\\\x00-\x20]*>"""
_TERM = re.compile(rf"""{_IRI}|"(?:[^"\\\n\r]|\\.)*"(?:@[A-Za-z-]+[\w-]*|\^\^{_IRI})?""")
_ESCAPED = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|.)", re.DOTALL)
_WORD = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|\w[\w.]*")
_NAME = re.compile(r"(?:[^\W\d][\w.-]*)?:(?:[\w:](?:[\w.:-]*[\w:-])?)?")
_LOCAL = re.compile(r"[\w:](?:[\w.:-]*[\w:-])?")
_IN_A_NAME = re.compile(r"(?<![\w?$])[\w-]*:[\w.:-]*\Z")
_DIGITS = 14_000  # bits of an integer that Python writes
_ESCAPES = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
)

Write = Callable[[Any], str]


class ColumnValueError(ValueError):
    """A value that cannot be in the place of its column. The message is the end of a sentence."""


@frozen
class TextTemplate:
    """A text with columns in it. ``pieces``: the text around them. ``writers``: the writer of each
    column's values.
    """

    pieces: tuple[str, ...]
    columns: tuple[str, ...]
    writers: tuple[Write, ...]

    def fill(self, row: Sequence[Any], places: Sequence[int], number: int) -> str:
        """Returns the text of a row. ``places``: the indexes of its columns. Raises ``UsageError``,
        with row and column.
        """
        parts = [self.pieces[0]]
        for i, (write, place) in enumerate(zip(self.writers, places, strict=True)):
            try:
                parts.append(write(_native(row[place])))
            except ColumnValueError as fault:
                message = f"Row {number}, column {self.columns[i]}: {fault}."
                raise UsageError(message, hint=_hint(row[place], self.columns[i])) from None
            parts.append(self.pieces[i + 1])
        return "".join(parts)


def parse_text_template(text: str, *, cql: bool) -> TextTemplate:
    """Parses the columns in a query's text.

    >>> parse_text_template("?x <e:{{p}}> {{v}}", cql=False).columns
    ('p', 'v')
    """
    writers: Mapping[str, Write] = {"iri": _in_iri, "text": _in_cql if cql else _in_text}
    pieces, columns, hole_writers, at = [], [], [], 0
    for token in (_TOKEN_OF_CQL if cql else _TOKEN).finditer(text):
        kind = str(token.lastgroup)
        if kind == "comment":
            continue
        for hole in _HOLE.finditer(text, token.start(), token.end()):
            pieces.append(text[at : hole.start()])
            columns.append(hole.group(1))
            hole_writers.append(writers.get(kind) or _writer_behind(text[: hole.start()], cql=cql))
            at = hole.end()
    return TextTemplate((*pieces, text[at:]), tuple(columns), tuple(hole_writers))


def parse_name_template(name: str) -> TextTemplate:
    """Parses the columns in the name of queries."""
    parts = _HOLE.split(name)
    columns = tuple(parts[1::2])
    return TextTemplate(tuple(parts[::2]), columns, (_plain,) * len(columns))


def without_columns(text: str) -> str:
    """Returns the text with a number in place of each column, for the detection of its language."""
    return _HOLE.sub("0", text)


def places_of(columns: Sequence[str], there: Sequence[str]) -> tuple[int, ...]:
    """Returns the indexes of columns in a table. Raises ``UsageError`` for a missing one."""
    for column in columns:
        if column not in there:
            hint = near(column, there)
            raise UsageError(f"The table has no column {column}.", hint=hint)
    return tuple([there.index(column) for column in columns])


def _writer_behind(before: str, *, cql: bool) -> Write:
    """Returns the writer of a value that is alone, or in a word, after this text."""
    if cql:
        return _behind_a_sign if before.endswith("-") else _alone_cql
    return _in_a_name if _IN_A_NAME.search(before) else _alone


def _native(value: Any) -> Any:
    """Converts a number of NumPy to Python."""
    return value.item() if isinstance(value, np.generic) else value


def _plain(value: Any) -> str:
    """Returns a value as characters, without escapes."""
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case int():
            return _whole(value)
        case Decimal() if value.is_finite():
            return str(value)
        case float() if math.isfinite(value):
            return repr(value)
        case datetime.datetime():
            return _instant(value)
        case datetime.date():
            return value.isoformat()
        case None:
            raise ColumnValueError("there is no value")
        case _ if isinstance(value, _LISTS):
            raise ColumnValueError("it is a list, and a column stands for one value")
        case _:
            raise ColumnValueError(f"{value!r} is no text, number or instant")


def _whole(value: int) -> str:
    if value.bit_length() > _DIGITS:
        raise ColumnValueError(f"it has more than {_DIGITS:,} bits")
    return str(value)


def _in_iri(value: Any) -> str:
    text = _plain(value)
    if bad := _NOT_IN_IRIS.search(text):
        raise ColumnValueError(f"{text!r} cannot stand in an IRI, which has no {bad.group()!r}")
    return text


def _in_text(value: Any) -> str:
    return _plain(value).translate(_ESCAPES)


def _in_cql(value: Any) -> str:
    text = _plain(value)
    if "'" in text or '"' in text:
        raise ColumnValueError(f"{text!r} has quotes, which cannot stand in a string of CQL")
    return text


def _alone(value: Any) -> str:
    """Returns a value as SPARQL writes it."""
    match value:
        case float():
            text = repr(value)
            if not math.isfinite(value):
                named = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}[text]
                return f'"{named}"^^<{XSD}double>'
            return text if "e" in text else f"{text}e0"
        case Decimal() if value.is_finite():
            text = f"{value:f}"
            return text if "." in text else f"{text}.0"
        case datetime.datetime():
            return f'"{_instant(value)}"^^<{XSD}dateTime>'
        case datetime.date():
            return f'"{value.isoformat()}"^^<{XSD}date>'
        case str() if _TERM.fullmatch(value):
            return _ESCAPED.sub(_unescape, value)
        case str() if not (_WORD.fullmatch(value) or _NAME.fullmatch(value)):
            raise ColumnValueError(f"{value!r} is no term")
        case _:
            return _plain(value)


def _unescape(match: re.Match[str]) -> str:
    """Decodes the escape of a character by its number, and escapes the character if necessary."""
    number = int(match.group(1) or match.group(2) or "0", 16)
    if not number:
        return match.group()
    if number > sys.maxunicode:
        raise ColumnValueError(f"there is no character {match.group()}")
    return chr(number).translate(_ESCAPES)


def _in_a_name(value: Any) -> str:
    """Returns a value within a prefixed name, or after its colon."""
    if isinstance(value, str) and not _LOCAL.fullmatch(value):
        raise ColumnValueError(f"{value!r} cannot stand in a name with a prefix")
    return _plain(value) if isinstance(value, str) else _alone(value)


def _alone_cql(value: Any) -> str:
    """Returns a value as CQL writes it."""
    match value:
        case bool() | datetime.date():
            raise ColumnValueError(f"CQL has no constant for {value!r}")
        case float() if math.isfinite(value):
            return f"{Decimal(repr(value)):f}"
        case str() if not _WORD.fullmatch(value):
            raise ColumnValueError(f"{value!r} is no number or word")
        case _:
            return _plain(value)


def _behind_a_sign(value: Any) -> str:
    """Returns a value after a minus, with a space, since two minuses begin a comment."""
    text = _alone_cql(value)
    return f" {text}" if text.startswith("-") else text


def _instant(value: datetime.datetime) -> str:
    if value.tzinfo is None:
        raise ColumnValueError(f"{value.isoformat()} has no time zone")
    return value.isoformat()


def _hint(value: object, column: str) -> str:
    if isinstance(value, str):
        return f"Say <{{{{{column}}}}}> for an IRI, '{{{{{column}}}}}' for a text."
    if isinstance(value, _LISTS):
        return (
            "Give each of its values a column, as in IN ({{first}}, {{second}}), or register_all "
            "a text for each row."
        )
    return ""


@frozen
class RowQueryTemplate:
    """The text and the name of each row's query, with columns in them. With ``name`` "" the
    function ``free`` names the queries.
    """

    text: str
    name: str = ""
    dialect: str | None = None

    def make_requests(
        self, table: Rows, options: QueryOptions, free: Callable[[int], str]
    ) -> list[QueryRequest]:
        """Returns the queries of a table. Raises ``UsageError``, with row and column."""
        there = table_of(table)
        spoken = dialect_of(without_columns(self.text), self.dialect).name
        text, name = (
            parse_text_template(self.text, cql=is_cql(spoken)),
            parse_name_template(self.name),
        )
        if not text.columns:
            raise UsageError(
                "The text names no column of the table.",
                hint="A column stands in it as {{column}}, as in FILTER(?v > {{threshold}}).",
            )
        columns = list(dict.fromkeys((*text.columns, *name.columns)))
        if not there.columns and not len(there.held):
            return []  # an empty list has no columns, either
        places_of(columns, there.columns)
        of_text, of_name = (places_of(x.columns, columns) for x in (text, name))
        requests: list[QueryRequest] = []
        for number, row in enumerate(there.rows(columns), 1):
            called = name.fill(row, of_name, number) if self.name else free(number)
            written = text.fill(row, of_text, number)
            requests.append(QueryRequest(written, called, self.dialect, options))
        _check_names(requests)
        return requests


def _check_names(batch: Sequence[QueryRequest]) -> None:
    """Raises ``UsageError`` unless the queries of all rows have different names."""
    rows: dict[str, int] = {}
    for number, asked in enumerate(batch, 1):
        with _of_row(number):
            check_query_name(asked.name)
        first = rows.setdefault(asked.name.casefold(), number)
        if first != number:
            raise UsageError(
                f"Rows {first} and {number} are both called {asked.name}.",
                hint="Say name= with a column that tells them apart, as in hot-{{sensor}}.",
            )


@contextmanager
def _of_row(number: int) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise UsageError(f"Row {number}: {error.message}", hint=error.hint) from None


@contextmanager
def name_failing_row(batch: Sequence[QueryRequest]) -> Iterator[None]:
    """Adds the row's number to an error about its query."""
    try:
        yield
    except LevadaError as error:
        notes = {*getattr(error, "__notes__", ())}
        for number, asked in enumerate(batch, 1):
            if asked.name in notes:
                error.add_note(f"row {number} of the table")
        raise
