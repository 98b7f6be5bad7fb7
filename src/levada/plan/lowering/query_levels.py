"""Decides how a level of a query is kept (by reports, by changes, or by instants), and whether its
report times are enumerated.

A level is a query with its own windows: the query itself, or a sub-query (``SubQuery``). Reports
follow from all elements of a stream, or from closes. The rows of a sub-query are known only where
they are made, so the operators above it work by changes.

This decides the kind of GROUP BY:

- by changes (``Running``) if windows report on every change, and above sub-queries. The work of a
  report is then proportional to its changes, not to the window. Whole results are kept as the state
  at each report (``Standing``, ``Snapshot``);
- by panes (``Panes``) if all windows report on close;
- per report (``RGroup``) if an aggregate is not incremental, if rows are already report rows, or if
  a clock decides the reports.

DISTINCT and Except work like groups: by changes or per report.

Report times are *enumerated* if they follow from all elements, not from the matches alone.
Operators that compare whole results, and parts of static data and constants alone, have rows at
reports at which nothing matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from levada.core.frozen import frozen
from levada.core.query_model import Form, Output, StreamWindow
from levada.plan.logical import nodes as a
from levada.plan.logical.properties import Properties


class Mode(StrEnum):
    """The input of snapshot operators."""

    REPORTS = "reports"
    CHANGES = "changes"
    INSTANT = "instant"


def top_windows(query: a.Query) -> tuple[int, ...]:
    """Returns the windows of the query itself, which are below no other window."""
    below = {w for on in query.windows for w in on.beneath}
    return tuple(w for w in range(len(query.windows)) if w not in below)


@frozen
class LevelQuery:
    """The part of a query that a level evaluates: its pattern, its output and its reports.

    ``windows``: the indexes of the windows whose reports are written. ``show_empty``: empty reports
    are written, too. ``changing``: static data that the level reads may be replaced.
    """

    form: Form
    pattern: a.Node
    output: Output
    windows: tuple[int, ...]
    reports: a.Reporting
    show_empty: bool = False
    changing: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the reports are plain differences, without options of their own."""
        return not self.show_empty and self.reports == a.Reporting()


@frozen
class Level:
    """A level as it is lowered: the query part (``asked``) and the way in which its result is kept.

    ``enumerated``: its reports follow from all elements. ``whole``: its result is kept by changes,
    but its reports are not these changes. ``turning``: its parts that follow from changes are kept
    by changes, up to where report rows are needed.
    """

    asked: LevelQuery
    windows: tuple[int, ...]
    mode: Mode
    enumerated: bool
    whole: bool
    turning: bool = False


def level_of(asked: LevelQuery, properties: Properties, windows: Sequence[StreamWindow]) -> Level:
    """Returns how a level with these properties is kept; ``windows``: all windows of the query."""
    level_windows = [windows[w] for w in asked.windows]
    mode = mode_of(asked, properties, level_windows)
    whole = mode is Mode.CHANGES and (asked.output is Output.RSTREAM or not asked.is_plain)
    changed = asked.show_empty or needs_latest(asked, level_windows)
    reported = mode is Mode.REPORTS and needs_list(asked, properties, level_windows)
    turning = mode is Mode.REPORTS and _reports_on_change(asked, properties, level_windows)
    return Level(asked, asked.windows, mode, changed if whole else reported, whole, turning)


def mode_of(
    asked: LevelQuery, properties: Properties, level_windows: Sequence[StreamWindow]
) -> Mode:
    """Returns the mode of a level under its report policy."""
    if asked.form is not Form.SELECT:
        return Mode.REPORTS
    on_close = all(w.window.kind.on_close for w in level_windows)
    if not properties.over_tuples:
        return Mode.REPORTS if on_close else _mode_over_triples(asked, properties)
    instant = properties.momentary and not properties.per_report  # else other rows last longer
    if instant and asked.is_plain and asked.output is Output.RSTREAM:
        return Mode.INSTANT
    if properties.derived:
        return Mode.CHANGES
    if not asked.is_plain or asked.output is Output.RSTREAM:
        return Mode.REPORTS
    if not (on_close or properties.monotone):
        return Mode.REPORTS if properties.not_by_changes else Mode.CHANGES
    return Mode.REPORTS


def _mode_over_triples(asked: LevelQuery, properties: Properties) -> Mode:
    """Returns the mode over RDF windows that report on change.

    A replacement of static data shows at the next report, which is known only from all elements.
    """
    differences = asked.is_plain and not asked.changing and asked.output is not Output.RSTREAM
    by_changes = differences and properties.kept_by_changes and not properties.free
    return Mode.CHANGES if by_changes else Mode.REPORTS


def _reports_on_change(
    asked: LevelQuery, properties: Properties, level_windows: Sequence[StreamWindow]
) -> bool:
    """Whether a level kept by reports has reports at changes of its windows."""
    on_change = any(not w.window.kind.on_close for w in level_windows)
    return on_change and asked.reports.clock is None and not properties.derived


def needs_list(
    asked: LevelQuery, properties: Properties, level_windows: Sequence[StreamWindow]
) -> bool:
    """Whether the report times follow from all elements, not only from matching rows.

    They do in these cases: a window reports on change, and its reports show more than its matches
    (RStream, or a snapshot operator); a solution can exist without a match (aggregates without
    GROUP BY, ASK, parts without a window); a window that never empties is combined with closes;
    differences skip empty reports.
    """
    kinds = [w.window.kind for w in level_windows]
    periodic = asked.reports.clock is not None
    on_change = not periodic and any(not k.on_close for k in kinds)
    endless = any(k.endless for k in kinds)
    snapshot = properties.snapshot or asked.form is Form.ASK
    if on_change and (snapshot or asked.output is Output.RSTREAM):
        return True
    if endless and (periodic or any(k.on_close for k in kinds)):
        return True
    if asked.reports.nonempty and asked.output is not Output.RSTREAM:
        return True
    if asked.form is Form.ASK or properties.matchless or properties.free:
        return True
    return snapshot and properties.timeless


def needs_latest(asked: LevelQuery, level_windows: Sequence[StreamWindow]) -> bool:
    """Whether the last report follows from the last element, matching or not.

    It does if a window that never empties is combined with closes.
    """
    kinds = [w.window.kind for w in level_windows]
    closes = asked.reports.clock is not None or any(k.on_close for k in kinds)
    return closes and any(k.endless for k in kinds)
