"""Expirations in windows of any range: the times from which they follow, by solution.

A row counts for a range from its arrival, or from the departure of an earlier equal row (``prev``),
until it leaves itself. So for each row two instants follow from the range by one addition: the end,
from its least time, and, where there is an earlier occurrence, the beginning, from the time of that
one. Both are *entries*: a time with a sign, of a solution, valid from an instant on (``#s``).
Entries are kept once, whatever ranges there are, until the longest range has passed.

The entries at a report of a row that begins are looked up by its solution, and among these by their
times: the times that the ranges reach back to, or, where these are more than there are ranges, the
times that each range reaches.

Cost: a search of each part for each solution that begins at a report.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Longs, Words
from levada.core.event_time import MIN, Times
from levada.core.frame import Frame, concat
from levada.core.row_ranges import ranges
from levada.kernels.keyed.radix_sort import in_order
from levada.operators.rows.route_rows import place_of
from levada.operators.state.state_parts import State, StatePart, due_together

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


def remember(state: State, key: str, new: Frame | None, reach: int, made: int) -> None:
    """Appends entries as a piece in order of key and time; drops pieces of which all have passed
    for ranges up to ``reach`` (ms) at the report ``made``, puts younger ones together.
    """
    pieces = [p for p in state.pieces(key) if p.dead > made]
    if new is not None and new.n:
        pieces.append(_put(state, new, reach))
    if (start := due_together(pieces)) < len(pieces):
        every = concat([state.whole(p) for p in pieces[start:]])
        left = every.where(every[TIME] > made - reach)
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
    keys, wanted = rows[col.KEY].view(np.int64), begun.k.view(np.int64)
    low, high = np.searchsorted(keys, wanted), np.searchsorted(keys, wanted, side="right")
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


def _first(times: Times, low: Longs, high: Longs, wanted: Times) -> Longs:
    """The first place from ``low`` on, up to ``high``, of ascending times that has such a one."""
    low, high = low.copy(), high.copy()
    while (left := low < high).any():
        middle = (low + high) >> 1
        less = left & (times[np.minimum(middle, len(times) - 1)] < wanted)
        low = np.where(less, middle + 1, low)
        high = np.where(left & ~less, middle, high)
    return low
