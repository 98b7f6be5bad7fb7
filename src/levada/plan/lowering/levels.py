"""How a level of a query is kept: by its reports, by changes, or instant by instant (design,
section 2).

A level is a query with its own windows: the query itself, or one within it (``Derived``). Reports
are known from all elements of a stream, or from closes; the rows of a query within the query are
known only where they are made, so what reads them works by changes. So do groups, DISTINCT and
Except over windows that report on every change: the work of a report is what changes at it, not
what the windows hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from levada.algebra import nodes as a
from levada.algebra.incremental import derived, momentary, monotone, not_by_changes, over_tuples
from levada.model.query import Form, Output
from levada.plan.lowering.listing import needs_latest, needs_list


class Mode(StrEnum):
    """How snapshot operators see their inputs."""

    REPORTS = "reports"
    CHANGES = "changes"
    INSTANT = "instant"


def top(query: a.Query) -> tuple[int, ...]:
    """The windows of the query itself: those that are below no other."""
    below = {w for on in query.windows for w in on.beneath}
    return tuple(w for w in range(len(query.windows)) if w not in below)


@dataclass(frozen=True, slots=True)
class Level:
    """A level as it is lowered: its windows, how it is kept, its report policy (``every``: with
    empty reports).

    ``listed``: its reports follow from all elements. ``whole``: its result is kept by changes, but
    they are not what it reports.
    """

    pattern: a.Node
    own: tuple[int, ...]
    mode: Mode
    reports: a.Reporting
    every: bool
    listed: bool
    whole: bool


def level_of(
    query: a.Query,
    pattern: a.Node,
    output: Output,
    own: tuple[int, ...],
    reports: a.Reporting,
    *,
    every: bool,
) -> Level:
    """The level of this pattern and output over the windows ``own`` of a query."""
    mode = mode_of(query, pattern, output, own, reports, every=every)
    whole = mode is Mode.CHANGES and (output is Output.RSTREAM or every or reports != a.Reporting())
    windows = tuple(query.windows[w] for w in own)
    alone = replace(query, pattern=pattern, output=output, windows=windows, reports=reports)
    listed = every or needs_latest(alone) if whole else mode is Mode.REPORTS and needs_list(alone)
    return Level(pattern, own, mode, reports, every, listed, whole)


def mode_of(
    query: a.Query,
    pattern: a.Node,
    output: Output,
    own: tuple[int, ...],
    reports: a.Reporting,
    *,
    every: bool,
) -> Mode:
    """The mode of a level under its report policy; ``every``: empty reports are shown."""
    plain = not every and reports == a.Reporting()
    if query.form is not Form.SELECT or not over_tuples(pattern):
        return Mode.REPORTS
    if plain and output is Output.RSTREAM and momentary(pattern, query.windows):
        return Mode.INSTANT
    if derived(pattern):
        return Mode.CHANGES
    if not plain or output is Output.RSTREAM:
        return Mode.REPORTS
    on_close = all(query.windows[w].window.kind.on_close for w in own)
    if not (on_close or monotone(pattern)):
        return Mode.REPORTS if not_by_changes(pattern) else Mode.CHANGES
    return Mode.REPORTS
