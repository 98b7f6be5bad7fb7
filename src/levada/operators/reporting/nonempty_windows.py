"""The instants at which the windows of a level are non-empty, from their changes, and so the
reports of the level (docs/semantics.md#reports).

This is for levels that read a subquery: the instants are those of rows, which are known in one
place. Every instant at which a window changes is a report, and so is every close while any window
is non-empty; under a clock only the clock's closes are reports. Only non-empty reports are here:
the first empty report after content has no rows, and its changes are shown by themselves. Empty
reports are included if they are shown (``with_empty``), and so is every close from the first
element on.

At the end of the streams, closes of other windows next to a window that never empties, and empty
reports, go up to the last change, or to the last element if that is later
(``windowing/report_times``). An epoch that stops short of the end knows that there is a later
change if some window has rows that leave by time. Otherwise a subquery may or may not have another
result: the closes behind the last change are *put off* until there is another change, and dropped
if there is none. Cost: by changes and due reports; by member only arrays of numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools, Ints
from levada.core.event_time import MAX, MIN, Times, WindowKind
from levada.core.frame import Frame
from levada.core.frozen import frozen
from levada.core.row_ranges import ends_segment, starts_segment
from levada.kernels.time.report_expansion import expand_closes
from levada.kernels.time.window_intervals import enter
from levada.operators.reporting.due_reports import Calendar
from levada.operators.windowing.zset import integrate, steps
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode

Changes = tuple[Ints, Times, Times, Bools]
"""Columns of the windows' rows: member, instant, weight, and whether they leave by time."""


@frozen
class NonEmpty:
    """The content of each member's windows: the number of rows, the last change, the number of rows
    that leave by time, and the instant behind which closes are put off (MAX: no closes are).
    """

    held: Times
    last: Times
    leaving: Times
    postponed_after: Times

    @staticmethod
    def restore(frames: Sequence[Frame], members: int) -> NonEmpty:
        """Restores the value from kept frames."""
        held, leaving = np.zeros(members, np.int64), np.zeros(members, np.int64)
        last, until = np.full(members, MIN, np.int64), np.full(members, MAX, np.int64)
        for frame in frames:
            op = frame["op"]
            held[op], last[op] = frame[col.COUNT], frame[col.BEGIN]
            if col.END in frame:  # as was not remembered before
                leaving[op], until[op] = frame[col.STANDING], frame[col.END]
        return NonEmpty(held, last, leaving, until)

    def frame(self, *, empty: bool) -> Frame:
        """Returns the values to remember; ``empty``: also of empty windows."""
        op = np.flatnonzero(
            ((self.last > MIN) if empty else (self.held > 0)) | (self.postponed_after < MAX)
        )
        columns = {
            col.COUNT: self.held[op],
            col.BEGIN: self.last[op],
            col.STANDING: self.leaving[op],
            col.END: self.postponed_after[op],
        }
        return Frame({"op": op.astype(np.int32), **columns}, len(op))


@frozen
class NonEmptyReports:
    """The due reports with content (``nonempty``: ``op``, ``r``), each once, in order, and the
    content of the windows after them.

    ``empty``: the other reports, where empty reports are shown.
    """

    nonempty: Frame
    after: NonEmpty
    empty: Frame


def reports(
    node: PlanNode, step: s.Snapshot, before: NonEmpty, changes: Changes, calendar: Calendar
) -> NonEmptyReports:
    """The due reports of the members."""
    op, r, held, after = _points(before, changes)
    low = np.minimum(before.postponed_after, calendar.low)
    latest = np.maximum(_latest_known(node, step, calendar, after), low)
    off = (latest < calendar.high) & (calendar.high < MAX)
    after = replace(after, postponed_after=np.where(off, latest, MAX))
    known = low, latest
    spans = _spans(before, op, r, held, calendar, low=low)
    nonempty = _in_spans(node, step, spans, known, calendar)
    empty = []
    if not step.clock:
        nonempty.append((op[held > 0], r[held > 0]))
        empty.append((op[held == 0], r[held == 0]))
    if step.show_empty:
        empty += _in_spans(node, step, _ever_nonempty(node, calendar), known, calendar)
    return NonEmptyReports(
        _each_once(nonempty), after, _each_once([*nonempty, *empty] if step.show_empty else [])
    )


def _in_spans(
    node: PlanNode,
    step: s.Snapshot,
    spans: tuple[Ints, Times, Times],
    known: tuple[Times, Times],
    calendar: Calendar,
) -> list[tuple[Ints, Times]]:
    """Returns the closes in spans of time that are in (low, latest] of their members (``known``):
    the closes of the clock if there is one, else of the windows that report on close.
    """
    low, latest = known
    closing = [
        j
        for j, kind in enumerate(step.kinds)
        if kind.on_close and (kind is WindowKind.CLOCK or not step.clock)
    ]
    t, (of, start, end) = node.windows, spans
    closes_of = []
    for j in closing if len(of) else ():
        closes = (t.range[j], t.step[j], t.t0[j], t.has_t0[j])
        spans_of = Frame(
            {"op": of, col.BEGIN: start, col.END: np.minimum(end, latest[of] + 1)}, len(of)
        )
        calendar.check_few([spans_of])
        row, at = expand_closes(start, end, low[of], latest[of], closes, of)
        closes_of.append((of[row], at))
    return closes_of


