"""The cells of result tables on the terminal: terms and times in a short form for people.

An IRI is shortened by known prefixes; a literal is its lexical form. Cost: Python for each cell
that is shown, of which there are few.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal as Choice

import polars as pl
from rich.table import Table
from rich.text import Text

from levada.connectors.serialization.columnar_tables import table
from levada.connectors.serialization.serialize import Batch
from levada.core.event_time import instant
from levada.core.rdf_terms import Literal, parse_term

Times = Choice["iso", "ms"]
Prefixes = Mapping[str, str]  # names without their colon -> IRIs
_DECLARED = re.compile(r"\bprefix\s+([\w.-]*):\s*<([^<>\s]*)>", re.IGNORECASE)
_LOCAL = re.compile(r"[\w-]+")
_CHANGES = {1: "+", -1: "-"}


def prefixes_of(text: str) -> dict[str, str]:
    """Returns the prefixes that a query's text declares.

    >>> prefixes_of("PREFIX : <http://e/> ASK { }")
    {'': 'http://e/'}
    """
    return dict(_DECLARED.findall(text))


def term_cell(text: str | None, prefixes: Prefixes) -> Text:
    """Converts a term's N-Triples text to a cell; None becomes an empty one.

    >>> str(term_cell("<http://e/a>", {"": "http://e/"})), str(term_cell('"5"@en', {}))
    (':a', '5')
    """
    if text is None:
        return Text("")
    if not text.startswith(("<", '"', "_")):
        return Text(text)
    term = parse_term(text)
    if isinstance(term, Literal):
        return Text(term.lexical)
    return Text(_short(text, prefixes))


def _short(text: str, prefixes: Prefixes) -> str:
    iri = text[1:-1] if text.startswith("<") else text
    for name, namespace in prefixes.items():
        if namespace and iri.startswith(namespace) and _LOCAL.fullmatch(iri[len(namespace) :]):
            return f"{name}:{iri[len(namespace) :]}"
    return iri


def time_cell(report: int | None, times: Times) -> str:
    """Returns a report's time; "" for the answer of a query without windows.

    >>> time_cell(1500, "iso"), time_cell(1500, "ms"), time_cell(None, "ms")
    ('1970-01-01T00:00:01.500Z', '1500', '')
    """
    if report is None:
        return ""
    return instant(report) if times == "iso" else str(report)


def rows_of(batch: Batch) -> pl.DataFrame:
    """Converts a batch to rows of texts: ``report`` (ms), a relation's ``change``, then the
    columns.
    """
    return table(batch)


def grid(frame: pl.DataFrame, times: Times, prefixes: Prefixes, cut: int | None = None) -> Table:
    """Returns rows of texts as a table. ``cut``: the row before which others are left out."""
    heads = [name for name in frame.columns if name != "report" or frame["report"].count()]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold", no_wrap=head == "report")
    for i, row in enumerate(frame.select(heads).iter_rows()):
        if i == cut:
            table.add_row(*("..." for _ in heads))
        table.add_row(*(_cell(head, value, times, prefixes) for head, value in _pairs(heads, row)))
    return table


def _pairs(heads: Sequence[str], row: Sequence[object]) -> list[tuple[str, object]]:
    return list(zip(heads, row, strict=True))


def _cell(head: str, value: object, times: Times, prefixes: Prefixes) -> Text:
    if head == "report":
        return Text(time_cell(value if isinstance(value, int) else None, times))
    if isinstance(value, bool):
        return Text(str(value).lower())
    if isinstance(value, int):
        return Text(_CHANGES.get(value, str(value)))
    return term_cell(None if value is None else str(value), prefixes)
