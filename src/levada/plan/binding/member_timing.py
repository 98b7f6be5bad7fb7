"""When the rows of a query's operators count, and when it reports: its windows, streams and start
as what members are made of.

A member's windows are those of its rows, or those of all its level's reports. Behind the windows of
a query stands ``static``, for the static graphs that may be replaced: rows carry its times, reports
know nothing of it (docs/architecture.md#a-triples-way). Where queries share a count window its rows
have a window of their numbers, too (``windows/numbers``); where they share a join over one window
with others over several, its rows have times of it for each pattern (``by_leaf``).
"""

from __future__ import annotations

from dataclasses import replace

from levada.core.event_time import Window, WindowKind
from levada.core.frozen import frozen
from levada.core.query_model import StreamWindow
from levada.plan.execution.joins import RangedChanges
from levada.plan.execution.shapes import Member
from levada.plan.logical.nodes import Query, Reporting
from levada.plan.sharing.count_window_sharing import numbers_of
from levada.plan.sharing.per_leaf_times import window_of

GRIDDED = (WindowKind.CLOSE_OPEN, WindowKind.CLOSE_CLOSED)
STATIC = StreamWindow("", "", Window(WindowKind.STATIC))


def by_range(
    kinds: tuple[WindowKind, ...], rows: tuple[int, ...] | None, member: Member
) -> RangedChanges | None:
    """What an IStream says that may be one of many with other ranges; None where its rows do not
    begin in all of their windows at once, or end otherwise than by these.
    """
    if rows is None or len(kinds) != 1 or len(member.windows) != 1 or member.nonempty:
        return None
    (window,) = member.windows
    if member.show_empty or window.to or window.t0_given:
        return None
    if window.kind is WindowKind.RANGE:
        return RangedChanges(kinds, rows)
    if window.kind not in GRIDDED:
        return None
    return RangedChanges(kinds, rows, window.step, (window.t0 + window.range) % window.step)


@frozen
class Timing:
    """The times of one query: ``start``, whether it shows empty reports (``show_empty``), and for
    members ``reread_graphs``.
    """

    query: Query
    start: int
    show_empty: bool
    reread_graphs: tuple[str | None, ...] = ()

    def without_windows(self, reread_graphs: tuple[str | None, ...]) -> Timing:
        """The times of a part that reads no window: it is answered as a query without windows."""
        return Timing(
            replace(self.query, windows=(), reports=Reporting()), self.start, True, reread_graphs
        )

    def kinds(self, level: tuple[int, ...]) -> tuple[WindowKind, ...]:
        """The kinds of the windows whose reports are those of a level, and of the clock."""
        return tuple(w.kind for w in (*(self.query.windows[w].window for w in level), *self._clock))

    @property
    def _clock(self) -> tuple[Window, ...]:
        """What says in place of the windows when there are reports: behind, without a stream."""
        return () if self.query.reports.clock is None else (self.query.reports.clock,)

    @property
    def _static(self) -> int:
        return len(self.query.windows)

    def places(self, level: tuple[int, ...], carried: tuple[int, ...]) -> tuple[int, ...]:
        """Returns where the windows of rows are in the table of a level's reports
        (``member_of_reports``).
        """
        behind = len(self._windows_over(level)) + len(self._clock)
        windows = map(window_of, carried)
        return tuple(behind if w == self._static else level.index(w) for w in windows)

    def member_of_rows(self, windows: tuple[int, ...]) -> Member:
        """The windows whose times rows carry."""
        return self._member(self._windows_over(tuple(map(window_of, windows))))

    def member_of_reports(self, level: tuple[int, ...], carried: tuple[int, ...] = ()) -> Member:
        """What decides the reports of a level: its windows, the clock; behind them ``static``, if
        its rows have its times.
        """
        member = self._member(self._windows_over(level))
        behind = (*self._clock, *([STATIC.window] if self._static in carried else []))
        return member._replace(
            windows=member.windows + behind,
            streams=member.streams + ("",) * len(behind),
            show_empty=self.show_empty,
            nonempty=self.query.reports.nonempty,
            reread_graphs=self.reread_graphs,
        )

    def snapshot_kinds(self, level: tuple[int, ...], reports: Reporting) -> tuple[WindowKind, ...]:
        """The kinds of a level's windows, and of its clock behind them."""
        return tuple(w.kind for w in self._reporting_windows(level, reports))

    def member_of_snapshot(
        self, level: tuple[int, ...], reports: Reporting, *, show_empty: bool
    ) -> Member:
        """What decides the reports of a level kept by changes: its windows, its clock; behind these
        what only holds them back.
        """
        on = self._windows_over(level)
        beneath = on[len(level) :]
        clock = [
            StreamWindow("", "", w) for w in self._reporting_windows(level, reports)[len(level) :]
        ]
        return self._member([*on[: len(level)], *clock, *beneath])._replace(show_empty=show_empty)

    def _reporting_windows(self, level: tuple[int, ...], reports: Reporting) -> list[Window]:
        return [self.query.windows[w].window for w in level] + [
            w for w in (reports.clock,) if w is not None
        ]

    def _windows_over(self, windows: tuple[int, ...]) -> list[StreamWindow]:
        """Windows with their streams; behind them those beneath, whose streams hold these back."""
        on = [self._window_on(w, windows) for w in windows]
        beneath = sorted({w for o in on for w in o.beneath} - set(windows))
        return on + [self.query.windows[w] for w in beneath]

    def _window_on(self, w: int, windows: tuple[int, ...]) -> StreamWindow:
        """A window, ``static``, or that of the numbers of a window (``numbers_of``), before which
        the window itself says nothing of numbers.
        """
        if w == self._static:
            return STATIC
        on = self.query.windows[max(w, numbers_of(w))]
        if w >= 0 and numbers_of(w) not in windows:
            return on
        window = replace(on.window, count=0)
        if w < 0:
            window = replace(window, kind=WindowKind.NUMBERS, range=on.window.count)
        return replace(on, window=window)

    def _member(self, on: list[StreamWindow]) -> Member:
        return Member(
            windows=tuple(w.window for w in on),
            streams=tuple(w.stream for w in on),
            start=self.start,
        )
