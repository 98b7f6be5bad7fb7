"""Turns a query's windows, streams and start into the times of its members: when rows count, and
when the query reports.

A member's windows are those of its rows, or those of all reports of its level. The window
``static`` follows the windows of a query, for static graphs that may be replaced. Rows carry its
times; reports do not use it (docs/architecture.md#a-triples-way). If queries share a count window,
its rows also have a window of their numbers. If queries share a join over one window with others
over several, its rows have times of the window for each pattern (``per_leaf_times``).
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
    """Returns the step of an IStream that can be shared with IStreams over other ranges.

    None: its rows do not begin in all of their windows at once, or their end depends on more than
    the range.
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
    """The times of one query: its ``start``, ``show_empty`` (it writes empty reports), and the
    ``reread_graphs`` of its members.
    """

    query: Query
    start: int
    show_empty: bool
    reread_graphs: tuple[str | None, ...] = ()

    def without_windows(self, reread_graphs: tuple[str | None, ...]) -> Timing:
        """Returns the times of a part that reads no window; it is answered as a query without
        windows.
        """
        return Timing(
            replace(self.query, windows=(), reports=Reporting()), self.start, True, reread_graphs
        )

    def kinds(self, level: tuple[int, ...]) -> tuple[WindowKind, ...]:
        """Returns the kinds of the windows that decide the reports of a level, with its clock."""
        return tuple(w.kind for w in (*(self.query.windows[w].window for w in level), *self._clock))

    @property
    def _clock(self) -> tuple[Window, ...]:
        """The clock that decides the reports in place of the windows; it has no stream."""
        return () if self.query.reports.clock is None else (self.query.reports.clock,)

    @property
    def _static(self) -> int:
        return len(self.query.windows)

    def places(self, level: tuple[int, ...], carried: tuple[int, ...]) -> tuple[int, ...]:
        """Returns the positions of the windows of rows in ``member_of_reports``."""
        behind = len(self._windows_over(level)) + len(self._clock)
        windows = map(window_of, carried)
        return tuple(behind if w == self._static else level.index(w) for w in windows)

    def member_of_rows(self, windows: tuple[int, ...]) -> Member:
        """Returns the member with the windows whose times rows carry."""
        return self._member(self._windows_over(tuple(map(window_of, windows))))

    def member_of_reports(self, level: tuple[int, ...], carried: tuple[int, ...] = ()) -> Member:
        """Returns the member that decides the reports of a level: its windows, its clock, and
        ``static``.

        ``static`` is added if the rows of the level have its times.
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
        """Returns the kinds of a level's windows, followed by its clock."""
        return tuple(w.kind for w in self._reporting_windows(level, reports))

    def member_of_snapshot(
        self, level: tuple[int, ...], reports: Reporting, *, show_empty: bool
    ) -> Member:
        """Returns the member that decides the reports of a level kept by changes.

        It has the level's windows, its clock, and the windows below them, which only delay reports.
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
        """Returns windows with their streams, followed by the windows below them, which delay
        these.
        """
        on = [self._window_on(w, windows) for w in windows]
        beneath = sorted({w for o in on for w in o.beneath} - set(windows))
        return on + [self.query.windows[w] for w in beneath]

    def _window_on(self, w: int, windows: tuple[int, ...]) -> StreamWindow:
        """Returns a window, ``static``, or the window of numbers of a count window
        (``numbers_of``).

        Without the latter among ``windows``, the count window keeps its count.
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
