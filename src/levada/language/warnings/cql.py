"""Warns about probable slips in a CQL query: windows with gaps, numbers that look like
milliseconds, and a bare Union or Except, which SQL reads in another way.

Only a text that slides, combines rows so, or has a long number after Range, is examined: parsing it
again costs a millisecond.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from levada.core.event_time import shown_duration
from levada.language.cql.ast import (
    Combination,
    Script,
    Statement,
    Table,
    WindowSpec,
    tables_of,
)
from levada.language.cql.parser import parse_script
from levada.language.sparql.source_text import place_of
from levada.language.warnings.sparql import MINUTES, bare_number, capital_minutes
from levada.language.warnings.warning import QueryWarning, sort_by_place

_BARE = re.compile(r"\[\s*Range\s+(\d{5,})\s*(?:Slide\b|\])", re.IGNORECASE)
_BAG = re.compile(r"\b(Union|Except)\b(?!\s+(?:All|Distinct)\b)", re.IGNORECASE)
_BAG_MESSAGES = {
    "Union": "Union keeps equal rows in CQL, and in SQL it does not.",
    "Except": "Except takes one row away for each on its right in CQL, and in SQL all equal ones.",
}
_SLIDE = re.compile(r"\bSlide\b", re.IGNORECASE)


def warnings_of_cql(text: str, *, is_sql: bool = True) -> tuple[QueryWarning, ...]:
    """Returns the warnings about a script that can be parsed, in the order of their places.
    ``is_sql``: its author may expect SQL's meaning.

    >>> warnings_of_cql("Select k From A [Range 90000]")[0].message
    'A number alone counts seconds: 90000 is P1DT1H.'
    """
    bare = list(_BARE.finditer(text))
    bags = list(_BAG.finditer(text)) if is_sql else []
    if not (bare or bags or _SLIDE.search(text) or MINUTES.search(text)):
        return ()
    script = parse_script(text)
    windows = [table.window for table in _tables(script)]
    lengths = {window.range for window in windows}
    warnings = [w for window in windows for w in _gaps(window)]
    for number in bare:
        if int(number[1]) * 1000 in lengths:
            warnings += bare_number(number[1], place_of(text, number.start(1)))
    if bags:
        combined = {(c.span.line, c.span.column) for c in _combinations(script)}
        for bag in bags:
            span, word = place_of(text, bag.start()), bag[1].capitalize()
            if (span.line, span.column) in combined:
                hint = f"Write {word} All, or {word} Distinct."
                warnings.append(QueryWarning(_BAG_MESSAGES[word], span, hint))
    slides = {window.slide for window in windows if window.slide}
    warnings += capital_minutes(text, {*(r for r in lengths if r), *slides})
    return sort_by_place(warnings)


def _gaps(window: WindowSpec) -> Iterator[QueryWarning]:
    if window.slide > window.range:
        gap, each = shown_duration(window.slide - window.range), shown_duration(window.slide)
        yield QueryWarning(
            f"{gap} of each {each} are in no window: Slide is longer than Range.", window.span
        )


def _combinations(script: Script) -> Iterator[Combination]:
    """Yields where rows of two queries are combined, outside of queries in brackets."""
    waiting = [view.query.body for view in script.views]
    waiting += [query.query.body for query in script.queries]
    while waiting:
        body = waiting.pop()
        if isinstance(body, Combination):
            yield body
            waiting += [side for side in (body.left, body.right) if isinstance(side, Combination)]


def _tables(script: Script) -> Iterator[Table]:
    for statement in [view.query for view in script.views] + [q.query for q in script.queries]:
        yield from _of_statement(statement)


def _of_statement(statement: Statement) -> Iterator[Table]:
    body = statement.body
    joins = () if isinstance(body, Combination) else body.tables
    tables = _sides(body) if isinstance(body, Combination) else chain(*map(tables_of, joins))
    for table in tables:
        yield table
        if table.query is not None:
            yield from _of_statement(table.query)


def _sides(body: Combination) -> Iterator[Table]:
    for side in (body.left, body.right):
        if isinstance(side, Combination):
            yield from _sides(side)
        else:
            yield side
