"""Incremental aggregates of distinct values: a value enters with its first row in the group, and
leaves with its last.

Each change of a row becomes a change of its value: +1 where the count of the value rises from 0, -1
where the count falls back to 0, 0 elsewhere. If a count falls and rises at one report, the two
changes cancel. The state is a count for each group and value. Cost: the changes.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Longs
from levada.core.frame import Frame
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.radix_sort import in_order
from levada.kernels.time.running_aggregates import running_counts
from levada.operators.rows.route_rows import bind
from levada.operators.state import counters
from levada.operators.state.state_parts import State

_ADDED = partial(counters.add, by=(), sums=(col.COUNT,))


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
    """Returns the change of distinct values in ``slot`` for each change of a row. ``at``: rows in
    order of group and report (-1: no row). ``of``: their groups, as for ``Runs.columns``.

    A row without a value counts for itself.
    """
    there = np.flatnonzero(at >= 0)
    there = there[bind(rows, slot)[at[there]]] if rows.n else there[:0]
    x, y = (rows[f"{name}{slot}"][at[there]] for name in "xy")
    k, h = combine(of[col.KEY][there], of[col.CHECK][there], x, y)
    codes, first = group(k, h)
    order = in_order(codes)
    before = counters.sum_column(
        counters.find(state, key, k[first], h[first]), len(first), col.COUNT
    )
    earlier, after = running_counts(codes[order], w[there[order]].astype(np.int64), before, False)
    change = np.zeros(len(first), np.int64)
    np.add.at(change, codes, w[there])
    place = of[col.PLACE][there[first]]
    kept = Frame(
        {col.KEY: k[first], col.CHECK: h[first], col.PLACE: place, col.COUNT: change}, len(first)
    )
    counters.insert(state, key, kept.where(change != 0), _ADDED)
    out = w.copy()
    out[there[order]] = (after > 0).astype(np.int8) - (earlier > 0).astype(np.int8)
    return out
