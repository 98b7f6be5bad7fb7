"""How a level of a query is kept: by its reports, by changes, or instant by instant (design, section 2).

A level is a query with its own windows: the query itself, or one within it (``Derived``). Reports are known from all elements of
a stream, or from closes; the rows of a query within the query are known only where they are made, so what reads them works by
changes. So do groups, DISTINCT and Except over windows that report on every change: the work of a report is what changes at
it, not what the windows hold.
"""

from __future__ import annotations

from enum import StrEnum

from levada.algebra import nodes as a
from levada.algebra.incremental import derived, momentary, monotone, not_by_changes, over_tuples


class Mode(StrEnum):
    """How snapshot operators see their inputs."""

    REPORTS = "reports"
    CHANGES = "changes"
    INSTANT = "instant"


def top(query: a.Query) -> tuple[int, ...]:
    """The windows of the query itself: those that are below no other."""
    below = {w for on in query.windows for w in on.beneath}
    return tuple(w for w in range(len(query.windows)) if w not in below)


def mode_of(query: a.Query, pattern: a.Node, output: a.Output, own: tuple[int, ...], *, every: bool) -> Mode:
    """The mode of a level; ``every``: empty reports are shown."""
    if query.form is not a.Form.SELECT or every or query.reports != a.Reporting() or not over_tuples(pattern):
        return Mode.REPORTS
    if output is a.Output.RSTREAM:
        return Mode.INSTANT if momentary(pattern, query.windows) else Mode.REPORTS
    on_close = all(query.windows[w].window.kind.on_close for w in own)
    if derived(pattern) or not (on_close or monotone(pattern)):
        return Mode.REPORTS if not_by_changes(pattern) else Mode.CHANGES
    return Mode.REPORTS
