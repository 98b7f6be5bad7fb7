"""Warns about probable slips in a CQL query: windows with gaps, and numbers that look like
milliseconds.

Only a text that slides, or has a long number after Range, is examined: parsing it again costs a
millisecond.
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
_SLIDE = re.compile(r"\bSlide\b", re.IGNORECASE)


def warnings_of_cql(text: str) -> tuple[QueryWarning, ...]:
    """Returns the warnings about a script that can be parsed, in the order of their places.

    >>> warnings_of_cql("Select k From A [Range 90000]")[0].message
    'A number alone counts seconds: 90000 is P1DT1H.'
    """
    bare = list(_BARE.finditer(text))
    if not (bare or _SLIDE.search(text) or MINUTES.search(text)):
        return ()
    windows = [table.window for table in _tables(parse_script(text))]
    lengths = {window.range for window in windows}
    warnings = [w for window in windows for w in _gaps(window)]
    for number in bare:
        if int(number[1]) * 1000 in lengths:
            warnings += bare_number(number[1], place_of(text, number.start(1)))
    slides = {window.slide for window in windows if window.slide}
    warnings += capital_minutes(text, {*(r for r in lengths if r), *slides})
    return sort_by_place(warnings)


def _gaps(window: WindowSpec) -> Iterator[QueryWarning]:
    if window.slide > window.range:
        gap, each = shown_duration(window.slide - window.range), shown_duration(window.slide)
        yield QueryWarning(
            f"{gap} of each {each} are in no window: Slide is longer than Range.", window.span
        )


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
