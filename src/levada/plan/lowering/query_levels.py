"""How a level of a query is kept: by its reports, by changes, or instant by instant; and whether
its report times must be enumerated.

A level is a query with its own windows: the query itself, or one within it (``SubQuery``). Reports
are known from all elements of a stream, or from closes; the rows of a query within the query are
known only where they are made, so what reads them works by changes.

Which kind of group, then: by changes (``Running``) where windows report on every change, and above
queries within the query, since there the work of a report is what changes at it, not what the
windows hold (whole results of such are what stands at each report: ``Standing``, ``Snapshot``); by
panes (``Panes``) where all windows report on close; per report (``RGroup``) where an aggregate does
not add up, rows are of reports already, or a clock says the reports. DISTINCT and Except are as
groups: by changes or per report.

Report times are *enumerated* where they follow from all elements, and not from the matches alone:
what compares whole results, and a part that is made of static data and constants alone, say
something at reports at which nothing matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from levada.core.frozen import frozen
from levada.core.query_model import Form, Output, StreamWindow
from levada.plan.logical import nodes as a
from levada.plan.logical.properties import Properties


class Mode(StrEnum):
    """How snapshot operators see their inputs."""

    REPORTS = "reports"
    CHANGES = "changes"
    INSTANT = "instant"


def top_windows(query: a.Query) -> tuple[int, ...]:
    """The windows of the query itself: those that are below no other."""
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
        """Whether nothing is asked of its reports but what changes make of them."""
        return not self.show_empty and self.reports == a.Reporting()


@frozen
class Level:
    """A level as it is lowered: what is asked, and how it is kept.

    ``enumerated``: its reports follow from all elements. ``whole``: its result is kept by changes,
    but they are not what it reports. ``turning``: its parts that follow from changes are kept by
    these, up to where report rows are wanted.
    """

    asked: LevelQuery
    windows: tuple[int, ...]
    mode: Mode
    enumerated: bool
    whole: bool
    turning: bool = False


def level_of(asked: LevelQuery, properties: Properties, windows: Sequence[StreamWindow]) -> Level:
    """How a level is kept whose pattern has these properties; ``windows`` are all of the query."""
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
    """The mode of a level under its report policy."""
    if asked.form is not Form.SELECT:
        return Mode.REPORTS
    on_close = all(w.window.kind.on_close for w in level_windows)
    if not properties.over_tuples:
        return Mode.REPORTS if on_close else _mode_over_triples(asked, properties)
    if asked.is_plain and asked.output is Output.RSTREAM and properties.momentary:
        return Mode.INSTANT
    if properties.derived:
        return Mode.CHANGES
    if not asked.is_plain or asked.output is Output.RSTREAM:
        return Mode.REPORTS
    if not (on_close or properties.monotone):
        return Mode.REPORTS if properties.not_by_changes else Mode.CHANGES
    return Mode.REPORTS


def _mode_over_triples(asked: LevelQuery, properties: Properties) -> Mode:
    """The mode over RDF windows that report on change.

    A replacement of static data shows at the next report, which only those know who know all
    elements.
    """
    differences = asked.is_plain and not asked.changing and asked.output is not Output.RSTREAM
    by_changes = differences and properties.kept_by_changes and not properties.free
    return Mode.CHANGES if by_changes else Mode.REPORTS


def _reports_on_change(
    asked: LevelQuery, properties: Properties, level_windows: Sequence[StreamWindow]
) -> bool:
    """Whether a level that is kept by its reports has such at any change of its windows."""
    on_change = any(not w.window.kind.on_close for w in level_windows)
    return on_change and asked.reports.clock is None and not properties.derived


def needs_list(
    asked: LevelQuery, properties: Properties, level_windows: Sequence[StreamWindow]
) -> bool:
    """Whether the report times follow from all elements, not only from the rows that match.

    So it is if a window reports on change and more than its matches can show (RStream, or any
    snapshot operator), if a solution can exist without a match (ungrouped aggregates, ASK, parts
    without a window), if a window that never empties stands beside closes, or if differences pass
    over reports without content, as though they were not there.
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
    """Whether the last report follows from the last element, whatever it matches: closes beside a
    window that never empties.
    """
    kinds = [w.window.kind for w in level_windows]
    closes = asked.reports.clock is not None or any(k.on_close for k in kinds)
    return closes and any(k.endless for k in kinds)
