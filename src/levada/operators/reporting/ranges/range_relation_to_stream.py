"""Shared IStreams of the same rows over windows that differ in their ranges.

A row that begins at a report t begins there for an interval of ranges: the ranges in which its
least time still is and that an earlier occurrence of it has left. For these it is new, unless an
equal row ends at t, which holds for an interval of ranges, too (``range_relation_to_stream``). So
beginnings and ends of a solution at a report are summed up along the ranges, and the positive parts
are results for intervals of them (``range_families``). Where a row begins because its earlier
occurrence has left, later than the row arrived, that one ends at the same instant; so at a report
without arrivals nothing is new.

This applies to windows that close at the same instants, or follow each element. Queries that began
at other instants see the same results as soon as the longest window contains nothing from before
the last of the begins. Until then each start is processed by itself, and its members have rows of
their own.

Rows are kept once, by solution and time, until the longest range has passed.

Cost: for a row a search in the state, and as many copies as its interval has cells: one, if it is
new for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Ints, Longs, Words
from levada.core.event_time import MAX, MIN, Times, WindowKind
from levada.core.frame import Frame, concat
from levada.core.row_ranges import ranges
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.radix_sort import in_order
from levada.kernels.time.window_intervals import enter
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.reporting.due_reports import Calendar
from levada.operators.reporting.ranges.range_families import (
    Families,
    Family,
    Members,
    families_of,
)
from levada.operators.reporting.relation_to_stream import due_rows, remember_by
from levada.operators.rows.route_rows import key_of, place_of, zeros
from levada.operators.state.state_parts import State, StatePart, due_together
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode

# Expirations in windows of any range: the times from which they follow, by solution.
#
# A row counts for a range from its arrival, or from the departure of an earlier equal row
# (``prev``), until it leaves itself. So for each row two instants follow from the range by one
# addition: the end, from its least time, and, where there is an earlier occurrence, the beginning,
# from the time of that one. Both are *entries*: a time with a sign, of a solution, valid from an
# instant on (``#s``). Entries are kept once, whatever ranges there are, until the longest range has
# passed.
#
# The entries at a report of a row that begins are looked up by its solution, and among these by
# their times: the times that the ranges reach back to, or, where these are more than there are
# ranges, the times that each range reaches.
#
# Cost: a search of each part for each solution that begins at a report.


TIME = col.least(0)


@dataclass(frozen=True, eq=False, slots=True)
class Begun:
    """Solutions that begin at reports, in order of their keys: ``k`` and ``h``, the report ``at``.
    An entry of a range at that report has a time from ``first`` to ``last`` less the range.
    """

    k: Words
    h: Words
    at: Times
    first: Times
    last: Times

    def take(self, rows: Longs) -> Begun:
        """Returns the solutions at these rows."""
        return Begun(self.k[rows], self.h[rows], self.at[rows], self.first[rows], self.last[rows])


@dataclass(frozen=True, eq=False, slots=True)
class Ends:
    """Entries at reports: the solution ``of`` each, the ranges from the ``low``-th up to before the
    ``high``-th, the ``sign``, and the ``time``.
    """

    of: Longs
    low: Longs
    high: Longs
    sign: Longs
    time: Times

    def where(self, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Ends:
        """Returns the flagged entries."""
        return Ends(*(c[keep] for c in (self.of, self.low, self.high, self.sign, self.time)))


def entries(rows: Frame) -> Frame:
    """The entries of rows that have begun: of a key (#k, #h), with #s, ``lo0`` and ``prev0``."""
    base = {"op": rows["op"], **place_of(rows)}
    base |= {name: rows[name] for name in (col.KEY, col.CHECK, col.BEGIN)}
    ends = Frame({**base, TIME: rows[TIME], col.SIGN: np.full(rows.n, -1, np.int8)}, rows.n)
    again = rows[col.earlier(0)] > MIN
    if not again.any():
        return ends
    before = ends.with_(
        **{TIME: rows[col.earlier(0)], col.SIGN: np.ones(rows.n, np.int8)}
    )  # fmt: skip
    return concat([ends, before.where(again)])


def remember(state: State, key: str, new: Frame | None, reach: int, report: int) -> None:
    """Appends entries as a piece in order of key and time; drops pieces of which all have passed
    for ranges up to ``reach`` (ms) at the report ``report``, puts younger ones together.
    """
    pieces = [p for p in state.pieces(key) if p.dead > report]
    if new is not None and new.n:
        pieces.append(_put(state, new, reach))
    if (start := due_together(pieces)) < len(pieces):
        every = concat([state.whole(p) for p in pieces[start:]])
        left = every.where(every[TIME] > report - reach)
        pieces = [*pieces[:start], *([_put(state, left, reach)] if left.n else [])]
    state.replace(key, pieces)


def _put(state: State, rows: Frame, reach: int) -> StatePart:
    ordered = rows.take(in_order(rows[TIME], rows[col.KEY].view(np.int64)))
    low, high = int(rows[TIME].min()), int(rows[TIME].max())
    return state.put({"": ordered}, ordered.n, (high + reach, low, high))


def find_ends(state: State, key: str, begun: Begun, lengths: Longs) -> Ends:
    """The entries that fall on reports at which their solutions begin; ``lengths``: the ranges."""
    part_ends = [_in_piece(state, piece, begun, lengths) for piece in state.pieces(key)]
    columns = zip(*((e.of, e.low, e.high, e.sign, e.time) for e in part_ends), strict=True)
    return Ends(*map(np.concatenate, columns)) if part_ends else Ends(*[np.empty(0, np.int64)] * 5)


def _in_piece(state: State, piece: StatePart, begun: Begun, lengths: Longs) -> Ends:
    rows = state.frame(piece)
    keys, entry_keys = rows[col.KEY].view(np.int64), begun.k.view(np.int64)
    low, high = np.searchsorted(keys, entry_keys), np.searchsorted(keys, entry_keys, side="right")
    some = np.flatnonzero(low < high)
    one, at = begun.take(some), rows[TIME]
    low = _first(at, low[some], high[some], one.first - lengths[-1])
    high = _first(at, low, high[some], one.last - lengths[0] + 1)
    few = high - low <= len(lengths)
    of, place = _pairs(low[few], high[few])
    of = np.flatnonzero(few)[of]
    if not few.all():
        many = np.flatnonzero(~few)
        heavy, more = _by_length(at, one.take(many), low[many], high[many], lengths)
        of, place = np.concatenate([of, many[heavy]]), np.concatenate([place, more])
    state.touched += len(place)
    keep = (rows[col.CHECK][place] == one.h[of]) & (rows[col.BEGIN][place] < one.at[of])
    if (groups := state.groups(piece)) is not None:
        keep &= groups[rows[col.PLACE][place]]
    of, place = of[keep], place[keep]
    time = at[place]
    first = np.searchsorted(lengths, one.first[of] - time)
    last = np.searchsorted(lengths, one.last[of] - time, side="right")
    sign = rows[col.SIGN][place].astype(np.int64)
    return Ends(some[of], first, last, sign, time).where(first < last)


def _pairs(low: Longs, high: Longs) -> tuple[Longs, Longs]:
    """(row, place) of all places from ``low`` up to before ``high`` of each row."""
    return np.repeat(np.arange(len(low)), high - low), ranges(low, high - low)


def _by_length(
    at: Times, begun: Begun, low: Longs, high: Longs, lengths: Longs
) -> tuple[Longs, Longs]:
    """Returns (solution, place) of solutions with more entries in reach than ranges: for each range
    the entries that it reaches.
    """
    of, length = np.repeat(np.arange(len(low)), len(lengths)), np.tile(lengths, len(low))
    first = _first(at, low[of], high[of], begun.first[of] - length)
    last = _first(at, first, high[of], begun.last[of] - length + 1)
    row, place = _pairs(first, last)
    _, once = np.unique(np.stack([of[row], place]), axis=1, return_index=True)
    return of[row][once], place[once]


def _first(times: Times, low: Longs, high: Longs, targets: Times) -> Longs:
    """The first place from ``low`` on, up to ``high``, of ascending times that has such a one."""
    low, high = low.copy(), high.copy()
    while (left := low < high).any():
        middle = (low + high) >> 1
        less = left & (times[np.minimum(middle, len(times) - 1)] < targets)
        low = np.where(less, middle + 1, low)
        high = np.where(left & ~less, middle, high)
    return low


LOWEST_CELL, LOWEST_CELL_BEFORE = col.least(0), col.earlier(0)


def ranged_changes(
    node: PlanNode[s.RangedChanges], inputs: Inputs, env: OperatorContext
) -> Frame | None:
    """Returns the rows that begin at the due reports, for a cell of members or for one member
    (``range_families``).
    """
    (frame,) = inputs
    calendar = env.calendar(node, node.step.kinds)
    if frame is None and not calendar.any_due:
        return None
    assert env.shares is not None, "a stage knows what picks want"
    families = families_of(node, env.shares)
    begun = _begin_rows(node, frame, env, calendar, families)
    parts = list[Frame]()
    for number, family in enumerate(families.each):
        family_rows = begun.where(families.of_member[begun["op"]] == number) if begun.n else begun
        key = f"{node.id}.ends{family.number}"
        report = int(calendar.low[family.longest])  # ends at the due reports are looked up
        new = entries(family_rows) if family_rows.n else None
        remember(env.state, key, new, family.reach + node.step.step, report)
        if family_rows.n:
            parts += _new_rows(node, family, family_rows, env, calendar)
    _forget(node, env, {f"{node.id}.ends{family.number}" for family in families.each})
    nonempty = [part for part in parts if part.n]
    return concat(nonempty) if nonempty else None


def _forget(node: PlanNode, env: OperatorContext, needed: set[str]) -> None:
    """Drops the state of removed families."""
    for key in env.state.keys(f"{node.id}.ends"):
        if key not in needed:
            env.state.replace(key, [])


def _begin_rows(
    node: PlanNode[s.RangedChanges], frame: Frame | None, env: OperatorContext, calendar: Calendar,
    families: Families,
) -> Frame:  # fmt: skip
    """Returns the rows that have begun by the due reports, with their keys; the others wait. The
    member that represented all when rows arrived may have been removed: its due rows are dropped,
    because its place may look like a member over another stream.
    """
    ahead, renew = f"{node.id}.ahead", partial(_renew_rows, families=families)
    begun = due_rows(env.state, ahead, col.BEGIN, calendar, renew=renew)
    waiting = []
    if frame is not None and frame.n:
        new = _spans(node, frame, families)
        due = new[col.BEGIN] <= calendar.high[new["op"]]
        begun.append(new.where(due))
        waiting.append(new.where(~due & (new[col.BEGIN] < MAX)))
    remember_by(env.state, ahead, col.BEGIN, waiting, calendar.high, renew=renew)
    begun = [rows for rows in begun if rows.n]
    if not begun:
        return Frame({}, 0)
    rows = concat(begun)
    of = rows.with_(op=rows[col.SEQUENCE].astype(np.int32))
    k, h = key_of(of, range(len(node.layout.slots)))
    return rows.with_(**{col.KEY: k, col.CHECK: h})


def _spans(node: PlanNode[s.RangedChanges], frame: Frame, families: Families) -> Frame:
    """Returns rows with the report at which they begin, their times, and their solutions."""
    (span,), (row,) = node.input_layouts[0].windows, node.step.rows
    lo, op = frame[LOWEST_CELL], frame["op"]
    hi = frame[col.greatest(0)] if span.hi else lo
    prev = frame[LOWEST_CELL_BEFORE] if span.prev else np.full(frame.n, MIN, np.int64)
    numbers = np.array([one.number for one in families.each], np.int64)
    columns = {name: c for name, c in frame.columns.items() if not col.is_time(name)}
    columns[col.BEGIN] = enter(*node.windows.params(row), op, hi)
    columns[col.SEQUENCE] = numbers[families.of_member[op]]
    return Frame({**columns, LOWEST_CELL: lo, LOWEST_CELL_BEFORE: prev}, frame.n).where(prev < lo)


def _renew_rows(rows: Frame, families: Families) -> Frame:
    """Assigns rows that have waited to the member that represents all now."""
    of = families.of_number[rows[col.SEQUENCE]]
    return rows.with_(op=families.longest[of]).where(of >= 0)


def _new_rows(
    node: PlanNode[s.RangedChanges],
    family: Family,
    begun: Frame,
    env: OperatorContext,
    calendar: Calendar,
) -> Iterator[Frame]:
    """Yields the rows that are new for members of a family, among the rows that have begun."""
    low, high = (int(times[family.longest]) for times in (calendar.low, calendar.high))
    at = begun[col.BEGIN]
    rows = begun.where((at > low) & (at <= high))
    if not rows.n:
        return
    coming, solutions = _coming_rows(node, rows)
    key = f"{node.id}.ends{family.number}"
    ends = find_ends(env.state, key, solutions, family.ranges)
    last, reach = family.starts[-1][0], family.reach + node.step.step
    if len(family.starts) == 1:
        yield _as_cells(node, family, rows, _above_zero(family, coming, ends, last))
        return
    settled = coming.at >= last + reach
    yield _as_cells(node, family, rows, _above_zero(family, coming.where(settled), ends, MIN))
    if not settled.all():
        for start, members in family.starts:
            intervals = _above_zero(family, coming.where(~settled), ends, start)
            yield _as_members(rows, members, intervals)


class NewAtReports(NamedTuple):
    """Rows that begin at reports: the ``row``, the solution ``of`` it, and the report ``at``. The
    latest time that is no longer in a window is ``last`` less its range.
    """

    row: Longs
    of: Longs
    at: Times
    last: Times
    least: Times
    earlier: Times

    def where(self, keep: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> NewAtReports:
        """Returns the flagged rows."""
        return NewAtReports(*(column[keep] for column in self))


class Intervals(NamedTuple):
    """Rows that are new from the ``low``-th range up to before the ``high``-th."""

    row: Longs
    low: Longs
    high: Longs


def _coming_rows(node: PlanNode[s.RangedChanges], rows: Frame) -> tuple[NewAtReports, Begun]:
    """Returns rows, and their solutions and reports in order of the keys."""
    k, h, at = rows[col.KEY], rows[col.CHECK], rows[col.BEGIN]
    codes, first = group(*combine(k, h, at.view(np.uint64), zeros(rows.n)))
    order = np.argsort(k[first].view(np.int64), kind="stable")  # as they are kept
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    first = first[order]
    least, most = _borders(node.step, at)
    begun = Begun(k[first], h[first], at[first], least[first], most[first])
    every = np.arange(rows.n)
    return NewAtReports(
        every, place[codes], at, most, rows[LOWEST_CELL], rows[LOWEST_CELL_BEFORE]
    ), begun


def _borders(step: s.RangedChanges, at: Times) -> tuple[Times, Times]:
    """The first and the last time with a range that leave at these reports."""
    (kind,) = step.kinds
    if kind is WindowKind.CLOSE_OPEN:
        return at - step.step, at - 1
    if kind is WindowKind.CLOSE_CLOSED:
        return at - step.step + 1, at
    return at, at


def _above_zero(family: Family, coming: NewAtReports, ends: Ends, start: int) -> Intervals:
    """The ranges for which rows are new for queries that begin at ``start``: where more of a
    solution begins at a report than ends there.
    """
    lengths = family.ranges
    low = np.searchsorted(lengths, coming.last - coming.least, side="right")
    before = np.where(coming.earlier >= max(start, MIN + 1), coming.earlier, MIN // 2)
    high = np.searchsorted(lengths, coming.last - before, side="right")
    keep = (low < high) & (coming.least >= start)
    row, of, low, high = coming.row[keep], coming.of[keep], low[keep], high[keep]
    ends = ends.where(ends.time >= start)
    touched = np.isin(of, ends.of)
    if not touched.any():
        return Intervals(row, low, high)
    summed = _sum_ranges(Intervals(row[touched], low[touched], high[touched]), of[touched], ends)
    plain = Intervals(row[~touched], low[~touched], high[~touched])
    return Intervals(*map(np.concatenate, zip(plain, summed, strict=True)))


def _sum_ranges(begins: Intervals, of: Longs, ends: Ends) -> Intervals:
    """Beginnings and ends of solutions along the ranges: where their sum is above zero, as often as
    it says.
    """
    ends = ends.where(np.isin(ends.of, of))
    one = np.ones(len(of), np.int64)
    which = np.concatenate([of, of, ends.of, ends.of])
    at = np.concatenate([begins.low, begins.high, ends.low, ends.high])
    change = np.concatenate([one, -one, ends.sign, -ends.sign])
    order = np.lexsort((at, which))
    which, at, total = which[order], at[order], np.cumsum(change[order])
    keep = (which[1:] == which[:-1]) & (at[1:] > at[:-1]) & (total[:-1] > 0)
    each = np.repeat(np.flatnonzero(keep), total[:-1][keep])
    shown, first = np.unique(of, return_index=True)
    row = begins.row[first][np.searchsorted(shown, which[each])]
    return Intervals(row, at[each], at[each + 1])


def _as_cells(
    node: PlanNode[s.RangedChanges], family: Family, rows: Frame, intervals: Intervals
) -> Frame:
    """Rows that are new, by the cells of their intervals."""
    at, cell = family.cells(intervals.low, intervals.high)
    return _report_rows(rows, intervals.row[at], cell.astype(np.int32))


def _as_members(rows: Frame, members: Members, intervals: Intervals) -> Frame:
    """Rows that are new, for each of some members that have their ranges."""
    at, member = members.members_in_intervals(intervals.low, intervals.high)
    return _report_rows(rows, intervals.row[at], member)


def _report_rows(rows: Frame, row: Longs, op: Ints) -> Frame:
    """Returns report rows of these members or cells."""
    reported = rows.take(row)
    replaced = ("op", "r", "w", LOWEST_CELL, LOWEST_CELL_BEFORE)
    columns = {
        n: c for n, c in reported.columns.items() if n not in replaced and not n.startswith("#")
    }
    weights = np.ones(reported.n, np.int8)
    return Frame({"op": op, **columns, "r": reported[col.BEGIN], "w": weights}, reported.n)
