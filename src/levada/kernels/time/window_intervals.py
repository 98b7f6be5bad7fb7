"""Event times to intervals: the compiled twin of ``levada.core.event_time.Window`` over columns
(docs/semantics.md#windows).

A row's window is a parameter row: ``kind, range, step, t0, t0_given, to`` (``Params``), chosen by
``row_param``, so one call serves the rows of any number of queries. All times are int64 ms in [MIN,
MAX] and the results saturate there; ranges, steps and t0 are below 2**61 in magnitude, so that no
sum leaves int64.

``interval`` gives the instants ``[s, e)`` at which a row counts for one window: s = max(enter(hi),
leave(prev)), e = leave(lo). A row with s >= e never counts. Over several windows of a row, take the
greatest s and the least e.

Cost: about 5 ns a row and function, most of it one division.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Bools, Bytes, Ints
from levada.core.event_time import MAX, MIN, Times, Window, WindowKind
from levada.kernels import BOOL, I32, I64, U8, kernel, part

BOUND = 2**61  # of the parameters
_CLOSE_OPEN = int(WindowKind.CLOSE_OPEN)
_CLOSE_CLOSED = int(WindowKind.CLOSE_CLOSED)
_CHANGE = int(WindowKind.CHANGE)
_RANGE = int(WindowKind.RANGE)
_NOW = int(WindowKind.NOW)
_ENDED = int(WindowKind.ENDED)


class Params(NamedTuple):
    """A parameter table of m windows: the leading arguments of the kernels here (``enter(*params,
    row_param, ts)``).
    """

    kind: Bytes
    range: Times
    step: Times
    t0: Times
    t0_given: Bools
    to: Times

    @property
    def closes(self) -> tuple[Times, Times, Times, Bools]:
        """Returns the columns that determine the closes: (range, step, t0, t0_given)."""
        return self.range, self.step, self.t0, self.t0_given

    @classmethod
    def from_windows(cls, windows: Sequence[Window]) -> Params:
        """Returns the table of these windows, in order.

        >>> Params.from_windows([Window(WindowKind.RANGE, range=5)]).range.tolist()
        [5]
        """
        assert all(w.range < BOUND and w.step < BOUND and -BOUND < w.t0 < BOUND for w in windows), (
            "parameters < 2**61"
        )
        return cls(
            np.array([w.kind for w in windows], np.uint8),
            np.array([w.range for w in windows], np.int64),
            np.array([w.step for w in windows], np.int64),
            np.array([w.t0 for w in windows], np.int64),
            np.array([w.t0_given for w in windows], np.bool_),
            np.array([w.to for w in windows], np.int64),
        )


def starts_of(windows: Sequence[Window]) -> Times:
    """Each window's start by its own t0; a query that starts later takes the greater of both."""
    return np.array([w.start for w in windows], np.int64)


