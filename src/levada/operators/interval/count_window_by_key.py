"""Count windows of each key: the last n rows of every value of some columns, as changes (CQL's
Partition By .. Rows n).

As ``operators/interval/count_window`` over tuples, with a count for each key: row number q of a key
is there from its own instant to that of row q + n of the same key, in the order of times and whole
rows. The state is the last n rows of each key, by number, and how many rows each has had. Cost: the
rows that are new and those that they push out.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from levada.kernels.keyed.groups import group
from levada.model import columns as col
from levada.model.frame import Frame, concat
from levada.operators.env import Env, Inputs
from levada.operators.interval.count_window import ordered, weighted_row
from levada.operators.rows.edges import key_of
from levada.plan.sealed import steps as s
from levada.plan.sealed.plan import PlanNode
from levada.windows.state import tallies
from levada.windows.state.numbered import came, count, number
from levada.windows.state.pieces import State

Longs = npt.NDArray[np.int64]
_NETTED = partial(tallies.add, by=(), sums=(col.COUNT,))


def last_by(node: PlanNode[s.LastBy], inputs: Inputs, env: Env) -> Frame | None:
    """New rows of streams -> changes of their count windows."""
    step, state, pool, (frame,) = node.step, env.state, env.pool, inputs
    if frame is None:
        return None
    key = f"{node.id}.last"
    rows = ordered(node, frame, pool)
    codes, first = group(*key_of(rows, step.keys))
    by_key = np.argsort(codes, kind="stable")
    codes = codes[by_key]
    k, h = key_of(rows.take(first), step.keys)
    base = came(state, f"{key}.count", k, h)
    starts = np.searchsorted(codes, np.arange(len(first)))
    q = base[codes] + np.arange(1, rows.n + 1) - starts[codes]
    rows = rows.take(by_key)
    pushed = q - np.array([m.windows[0].count for m in node.members], np.int64)[rows["op"]]
    inside = np.flatnonzero(pushed > base[codes])  # what new rows push out of new ones
    gone = inside - (q - pushed)[inside]
    older = np.flatnonzero((pushed > 0) & (pushed <= base[codes]))
    found = tallies.find(
        state, f"{key}.rows", *number(k[codes[older]], h[codes[older]], pushed[older])
    )
    out = [
        weighted_row(rows, np.arange(rows.n), rows[col.least(0)], 1),
        weighted_row(rows, gone, rows[col.least(0)][inside], -1),
    ]
    if found is not None:
        out.append(
            weighted_row(found[1], np.arange(found[1].n), rows[col.least(0)][older][found[0]], -1)
        )
    left = np.delete(np.arange(rows.n), gone)
    keys = number(k[codes[left]], h[codes[left]], q[left])
    stay = rows.take(left).with_(**{col.KEY: keys[0], col.CHECK: keys[1]})
    _remember(node, state, key, stay, None if found is None else found[1])
    count(state, f"{key}.count", k, h, np.bincount(codes, minlength=len(first)))
    return concat(out)


def _remember(node: PlanNode, state: State, key: str, rows: Frame, gone: Frame | None) -> None:
    """Adds the new rows that stay, and takes out those of before that have gone, and those of
    queries that are gone.
    """
    changes = [rows.with_(**{col.COUNT: np.ones(rows.n, np.int64)})]
    if gone is not None:
        changes.append(
            gone.with_(**{col.COUNT: np.full(gone.n, -1, np.int64)}).select(changes[0].columns)
        )
    tallies.insert(state, f"{key}.rows", concat(changes), lambda many: _net(node, many))


def _net(node: PlanNode, rows: Frame) -> Frame:
    left = _NETTED(rows)
    return left.where(node.alive[left["op"]]) if left.n else left
