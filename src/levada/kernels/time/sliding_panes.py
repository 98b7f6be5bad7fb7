"""Windows that slide over a group's panes: the panes that count at each report, group after group.

The panes of a group in order of time begin and end in that order, so those that count at a report
are a range, and both its ends only move forward. Pairs are in order of group, then of report: their
aggregation reads and writes from front to back, where expanding pane by pane (``report_expansion``)
would write each to another place.

Cost: 2 to 3 ns a pair, a division a gap. Twin: ``report_expansion.expand_closes`` and
``hash_groups.group``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from levada.core.array_types import Bools, Ints, Longs
from levada.core.event_time import MAX, MIN, Times
from levada.kernels import BOOL, FLAG, I32, I64, OUT_I32, kernel
from levada.kernels.keyed.key_partitioner import scatter_order
from levada.kernels.time.window_intervals import next_close

_OUT = I64.copy(readonly=False)


class Slid(NamedTuple):
    """Pairs of a pane and a report: the pane's row, the number of its (group, report); of each of
    these one row and the report.
    """

    row: Longs
    code: Ints
    first: Longs
    report: Times


def slide(
    group: Ints, groups: int, op: Ints, s: Times, e: Times, low: Times, high: Times,
    closes: tuple[Times, Times, Times, Bools],
) -> Slid | None:  # fmt: skip
    """All closes r with low < r <= high of each group (numbers ``group``) and its panes with s <= r
    < e; panes have s < e.

    ``low``, ``high`` and ``closes`` (range, step, t0, t0_given) are by member (``op``). None if the
    panes of some group are not in order of time, or the reports have no end.
    """
    order, offsets = scatter_order(group, groups)
    none, few = np.empty(0, np.int64), np.empty(0, np.int32)
    args = (order, offsets, op, s, e, low, high, *closes)
    pairs, reports = _slide(*args, none, few, none, none, False)
    if pairs < 0:
        return None
    slid = Slid(
        np.empty(pairs, np.int64),
        np.empty(pairs, np.int32),
        np.empty(reports, np.int64),
        np.empty(reports, np.int64),
    )
    _slide(*args, *slid, True)
    return slid


@kernel((I32, I64, I32, I64, I64, I64, I64, I64, I64, I64, BOOL, _OUT, OUT_I32, _OUT, _OUT, FLAG))
def _slide(
    order: Ints, offsets: Longs, op: Ints, s: Times, e: Times, low: Times, high: Times,
    width: Times, step: Times, t0: Times, t0_given: Bools,
    row: Longs, code: Ints, first: Longs, report: Times, fill: bool,
) -> tuple[int, int]:  # fmt: skip
    """Counts, or with ``fill`` writes; (pairs, reports), or (-1, -1) where ``slide`` is None."""
    pairs = reports = 0
    for g in range(offsets.size - 1):
        a, stop = offsets[g], offsets[g + 1]
        p = op[order[a]]
        for i in range(a + 1, stop):
            if s[order[i]] < s[order[i - 1]] or e[order[i]] < e[order[i - 1]]:
                return -1, -1
        last = min(high[p], e[order[stop - 1]] - 1)
        below = max(low[p], s[order[a]] - 1)
        if below <= MIN or last >= MAX - 1:
            return -1, -1
        r = next_close(below, width[p], step[p], t0[p], t0_given[p])
        b = a
        while r <= last:
            while b < stop and s[order[b]] <= r:
                b += 1
            while a < b and e[order[a]] <= r:
                a += 1
            if a == b:  # nothing counts before the next pane does
                r = next_close(s[order[b]] - 1, width[p], step[p], t0[p], t0_given[p])
                continue
            if fill:
                first[reports], report[reports] = order[a], r
                for i in range(a, b):
                    row[pairs + i - a] = order[i]
                    code[pairs + i - a] = reports
            pairs += b - a
            reports += 1
            r += step[p]
    return pairs, reports
