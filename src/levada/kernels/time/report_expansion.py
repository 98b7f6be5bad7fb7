"""Expands rows that count in ``[s, e)`` to (row, report) pairs: a further key for snapshot
operators.

The reports are the closes of the row's window (``expand_closes``), or a sorted list of instants
(``expand_instants``). Both count first, then fill. Rows with s >= e have no pairs. Pairs are in
order of rows, then of reports.

Cost: 3 ns a pair, and per row one or two divisions (closes) or two binary searches (instants).
"""

from __future__ import annotations

import numpy as np

from levada.core.array_types import Bools, Ints, Longs
from levada.core.event_time import MAX, MIN, Times
from levada.kernels import BOOL, I32, I64, INT, kernel
from levada.kernels.keyed.hash_probe import first_at_least
from levada.kernels.time.window_intervals import next_close


def expand_closes(
    s: Times,
    e: Times,
    low: Times | int,
    high: Times | int,
    closes: tuple[Times, Times, Times, Bools],
    row_param: Ints,
) -> tuple[Longs, Times]:
    """Closes r of each row's window with max(s, low + 1) <= r <= min(e - 1, high): (row, report).

    ``closes`` is (range, step, t0, t0_given) per parameter row, that is ``Params.closes``. ``low``
    (exclusive) and ``high`` (inclusive) are one time or one per row. Where a row has no end,
    ``high`` must be one.
    """
    lows = np.atleast_1d(np.asarray(low, np.int64))
    highs = np.atleast_1d(np.asarray(high, np.int64))
    total, first, many = _count_closes(s, e, lows, highs, *closes, row_param)
    assert total >= 0, "the limits or the rows bound the reports on both sides"
    return _fill_closes(total, first, many, closes[1], row_param)


@kernel((I64, I64, I64, I64, I64, I64, I64, BOOL, I32))
def _count_closes(
    s: Times,
    e: Times,
    low: Times,
    high: Times,
    width: Times,
    step: Times,
    t0: Times,
    t0_given: Bools,
    row_param: Ints,
) -> tuple[int, Times, Times]:
    """Per row the first close and how many; the total is -1 if a row has no bound."""
    total = 0
    first = np.empty(s.size, np.int64)
    many = np.zeros(s.size, np.int64)
    for i in range(s.size):
        p = row_param[i]
        below = low[i if low.size > 1 else 0]
        last = high[i if high.size > 1 else 0]
        below = max(s[i] - 1, below)
        if e[i] < MAX:
            last = min(e[i] - 1, last)
        if below >= last or below >= MAX - 1:
            continue
        if below <= MIN or last >= MAX:
            return -1, first, many
        first[i] = next_close(below, width[p], step[p], t0[p], t0_given[p])
        if first[i] <= last:
            many[i] = (last - first[i]) // step[p] + 1
            total += many[i]
    return total, first, many


@kernel((INT, I64, I64, I64, I32))
def _fill_closes(
    total: int, first: Times, many: Times, step: Times, row_param: Ints
) -> tuple[Longs, Times]:
    row = np.empty(total, np.int64)
    report = np.empty(total, np.int64)
    n = 0
    for i in range(first.size):
        r = first[i]
        for _ in range(many[i]):
            row[n] = i
            report[n] = r
            r += step[row_param[i]]
            n += 1
    return row, report


@kernel((I64, I64, I64))
def expand_instants(s: Times, e: Times, instants: Times) -> tuple[Longs, Times]:
    """All of the ``instants`` (sorted, distinct) in ``[s, e)`` of each row, as (row, report)."""
    total = 0
    first = np.empty(s.size, np.int64)
    stop = np.empty(s.size, np.int64)
    for i in range(s.size):
        first[i] = first_at_least(instants, 0, instants.size, s[i])
        stop[i] = first_at_least(instants, first[i], instants.size, e[i])
        total += stop[i] - first[i]
    row = np.empty(total, np.int64)
    report = np.empty(total, np.int64)
    n = 0
    for i in range(s.size):
        for q in range(first[i], stop[i]):
            row[n] = i
            report[n] = instants[q]
            n += 1
    return row, report
