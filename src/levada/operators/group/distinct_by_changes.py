"""Aggregates of distinct values by changes: a value comes in with its first row in the group, and
leaves with its last.

So each change of a row becomes a change of the values: +1 where the count of its value rises from
0, -1 where it falls back, 0 elsewhere. Where a count falls and rises at one report the two make up
for each other. The state is a count per group and value. Cost: the changes.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from levada.kernels.keyed.groups import group
from levada.kernels.keyed.keyed import combine
from levada.kernels.keyed.order import in_order
from levada.kernels.time.running import running_counts
from levada.model import columns as col
from levada.model.arrays import Longs
from levada.model.frame import Frame
from levada.operators.rows.edges import bind
from levada.windows.state import tallies
from levada.windows.state.pieces import State

_ADDED = partial(tallies.add, by=(), sums=(col.COUNT,))


def distinct_weights(
    state: State,
    key: str,
    rows: Frame,
    slot: int,
    *,
    at: Longs,
    w: npt.NDArray[np.int8],
    of: Frame,
) -> npt.NDArray[np.int8]:
    """What changes of rows are of values in ``slot``: ``at`` are rows in order of group and report
    (-1: none), ``of`` their groups, as ``Runs.columns`` has them.

    A row without a value counts for itself.
    """
    there = np.flatnonzero(at >= 0)
    there = there[bind(rows, slot)[at[there]]] if rows.n else there[:0]
    x, y = (rows[f"{name}{slot}"][at[there]] for name in "xy")
    k, h = combine(of[col.KEY][there], of[col.CHECK][there], x, y)
    codes, first = group(k, h)
    order = in_order(codes)
    before = tallies.sum_(tallies.find(state, key, k[first], h[first]), len(first), col.COUNT)
    earlier, after = running_counts(codes[order], w[there[order]].astype(np.int64), before, False)
    change = np.zeros(len(first), np.int64)
    np.add.at(change, codes, w[there])
    place = of[col.PLACE][there[first]]
    kept = Frame(
        {col.KEY: k[first], col.CHECK: h[first], col.PLACE: place, col.COUNT: change}, len(first)
    )
    tallies.insert(state, key, kept.where(change != 0), _ADDED)
    out = w.copy()
    out[there[order]] = (after > 0).astype(np.int8) - (earlier > 0).astype(np.int8)
    return out