@part
def next_close(x: int, width: int, step: int, t0: int, t0_given: bool) -> int:
    """The smallest close > x; MIN and MAX map to themselves."""
    if x <= MIN:
        return MIN
    if x >= MAX:
        return MAX
    first = t0 + width
    close = first + ((x - first) // step + 1) * step
    if t0_given and close < first:
        return first
    return min(close, MAX)


@part
def _plus(ts: int, span: int) -> int:
    """ts + span, at most MAX; span is not negative."""
    return MAX if ts >= MAX - span else ts + span


@part
def enter_one(kind: int, width: int, step: int, t0: int, t0_given: bool, to: int, ts: int) -> int:
    """The first instant at which an element of time ts is in the window."""
    if ts <= MIN:
        return MIN
    since = _plus(ts, to)
    if kind == _CLOSE_OPEN:
        return next_close(since, width, step, t0, t0_given)
    if kind == _CLOSE_CLOSED:
        return MAX if since >= MAX else next_close(since - 1, width, step, t0, t0_given)
    return since


@part
def leave_one(kind: int, width: int, step: int, t0: int, t0_given: bool, ts: int) -> int:
    """The first instant at which it no longer is; MIN for MIN."""
    if ts <= MIN:
        return MIN
    if ts >= MAX:
        return MAX
    if kind == _CLOSE_OPEN:
        return next_close(_plus(ts, width), width, step, t0, t0_given)
    if kind == _CLOSE_CLOSED:
        last = _plus(ts, width)
        return MAX if last >= MAX else next_close(last - 1, width, step, t0, t0_given)
    if kind == _CHANGE:
        return max(MIN, _plus(t0 + step * ((ts - t0) // step), width))
    if kind == _RANGE:
        return _plus(ts, width)
    return ts + 1 if kind in (_NOW, _ENDED) else MAX


@part
def stays_until(kind: int, width: int, left: int) -> int:
    """Until which time ``leave`` stays at ``left``, from the time on that gave it: a close holds
    for a whole step.
    """
    return left - width if kind <= _CLOSE_CLOSED else MIN


@kernel((U8, I64, I64, I64, BOOL, I64, I32, I64))
def enter(
    kind: Bytes,
    width: Times,
    step: Times,
    t0: Times,
    t0_given: Bools,
    to: Times,
    row_param: Ints,
    ts: Times,
) -> npt.NDArray[np.int64]:
    """``Window.enter`` of each time under its parameters; the close before is tried first."""
    out = np.empty(ts.size, np.int64)
    before, since, close = -1, MAX, MIN
    for i in range(ts.size):
        p = row_param[i]
        if p != before or ts[i] < since or ts[i] >= close - to[p]:
            before, since = p, ts[i]
            close = enter_one(kind[p], width[p], step[p], t0[p], t0_given[p], to[p], ts[i])
        out[i] = close
    return out


@kernel((U8, I64, I64, I64, BOOL, I64, I32, I64))
def leave(
    kind: Bytes,
    width: Times,
    step: Times,
    t0: Times,
    t0_given: Bools,
    to: Times,
    row_param: Ints,
    ts: Times,
) -> npt.NDArray[np.int64]:
    """``Window.leave`` of each time under its parameters; the close before is tried first."""
    out = np.empty(ts.size, np.int64)
    before, since, until, left = -1, MAX, MIN, MIN
    for i in range(ts.size):
        p = row_param[i]
        if p != before or ts[i] < since or ts[i] >= until:
            before, since = p, ts[i]
            left = leave_one(kind[p], width[p], step[p], t0[p], t0_given[p], ts[i])
            until = stays_until(kind[p], width[p], left)
        out[i] = left
    return out


@kernel((U8, I64, I64, I64, BOOL, I64, I64, I32, I64, I64, I64))
def interval(
    kind: Bytes,
    width: Times,
    step: Times,
    t0: Times,
    t0_given: Bools,
    to: Times,
    start: Times,
    row_param: Ints,
    lo: Times,
    hi: Times,
    prev: Times,
) -> tuple[Times, Times]:
    """Returns the instants ``[s, e)`` at which each row counts for one window.

    ``start`` (per parameter row) is the query's: a row with ``lo`` before it never counts (s = e =
    MAX), a ``prev`` before it is ignored. ``prev`` may have length 0: then no row has an earlier
    occurrence.
    """
    s = np.empty(lo.size, np.int64)
    e = np.empty(lo.size, np.int64)
    before, entered, close, since, until, left = -1, MAX, MIN, MAX, MIN, MIN
    for i in range(lo.size):
        p = row_param[i]
        if lo[i] < start[p]:
            s[i] = MAX
            e[i] = MAX
            continue
        # else it is the close of the row before
        if p != before or hi[i] < entered or hi[i] >= close - to[p]:
            entered = hi[i]
            close = enter_one(kind[p], width[p], step[p], t0[p], t0_given[p], to[p], hi[i])
        if p != before or lo[i] < since or lo[i] >= until:
            since = lo[i]
            left = leave_one(kind[p], width[p], step[p], t0[p], t0_given[p], lo[i])
            until = stays_until(kind[p], width[p], left)
        before = p
        s[i] = close
        e[i] = left
        if prev.size and prev[i] >= start[p]:
            s[i] = max(s[i], leave_one(kind[p], width[p], step[p], t0[p], t0_given[p], prev[i]))
    return s, e
