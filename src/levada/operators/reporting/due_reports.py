"""The due reports of a node's members in one epoch: ranges where reports follow from rows, lists
where they do not.

``pairs`` turns rows that count in [s, e) into (row, report) pairs: by the closes of the members'
windows where the reports follow from the rows, by the lists of ``windowing/report_times`` where the
node is ``enumerated``. Members with equal schedules share a list. Members without windows
(``timeless``) have a report in each epoch that answers them: the epoch that reads the static data
of new parts of its plan, and the epochs that replace the data that they read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Bytes, Doubles, Ints, Longs
from levada.core.event_time import MAX, MIN, TIMELESS, Times, WindowKind, reporting_windows
from levada.core.frame import Frame
from levada.core.member_columns import values_of_members
from levada.core.query_limits import QueryLimits
from levada.core.query_model import Form, Output
from levada.errors import ExcessError
from levada.kernels.time.report_expansion import expand_closes, expand_instants
from levada.kernels.time.sliding_panes import Slid, slide
from levada.kernels.time.window_intervals import enter
from levada.operators.windowing.element_times import ElementTimes
from levada.operators.windowing.report_count_bound import (
    check_due,
    check_listed,
    check_rate,
    check_reports,
    most_reports,
)
from levada.operators.windowing.report_times import (
    Reports,
    WatermarkProgress,
    due_range,
    has_ended,
    instants,
    next_of,
    next_report,
)
from levada.plan.execution.plan import Plan, PlanNode

_NO_MEMBER = np.empty(0, np.int32)
_NO_TIME = np.empty(0, np.int64)
_FREE = QueryLimits()


class Calendar:
    """The reports of the members of one node in this epoch. ``answered``: the members without
    windows that report. ``limits``: how many reports a query may have due at once, and report rows
    for a second.
    """

    def __init__(
        self, node: PlanNode, kinds: Sequence[WindowKind], progress: WatermarkProgress,
        element_times: ElementTimes, answered: npt.NDArray[np.bool_] | None = None, *, limits:
        QueryLimits = _FREE,
    ) -> None:  # fmt: skip
        self.node = node
        self.kinds, self._most, self._rate = tuple(kinds), limits.reports, limits.rate
        self.answered = np.zeros(len(node.alive), np.bool_) if answered is None else answered
        self.table = node.windows
        self.low, self.high = due_range(kinds, node.windows, progress)
        self.ended = has_ended(node.windows, progress)
        self.element_times = element_times
        self._lists: dict[int, Reports] = {}

    @cached_property
    def any_due(self) -> bool:
        """Whether any member's range may hold a report: between closes a step costs nothing,
        whatever its windows hold.
        """
        moved = self.high > self.low
        if not moved.any() or not self._reports_at_closes:
            return bool(moved.any())
        members = self._distinct_members
        low, high, moved = self.low[members], self.high[members], moved[members]
        return any(
            bool((moved & (self._next_close(j, low) <= high)).any()) for j in self._report_windows
        )

    @cached_property
    def _report_windows(self) -> tuple[int, ...]:
        """The windows that say when there is a report."""
        return reporting_windows(self.kinds)

    @cached_property
    def _closing(self) -> list[int]:
        """Returns the report windows that report at their closes."""
        return [j for j in self._report_windows if self.kinds[j].on_close]

    @cached_property
    def _reports_at_closes(self) -> bool:
        """Whether all report windows report at their closes."""
        return len(self._closing) == len(self._report_windows)

    @cached_property
    def _distinct_members(self) -> slice:
        """Returns the members that determine the due closes of all: only the first, if all members
        have its windows.
        """
        return slice(0, 1) if self.table.is_uniform else slice(None)

    def _next_close(self, j: int, x: Times) -> Times:
        """Returns the smallest close of window j after x, for each member or for the first ones."""
        t, (opening, to, members) = self.table, _closes(len(x))
        return enter(opening, t.range[j], t.step[j], t.t0[j], t.has_t0[j], to, members, x)

    def keep_counting_rows(self, rows: Frame) -> Frame:
        """Keeps the rows (with #s, #e) that may count at a due close: of many members few are due
        in an epoch.
        """
        if not rows.n or not self._reports_at_closes:
            return rows
        op = rows["op"]
        first, high = values_of_members(self._first, op), values_of_members(self.high, op)
        return rows.where((rows[col.END] > first) & (rows[col.BEGIN] <= high))

    @cached_property
    def _first(self) -> Times:
        """Returns the first due close of each member: MAX if none is due, MIN before the first
        report.
        """
        if not self._report_windows:
            return np.full(len(self.low), MIN, np.int64)
        closes = [self._next_close(j, self.low) for j in self._report_windows]
        first = np.minimum.reduce(closes)
        due = np.where(first <= self.high, first, MAX)
        return np.where(self.low > MIN // 2, due, MIN)

    @cached_property
    def last_made(self) -> Times:
        """Returns the last finished report of each member; MAX for removed members, whose rows no
        longer matter.
        """
        return np.where(self.node.alive, self.high, MAX)

    @cached_property
    def schedules(self) -> npt.NDArray[np.int64]:
        """Returns the schedule of each member; members with equal schedules in this epoch have the
        first one's.
        """
        schedules = self.node.schedules
        known = {stream: times.ts for stream, times in self.element_times.items()}
        same: npt.NDArray[np.int64] = schedules.families.first_equal(known)[schedules.of_member]
        return same

    @property
    def timeless(self) -> bool:
        """Whether the node's queries have no windows."""
        return not self.kinds

    def member_reports(self, member: int) -> Times:
        """Returns the due reports of a member, including empty ones."""
        if self.timeless:
            return np.full(int(self.answered[member]), TIMELESS, np.int64)
        return self.reports(int(self.schedules[member])).times

    def reports(self, schedule: int) -> Reports:
        """The due reports of a schedule."""
        if schedule not in self._lists:
            member = int(np.argmax(self.schedules == schedule))
            low, high = int(self.low[member]), int(self.high[member])
            listed, ended = self.node.schedules.distinct[schedule], bool(self.ended[member])
            with self._attribute_to_member(member):
                self._lists[schedule] = instants(
                    listed, self.element_times, low, high, ended=ended, most=self._most
                )
        return self._lists[schedule]

    @contextmanager
    def _attribute_to_member(self, member: int = -1) -> Iterator[None]:
        """Says of which member there are too many reports, where the error does not."""
        try:
            yield
        except ExcessError as error:
            error.node, error.member = self.node.id, max(member, error.member)
            raise

    def check_few(self, parts: Sequence[Frame], *, enumerated: bool = False) -> None:
        """Checks the number of due reports and report rows.

        Raises ``ManyReportsError`` if rows (with #s, #e) are at too many reports for an epoch, and
        ``ExcessError`` if the rows of a member are at more reports than it may have due at once, or
        become more report rows than it may have for a second of event time. ``enumerated``: reports
        are listed. A row that represents several has their number in #n.
        """
        parts = [part for part in parts if part.n]
        if parts and enumerated:
            check_listed(*self._listed_reports(parts), rows=_rows(parts))
        elif parts and self._closing:
            self._check_closes(parts, self._closing)

    def _check_closes(self, parts: Sequence[Frame], closing: Sequence[int]) -> None:
        distinct_members, members = self._distinct_members, len(self.low)
        steps = np.stack([self.table.step[j][distinct_members] for j in closing])
        rate, longest, rows = (1 / steps).sum(axis=0), int(steps.max()), _rows(parts)
        bounds = self.high[distinct_members], self.low[distinct_members]
        span = np.subtract(*bounds, dtype=np.float64)  # MAX - MIN is no int64
        if not self._most and rows * (span * rate).max() <= self._row_threshold(rows):
            return  # whatever the times of the rows
        first, last = min(int(part[col.BEGIN].min()) for part in parts), _last_change(parts)
        width = np.minimum(self.high[distinct_members], last) - np.maximum(
            self.low[distinct_members], first - 1
        )
        too_wide = (width > self._most * steps.min(axis=0)) & (self._most > 0)
        if not too_wide.any() and rows * (width * rate).max() <= self._row_threshold(rows):
            return
        often = np.flatnonzero(np.broadcast_to(too_wide, members))
        rate, width = np.broadcast_to(rate, members), np.broadcast_to(width, members)
        steps = np.broadcast_to(steps, (len(steps), members))
        op, s, e = _columns(parts)
        start = np.maximum(s, self.low[op] + 1)
        end = np.minimum(e, np.minimum(self.high, last)[op] + 1)
        for member in often.tolist():
            of_member = op == member
            with self._attribute_to_member(member):
                check_due(start[of_member], end[of_member], 1 / steps[:, member].min(), self._most)
        many = np.concatenate([_stands_for(part) for part in parts])
        self._check_rate(op, many, np.maximum(end - start, 0) * rate[op], width)
        check_reports(start, end, rate[op] * many, longest)

    def _row_threshold(self, rows: int) -> int:
        """Returns the number of report rows up to which members are not checked one by one."""
        return min(most_reports(rows), self._rate or most_reports(rows))

    def _check_rate(self, op: Ints, many: Longs, each: Doubles, span: Times) -> None:
        """Checks report rows against event time. ``each``: the number of reports of each row of a
        member; ``many``: the number of rows it represents; ``span``: the event time, by member.
        """
        if self._rate:
            report_rows, rows = (np.bincount(op, of, len(span)) for of in (each * many, many))
            with self._attribute_to_member():
                check_rate(
                    report_rows.astype(np.float64), rows.astype(np.float64), span, self._rate
                )

    def _listed_reports(self, parts: Sequence[Frame]) -> tuple[Times, Longs]:
        """Returns the reports of the lists of all schedules, and the number of rows at each
        report.
        """
        op, s, e = _columns(parts)
        many, of = np.concatenate([_stands_for(part) for part in parts]), self.schedules[op]
        times, rows = [_NO_TIME], [_NO_TIME]
        each, span = np.zeros(len(op)), np.zeros(len(self.low), np.int64)
        for schedule in np.unique(of):
            listed = self.reports(int(schedule))
            due, at = listed.times[listed.nonempty], of == schedule
            change = np.zeros(len(due) + 1, np.int64)
            first, last = np.searchsorted(due, s[at]), np.searchsorted(due, e[at])
            np.add.at(change, first, many[at])
            np.subtract.at(change, last, many[at])
            each[at] = np.maximum(last - first, 0)
            span[self.schedules == schedule] = np.ptp(due) if len(due) else 0
            times.append(due)
            rows.append(np.cumsum(change)[:-1])
        self._check_rate(op, many, each, span)
        return np.concatenate(times), np.concatenate(rows)

    def pairs(self, op: Ints, s: Times, e: Times, enumerated: bool) -> tuple[Longs, Times]:
        """Rows of members ``op`` that count in [s, e) -> (row, report), each once per row."""
        return self._from_lists(op, s, e) if enumerated else self._from_closes(op, s, e)

    def _from_lists(self, op: Ints, s: Times, e: Times) -> tuple[Longs, Times]:
        of = self.schedules[op]
        rows: list[Longs] = []
        times: list[Times] = []
        for schedule in np.unique(of):
            reports = self.reports(int(schedule))
            at = np.flatnonzero(of == schedule)
            row, r = expand_instants(s[at], e[at], reports.times[reports.nonempty])
            rows.append(at[row])
            times.append(r)
        return _join(rows), _join(times)

    def _from_closes(self, op: Ints, s: Times, e: Times) -> tuple[Longs, Times]:
        t = self.table
        rows: list[Longs] = []
        times: list[Times] = []
        report_windows = self._report_windows
        for j in report_windows:
            closes = (t.range[j], t.step[j], t.t0[j], t.has_t0[j])
            row, r = expand_closes(s, e, self.low[op], self.high[op], closes, op)
            for i in report_windows[: report_windows.index(j)]:
                new = ~self._is_close(i, op[row], r)
                row, r = row[new], r[new]
            rows.append(row)
            times.append(r)
        return _join(rows), _join(times)

    def slide(self, group: Ints, groups: int, op: Ints, s: Times, e: Times) -> Slid | None:
        """Groups of rows that count in [s, e) with their reports; None where these are not the
        closes of one window.
        """
        report_windows, t = self._report_windows, self.table
        if len(report_windows) != 1:
            return None
        (j,) = report_windows
        return slide(
            group,
            groups,
            op,
            s,
            e,
            self.low,
            self.high,
            (t.range[j], t.step[j], t.t0[j], t.has_t0[j]),
        )

    def _is_close(self, j: int, op: Ints, r: Times) -> npt.NDArray[np.bool_]:
        t = self.table
        first = t.t0[j][op] + t.range[j][op]
        on_grid = (r - first) % t.step[j][op] == 0
        close: npt.NDArray[np.bool_] = on_grid & (~t.has_t0[j][op] | (r >= first))
        return close

    def after(self, op: Ints, r: Times, enumerated: bool) -> Times:
        """The report that follows each report r of members ``op``; MAX where not yet known."""
        out = np.full(len(r), MAX, np.int64)
        of = self.schedules[op]
        for schedule in np.unique(of):
            distinct = self.node.schedules.distinct[schedule]
            reports = self.reports(int(schedule)) if enumerated else None
            at = of == schedule
            following = next_report(
                distinct.windows,
                r[at],
                np.empty(0, np.int64) if reports is None else reports.changes,
            )
            if distinct.nonempty and reports is not None:
                following = next_of(reports.times[reports.nonempty], r[at])
            known = np.minimum(self.high[op[at]], MAX if reports is None else reports.last)
            out[at] = np.where(following > known, MAX, following)
        return out

    def round_up_to_report(self, op: Ints, times: Times) -> Times:
        """The first report at or after these instants where reports are periodic; elsewhere they
        are reports already.
        """
        if WindowKind.CLOCK not in self.kinds:
            return times
        j, t = self.kinds.index(WindowKind.CLOCK), self.table
        # its enter is the first close at or after
        closed = np.full(len(t.range[j]), WindowKind.CLOSE_CLOSED, np.uint8)
        return enter(closed, t.range[j], t.step[j], t.t0[j], t.has_t0[j], t.to[j], op, times)

    def first_report(self, op: Ints, times: Times) -> Times:
        """The first due report of members ``op`` at or after these instants, of listed reports; MAX
        where none is due yet.
        """
        out = np.full(len(times), MAX, np.int64)
        of = self.schedules[op]
        for schedule in np.unique(of):
            at = of == schedule
            out[at] = next_of(self.reports(int(schedule)).times, times[at] - 1)
        return out

    def content_changes(self) -> tuple[Ints, Times, npt.NDArray[np.int8]]:
        """(member, instant, weight) where the windows of living members begin to hold something
        (+1), and where they are all empty again (-1), as far as reports are due.
        """
        members, times, signs = [_NO_MEMBER], [_NO_TIME], [np.empty(0, np.int8)]
        for schedule in np.unique(self.schedules).tolist() if self.any_due else []:
            members_ = np.flatnonzero((self.schedules == schedule) & self.node.alive).astype(
                np.int32
            )
            for sign, at in zip((1, -1), self.reports(schedule).covered, strict=True):
                low, high = (int(t[members_].max(initial=MIN)) for t in (self.low, self.high))
                due = at[(at > low) & (at <= high) & (at < MAX)]
                members.append(np.repeat(members_, len(due)))
                times.append(np.tile(due, len(members_)))
                signs.append(np.full(len(members_) * len(due), sign, np.int8))
        return np.concatenate(members), np.concatenate(times), np.concatenate(signs)

    def nonempty_reports(self) -> tuple[Ints, Times]:
        """(member, report) for every due report of every living member at which some window holds
        something.
        """
        if self.timeless:
            new = np.flatnonzero(self.answered)
            return new.astype(np.int32), np.full(len(new), TIMELESS, np.int64)
        members: list[Ints] = []
        times: list[Times] = []
        for schedule in np.unique(self.schedules).tolist() if self.any_due else []:
            living = np.flatnonzero((self.schedules == schedule) & self.node.alive).astype(np.int32)
            if not len(living):
                continue
            reports = self.reports(schedule)
            r = reports.times[reports.nonempty]
            members.append(np.repeat(living, len(r)))
            times.append(np.tile(r, len(living)))
        return (np.concatenate([np.empty(0, np.int32), *members]), _join(times))


@lru_cache(maxsize=64)
def _closes(members: int) -> tuple[Bytes, Longs, Ints]:
    """Returns the kind, the ``to`` and the number of so many windows whose ``enter`` is a close."""
    opening = np.full(members, int(WindowKind.CLOSE_OPEN), np.uint8)
    return opening, np.zeros(members, np.int64), np.arange(members, dtype=np.int32)


def _last_change(parts: Sequence[Frame]) -> int:
    """The last instant at which a row begins or ends."""
    begins = [int(part[col.BEGIN].max()) for part in parts]
    ends = [int(part[col.END].max(where=part[col.END] < MAX, initial=MIN)) for part in parts]
    return max(begins + ends)


def _columns(parts: Sequence[Frame]) -> tuple[Ints, Times, Times]:
    """Member, begin and end of the rows of all parts."""
    op, s, e = (
        np.concatenate([part[name] for part in parts]) for name in ("op", col.BEGIN, col.END)
    )
    return op, s, e


def _stands_for(part: Frame) -> Longs:
    """Returns the number of rows that each row represents."""
    return part[col.COUNT] if col.COUNT in part else np.ones(part.n, np.int64)


def _rows(parts: Sequence[Frame]) -> int:
    return sum(int(_stands_for(part).sum()) if col.COUNT in part else part.n for part in parts)


def _join(parts: Sequence[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    return parts[0] if len(parts) == 1 else np.concatenate([np.empty(0, np.int64), *parts])


# The end of queries: a report after a query's ``until`` is not a result (STREAMREUSE's lifetime of
# a query, at event time).
#
# Below the results nothing ends: operators are shared, and the driver removes a query once the
# watermark of its streams has passed its end. Cost: one comparison for each frame of results, until
# the first query of the plan ends.


def drop_unreported(plan: Plan, node: PlanNode, frame: Frame) -> Frame:
    """Drops result rows of an Emit node after the ends of their queries, and all rows of a muted
    Emit.
    """
    muted = [member for number, member in plan.muted if number == node.id]
    if muted:
        frame = frame.where(~np.isin(frame["op"], muted))
    if not frame.n or int(frame["r"].max()) <= plan.first_end:
        return frame
    members, each = np.unique(frame["op"], return_inverse=True)
    queries = [node.members.query_at(member) for member in members.tolist()]
    ends = np.array([_end(plan, query) for query in queries], np.int64)
    return frame.where(frame["r"] <= ends[each])


def shown_within(plan: Plan, shown: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Drops due reports after the ends of their queries, of queries that show empty reports."""
    return {
        query: [report for report in reports if report <= _end(plan, query)]
        for query, reports in shown.items()
        if not _says_changes(plan, query)
    }


def _says_changes(plan: Plan, name: str) -> bool:
    """Whether a query is an ASK that says its boolean where that is another one: a report that says
    nothing would say false.
    """
    query = plan.queries.get(name)
    if query is None or query.form is not Form.ASK:
        return False
    return query.output is not Output.RSTREAM


def _end(plan: Plan, name: str) -> int:
    query = plan.queries.get(name)
    return MAX if query is None else query.until
