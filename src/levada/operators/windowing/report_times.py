"""Report times: when a query is evaluated (docs/semantics.md#reports).

Each window contributes its closes, or the instants at which an element enters or leaves it; a query
reports at all of them. A report r is made in the epoch in which W_q >= r (all windows on close with
bounds [)) or W_q > r becomes true: ``due_range`` returns the range (low, high] of an epoch. Under a
periodic policy there is a clock among the windows, and only its closes are reports. Where the
reports follow from rows alone no list is made; where they follow from all elements
(``enumerated``), ``instants`` makes the list from their event times.

Between closes nothing costs: closes are counted only inside the instants at which some window is
non-empty.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from levada.core.event_time import MAX, MIN, Times, Window, WindowKind, distinct, reporting_windows
from levada.core.frozen import frozen
from levada.kernels.time.report_expansion import expand_closes
from levada.kernels.time.window_intervals import Params, enter
from levada.operators.windowing.element_times import NOTHING, ElementTimes, span
from levada.operators.windowing.report_count_bound import check_due, check_reports
from levada.operators.windowing.window_intervals import watermark
from levada.plan.execution.report_schedules import Schedule
from levada.plan.execution.window_table import WindowTable


@frozen
class WatermarkProgress:
    """Watermarks per stream (in the plan's order) before and after this epoch. ``ended``: the
    streams that are complete, where ``new`` stops short of that (None: it does not).
    """

    old: Times
    new: Times
    ended: npt.NDArray[np.bool_] | None = None

    @property
    def has_moved(self) -> bool:
        """Whether any report can be due."""
        return bool((self.new != self.old).any())


def due_range(
    kinds: Sequence[WindowKind], table: WindowTable, progress: WatermarkProgress
) -> tuple[Times, Times]:
    """(low, high] of each member: reports already made, reports to be made by this epoch."""
    low, high = watermark(table, progress.old), watermark(table, progress.new)
    if only_closes(kinds):
        return low, high
    return _instant_before(low), _instant_before(high)


def has_ended(table: WindowTable, progress: WatermarkProgress) -> npt.NDArray[np.bool_]:
    """Flags the members all of whose streams have ended."""
    new = progress.new if progress.ended is None else np.where(progress.ended, MAX, progress.new)
    return watermark(table, new) >= MAX


def only_closes(kinds: Sequence[WindowKind]) -> bool:
    """Whether a report is made as soon as the watermark reaches it: nothing at that instant can
    still belong to it.
    """
    return all(k in (WindowKind.CLOSE_OPEN, WindowKind.CLOCK) for k in kinds)


def _instant_before(w: Times) -> Times:
    return np.where((w > MIN) & (w < MAX), w - 1, w)


@frozen
class Reports:
    """The due reports of a schedule: ``times`` sorted; ``nonempty``: some window holds
    something at it. ``covered``: the instants [s, e) at which something is there.
    """

    times: Times
    nonempty: npt.NDArray[np.bool_]
    changes: Times  # the instants of windows that report on change, for ``next_report``
    covered: tuple[Times, Times]
    last: int = (
        MAX  # at the end, with a window that never empties: no report comes after this instant
    )


def instants(
    schedule: Schedule,
    element_times: ElementTimes,
    low: int,
    high: int,
    *,
    ended: bool,
    most: int = 0,
) -> Reports:
    """All reports in (low, high] from the event times of all elements (``element_times``: by
    stream).

    ``ended``: the streams have. Then, with a window that never empties, reports go up to the last
    change of any window, or to the last element where that is later: so far, however the streams
    are cut, they may have been made before the end. A schedule with empty reports has every close
    after the first element, up to the last report or element.
    """
    windows = schedule.windows
    element_lists = [element_times.get(n, NOTHING) for n in schedule.streams]
    spans = [span(w, s, schedule.start) for w, s in zip(windows, element_lists, strict=True)]
    reporting = reporting_windows([w.kind for w in windows])
    last, cap = MAX, high
    if ended:
        finite = [t[(t > MIN) & (t < MAX)] for s, e in spans for t in (s, e)]
        changed_last = max((int(t.max()) for t in finite if len(t)), default=None)
        high = low if changed_last is None else _at_clock(windows, changed_last)
        if any(len(e) and int(e.max()) >= MAX for _, e in spans):
            last = high = max([high, *(int(s.ts[-1]) for s in element_lists if len(s.ts))])
    end, high = high, min(high, cap)
    changed = [t for i in reporting if not windows[i].kind.on_close for t in spans[i]]
    changes = _unique(changed, low, high)
    covered = _union(spans)
    closing = [windows[i] for i in reporting if windows[i].kind.on_close]
    _check_few(closing, covered, low, high, most=most)
    closes = [_closes(w, covered, low, high) for w in closing]
    times = _unique([changes, *closes], low, high)
    if schedule.show_empty:
        times = _with_empty(
            times,
            schedule,
            element_times,
            covered,
            low=low,
            high=cap,
            end=end if ended else None,
            most=most,
        )
        if ended and (not len(times) or int(times[-1]) < cap):
            # an empty report has a row, too, which nothing ends
            last = int(times[-1]) if len(times) else low
        always = _since_first(schedule, element_times)
        return Reports(times, np.ones(len(times), bool), changes, always, last)
    return Reports(times, _inside(times, covered), changes, covered, last)


def _check_few(
    closing: Sequence[Window],
    covered: tuple[Times, Times],
    low: int,
    high: int,
    *,
    each: int = 1,
    most: int,
) -> None:
    """Raises ``ManyReportsError`` if these windows close too often where there is content for one
    epoch, ``ExcessError`` if they do so more than ``most`` times (0: as often as they will).
    """
    if closing and len(covered[0]):
        rate = each * sum(1 / w.step for w in closing)
        start, end = np.maximum(covered[0], low + 1), np.minimum(covered[1], high + 1)
        check_due(start, end, 1 / min(w.step for w in closing), most)
        check_reports(start, end, np.full(len(start), rate), max(w.step for w in closing))


EMPTY_REPORT = 4  # cost of a report relative to a row: the manifest has its time
_EMPTY = np.empty(0, np.int64)


def _with_empty(
    times: Times,
    schedule: Schedule,
    element_times: ElementTimes,
    covered: tuple[Times, Times],
    *,
    low: int,
    high: int,
    end: int | None,
    most: int,
) -> Times:
    """The reports with the empty ones: closes from the first element to behind all content.

    ``end``: where the streams have ended, the last instant at which there is content.
    """
    windows = schedule.windows
    counted_times = _counted_times(schedule, element_times)
    first, _ = _since_first(schedule, element_times)
    if not len(first):
        return times
    closing = [w for w in _reporting(windows) if w.kind.on_close]
    # content ends where a window reports, so that is the first report after it
    after = covered[1][covered[1] < MAX]
    after = (
        next_report(closing, after - 1, _EMPTY) if windows[-1].kind is WindowKind.CLOCK else after
    )
    if end is not None:
        high = min(high, max([end, *(int(t[-1]) for t in (*counted_times, after) if len(t))]))
    unique_times = _unique([times, after], low, high)
    span = (first + 1, np.array([high + 1]))
    _check_few(closing, span, low, high, each=EMPTY_REPORT, most=most)
    return _unique([unique_times, *(_closes(w, span, low, high) for w in closing)], low, high)


def _counted_times(schedule: Schedule, element_times: ElementTimes) -> list[Times]:
    """Returns for each window the times of the elements that count for it."""
    times = [element_times.get(n, NOTHING).ts for n in schedule.streams]
    begins = [max(schedule.start, w.start) for w in schedule.windows]
    return [t[t >= begin] for begin, t in zip(begins, times, strict=True)]


def _since_first(schedule: Schedule, element_times: ElementTimes) -> tuple[Times, Times]:
    """All instants from the first element on, at which empty reports are there, too."""
    first = [int(t[0]) for t in _counted_times(schedule, element_times) if len(t)]
    start = np.array(sorted(first)[:1], np.int64)
    return start, np.full(len(start), MAX, np.int64)


def _unique(parts: Sequence[Times], low: int, high: int) -> Times:
    every = np.concatenate([_EMPTY, *parts])
    return distinct(every[(every > low) & (every <= high)])


def _union(spans: Sequence[tuple[Times, Times]]) -> tuple[Times, Times]:
    """The union of intervals as disjoint ones, in order."""
    s = np.concatenate([_EMPTY, *(s for s, _ in spans)])
    e = np.concatenate([_EMPTY, *(e for _, e in spans)])
    if not len(s):
        return s, e
    order = np.argsort(s, kind="stable")
    s, e = s[order], np.maximum.accumulate(e[order])
    first = np.concatenate([[True], s[1:] > e[:-1]])
    last = np.concatenate([first[1:], [True]])
    return s[first], e[last]


def _closes(w: Window, covered: tuple[Times, Times], low: int, high: int) -> Times:
    params, row = Params.from_windows([w]), np.zeros(len(covered[0]), np.int32)
    if not len(row) or high <= low:
        return _EMPTY
    return expand_closes(*covered, low, high, params.closes, row)[1]


def _inside(times: Times, covered: tuple[Times, Times]) -> npt.NDArray[np.bool_]:
    s, e = covered
    if not len(s):
        return np.zeros(len(times), bool)
    at = np.searchsorted(s, times, side="right") - 1
    return (at >= 0) & (times < e[np.maximum(at, 0)])


def next_report(windows: Sequence[Window], r: Times, changes: Times) -> Times:
    """The report after each report r: the next close, or the next of the ``changes``; MAX where
    none is known yet.
    """
    out = np.full(len(r), MAX, np.int64)
    for w in _reporting(windows):
        if w.kind.on_close:
            np.minimum(
                out,
                enter(*Params.from_windows([_as_opening_window(w)]), np.zeros(len(r), np.int32), r),
                out=out,
            )
    return np.minimum(out, next_of(changes, r), out=out)


def next_of(instants_: Times, r: Times) -> Times:
    """Returns the least of these sorted instants after each r, or MAX."""
    if not len(instants_):
        return np.full(len(r), MAX, np.int64)
    at = np.searchsorted(instants_, r, side="right")
    return np.where(at < len(instants_), instants_[np.minimum(at, len(instants_) - 1)], MAX)


def _reporting(windows: Sequence[Window]) -> list[Window]:
    return [windows[i] for i in reporting_windows([w.kind for w in windows])]


def _at_clock(windows: Sequence[Window], x: int) -> int:
    """The first report at or after x where there is a clock; else x."""
    clock = windows[-1] if windows else None
    return (
        x
        if clock is None or clock.kind is not WindowKind.CLOCK
        else clock.next_close(max(x - 1, MIN))
    )


def _as_opening_window(w: Window) -> Window:
    """Returns the window with bounds [), whose ``enter`` is the next close."""
    return Window(WindowKind.CLOSE_OPEN, w.range, w.step, w.t0, w.t0_given)
