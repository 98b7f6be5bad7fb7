"""Count windows of each key: the last n rows of every value of some columns, as changes (CQL's Partition By .. Rows n).

As ``operators/last`` over tuples, with a count for each key: row number q of a key is there from its own instant to that of row
q + n of the same key, in the order of times and whole rows. The state is the last n rows of each key. Cost: the rows that are new
and those that are kept.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from levada.kernels.groups import group
from levada.model.frame import Frame, concat
from levada.operators.last import ordered, weighted_row
from levada.operators.pool import Pool
from levada.operators.rows import key_of
from levada.plan import shapes as s
from levada.plan.topology import PlanNode
from levada.windows.pieces import State

Longs = npt.NDArray[np.int64]


def last_by(node: PlanNode, state: State, frame: Frame, pool: Pool) -> Frame | None:
    """New rows of streams -> changes of their count windows."""
    step = node.step
    assert isinstance(step, s.LastBy), "a count window of each key"
    key = f"{node.id}.last"
    fresh = ordered(node, frame, pool).with_(**{"#new": np.ones(frame.n, bool)})
    kept = [state.frame(p) for p in state.pieces(key)]
    old = [f.with_(**{"#new": np.zeros(f.n, bool)}).select(fresh.columns) for f in kept]
    rows = concat([*old, fresh])
    codes, _ = group(*key_of(rows, step.keys))
    by_key = np.argsort(codes, kind="stable")
    rows, codes = rows.take(by_key), codes[by_key]
    counts = np.array([m.windows[0].count for m in node.members], np.int64)[rows["op"]]
    pushed = _following(codes, counts)
    at = np.minimum(pushed, rows.n - 1)
    leaves = (pushed < rows.n) & rows["#new"][at]
    out = concat(
        [
            weighted_row(rows, np.flatnonzero(rows["#new"]), rows["lo0"][rows["#new"]], 1),
            weighted_row(rows, np.flatnonzero(leaves), rows["lo0"][at[leaves]], -1),
        ]
    )
    live = rows.where(node.alive[rows["op"]] & (pushed >= rows.n))
    plain = Frame({n: c for n, c in live.columns.items() if n != "#new"}, live.n)
    state.replace(key, [state.put({"": plain}, plain.n, (2**62, 0, 0))] if plain.n else [])
    return out if out.n else None


def _following(codes: npt.NDArray[np.int32], counts: Longs) -> Longs:
    """For each row, sorted by key and in order, the row of the same key that pushes it out; the number of rows if none does."""
    n = len(codes)
    at = np.arange(n) + counts
    inside = at < n
    same = np.zeros(n, bool)
    same[inside] = codes[at[inside]] == codes[inside]
    return np.where(same, at, n)