def _each_once(closes: Sequence[tuple[Ints, Times]]) -> Frame:
    op = np.concatenate([np.empty(0, np.int32), *(f[0] for f in closes)])
    r = np.concatenate([np.empty(0, np.int64), *(f[1] for f in closes)])
    order = np.lexsort((r, op))
    op, r = op[order], r[order]
    new = starts_segment(op, r)
    return Frame({"op": op[new], "r": r[new]}, int(new.sum()))


def _ever_nonempty(node: PlanNode, calendar: Calendar) -> tuple[Ints, Times, Times]:
    """Returns for each member with due reports the time after its first element, without an end."""
    starts = []
    for member in np.flatnonzero((calendar.high > calendar.low) & node.alive).tolist():
        schedule = node.schedules.distinct[node.schedules.of_member[member]]
        start = max(schedule.start, *(w.start for w in schedule.windows))
        times = [
            calendar.element_times[i].ts for i in schedule.streams if i in calendar.element_times
        ]
        first = min((int(ts[ts >= start][0]) for ts in times if (ts >= start).any()), default=MAX)
        starts += [(member, first + 1)] if first < MAX else []
    op = np.array([member for member, _ in starts], np.int32)
    return op, np.array([start for _, start in starts], np.int64), np.full(len(op), MAX, np.int64)


def _points(before: NonEmpty, changes: Changes) -> tuple[Ints, Times, Times, NonEmpty]:
    """Returns the instants of each member at which something changes, in order, with the content of
    its windows after each.
    """
    key_steps = steps(changes[0], changes[1])
    op, r, final = key_steps.of, key_steps.at, key_steps.is_final
    held = integrate(key_steps, key_steps.net(changes[2]), before.held)
    assert (held >= 0).all(), "no more rows leave a window than came"
    leaving = before.leaving.copy()
    np.add.at(leaving, changes[0][changes[3]], changes[2][changes[3]])
    after = NonEmpty(before.held.copy(), before.last.copy(), leaving, before.postponed_after)
    after.held[op[final]], after.last[op[final]] = held[final], r[final]
    return op, r, held, after


def _spans(
    before: NonEmpty, op: Ints, r: Times, held: Times, calendar: Calendar, *, low: Times
) -> tuple[Ints, Times, Times]:
    """Returns the times [start, end) behind ``low`` at which some window is non-empty; a span that
    continues has no end.
    """
    until = np.where(ends_segment(op), MAX, np.append(r[1:], r[:1]))
    nonempty = held > 0
    old = np.flatnonzero((before.held > 0) & (calendar.high > calendar.low)).astype(np.int32)
    first = np.full(len(before.held), MAX, np.int64)
    first[op[::-1]] = r[::-1]
    start = low[old] + 1
    return (
        np.concatenate([old, op[nonempty]]),
        np.concatenate([start, r[nonempty]]),
        np.concatenate([first[old], until[nonempty]]),
    )


def _latest_known(node: PlanNode, step: s.Snapshot, calendar: Calendar, after: NonEmpty) -> Times:
    """Up to when it is known which closes are due: up to ``high``; at the end, where no row will
    leave, up to the last change, or the last element where that is later.
    """
    ended = calendar.ended & ((after.leaving == 0) | (calendar.high >= MAX))
    if not ended.any():
        return calendar.high
    latest = (
        after.last
        if not step.clock
        else tick(node, step, np.arange(len(after.last), dtype=np.int32), after.last)
    )
    if step.enumerated:
        latest = latest.copy()
        for member in np.flatnonzero(ended).tolist():
            streams = node.schedules.distinct[node.schedules.of_member[member]].streams
            times = [calendar.element_times[i].ts for i in streams if i in calendar.element_times]
            latest[member] = max([int(latest[member]), *(int(ts[-1]) for ts in times if len(ts))])
    return np.where(ended, np.minimum(latest, calendar.high), calendar.high)


def tick(node: PlanNode, step: s.Snapshot, op: Ints, times: Times) -> Times:
    """The first close of the clock at or after these instants."""
    t, j = node.windows, len(step.kinds) - 1
    # its enter is the first close at or after
    closed = np.full(len(t.range[j]), WindowKind.CLOSE_CLOSED, np.uint8)
    return enter(
        closed, t.range[j], t.step[j], t.t0[j], t.has_t0[j], np.zeros_like(t.to[j]), op, times
    )


def places(due: Frame, op: Ints, times: Times) -> Times:
    """Returns the position, among the due reports, of the first report of member ``op`` at or after
    each of these instants.
    """
    ops = np.concatenate([op, due["op"]])
    order = np.lexsort((np.arange(len(ops)) >= len(op), np.concatenate([times, due["r"]]), ops))
    is_report = order >= len(op)
    out = np.empty(len(op), np.int64)
    out[order[~is_report]] = np.cumsum(is_report)[~is_report]
    return out
