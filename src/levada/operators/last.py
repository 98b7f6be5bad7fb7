"""Count windows: the last n rows of a stream as changes of its content (design, section 1, TRIPLES n; section 2, weights).

Rows are ordered by (ts, canonical text). Occurrence number q is in the window from its own instant to that of occurrence
q + n. Over triples the content is a set: a triple enters (+1) if none of its earlier occurrences is among the last n, and
leaves (-1) with its last one; over tuples every row does. A row of weight -1 has ``lo`` of the row that it ends and ``hi`` of the
instant at which it does. The state is the last n occurrences.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from levada.kernels.groups import group
from levada.kernels.keyed import combine
from levada.model.frame import Frame, concat
from levada.operators.pool import Pool
from levada.operators.rows import gather, key_of
from levada.operators.values import column
from levada.plan import shapes as s
from levada.plan.topology import PlanNode
from levada.windows.pieces import State

Longs = npt.NDArray[np.int64]


def last(node: PlanNode, state: State, frame: Frame, pool: Pool) -> Frame | None:
    """New rows of streams -> changes of their count windows."""
    step = node.step
    assert isinstance(step, s.Last), "a count window"
    key = f"{node.id}.last"
    kept = [state.frame(p) for p in state.pieces(key)]
    fresh = _ordered(node, _occurrences(node, frame, step.bag), pool)
    stored = concat(kept) if kept else None
    rows = _numbered(stored, fresh)
    counts = np.array([m.windows[0].count for m in node.members], np.int64)
    out = _changes(node, rows, counts, step.bag)
    live = rows.where(rows["#q"] > _last_number(rows) - counts[rows["op"]])
    plain = Frame({n: c for n, c in live.columns.items() if n != "#new"}, live.n)
    state.replace(key, [state.put({"": plain}, plain.n, (2**62, 0, 0))] if plain.n else [])
    return out if out.n else None


def _occurrences(node: PlanNode, frame: Frame, bag: bool) -> Frame:
    """Equal triples of one ts are one occurrence; rows of tuples all stay."""
    if bag:
        return frame
    k, h = key_of(frame, range(len(node.input_layouts[0].slots)))
    k, h = combine(k, h, frame["lo0"].view(np.uint64), np.zeros(frame.n, np.uint64))
    return frame.take(group(k, h)[1])


def _ordered(node: PlanNode, frame: Frame, pool: Pool) -> Frame:
    """By (member, ts, text)."""
    texts = [column(frame, i, pool).texts().fill_null("") for i in range(len(node.input_layouts[0].slots))]
    ranks = [t.rank("dense").to_numpy() for t in reversed(texts)] if frame.n else []
    return frame.take(np.lexsort((*ranks, frame["lo0"], frame["op"])))


def _numbered(stored: Frame | None, fresh: Frame) -> Frame:
    """Stored and new rows by member, each with its number #q in the stream's order."""
    fresh = fresh.with_(**{"#new": np.ones(fresh.n, bool), "#q": np.zeros(fresh.n, np.int64)})
    if stored is None:
        rows = fresh
    else:
        rows = concat([stored.with_(**{"#new": np.zeros(stored.n, bool)}).select(fresh.columns), fresh])
        rows = rows.take(np.argsort(rows["op"], kind="stable"))
    first = _firsts(rows["op"])
    starts = np.maximum.accumulate(np.where(first, np.arange(rows.n), 0))
    base = np.where(rows["#new"][starts], 0, rows["#q"][starts])
    return rows.with_(**{"#q": base + np.arange(rows.n) - starts})


def _firsts(values: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    return np.concatenate([[True], values[1:] != values[:-1]]) if len(values) else np.empty(0, bool)


def _last_number(rows: Frame) -> Longs:
    """For each row the greatest number of its member."""
    greatest = np.zeros(int(rows["op"].max(initial=0)) + 1, np.int64)
    np.maximum.at(greatest, rows["op"], rows["#q"])
    return greatest[rows["op"]]


def _changes(node: PlanNode, rows: Frame, counts: Longs, bag: bool) -> Frame:
    """+1 for what comes in, -1 for what is pushed out by a new row."""
    n = counts[rows["op"]]
    previous, following = _neighbours(node, rows, bag)
    q = rows["#q"]
    enters = rows["#new"] & ((previous < 0) | (q[previous] + n <= q))
    pusher = np.arange(rows.n) + n
    inside = pusher < rows.n
    at = np.minimum(pusher, rows.n - 1)
    pushed = inside & (rows["op"][at] == rows["op"]) & rows["#new"][at]
    leaves = pushed & ((following < 0) | (q[following] >= q + n))
    plus = _row(rows, np.flatnonzero(enters), rows["lo0"][enters], 1)
    minus = _row(rows, np.flatnonzero(leaves), rows["lo0"][at[leaves]], -1)
    return concat([plus, minus])


def _neighbours(node: PlanNode, rows: Frame, bag: bool) -> tuple[Longs, Longs]:
    """For each row the places of the occurrence of the same triple before and after it, -1 if none."""
    none = np.full(rows.n, -1, np.int64)
    if bag or not rows.n:
        return none, none.copy()
    codes, _ = group(*key_of(rows, range(len(node.input_layouts[0].slots))))
    order = np.argsort(codes, kind="stable")
    same = ~_firsts(codes[order])
    previous, following = none, none.copy()
    previous[order[1:][same[1:]]] = order[:-1][same[1:]]
    following[order[:-1][same[1:]]] = order[1:][same[1:]]
    return previous, following


def _row(rows: Frame, at: Longs, instant: Longs, weight: int) -> Frame:
    plain = Frame({n: c for n, c in rows.columns.items() if not n.startswith("#")}, rows.n).take(at)
    return plain.with_(hi0=instant.astype(np.int64), w=np.full(plain.n, weight, np.int8))


def select(node: PlanNode, frame: Frame, seed_identity: npt.NDArray[np.uint64]) -> Frame:
    """A triple pattern over rows s, p, o: the members' constants (identities, shape (members, 3, 2)) and repeated variables."""
    step = node.step
    assert isinstance(step, s.Select), "a selection"
    keep = np.ones(frame.n, bool)
    first: dict[int, int] = {}
    for position, slot in enumerate(step.positions):
        x, y = frame[f"x{position}"], frame[f"y{position}"]
        if slot < 0:
            wanted = seed_identity[frame["op"], position]
            keep &= (x == wanted[:, 0]) & (y == wanted[:, 1])
        elif slot in first:
            keep &= (x == frame[f"x{first[slot]}"]) & (y == frame[f"y{first[slot]}"])
        else:
            first[slot] = position
    rows = np.flatnonzero(keep)
    columns = {n: c[rows] for n, c in frame.columns.items() if n in ("op", "w") or n.startswith(("lo", "hi", "prev"))}
    for i, slot in enumerate(step.kept):
        columns.update(gather(frame, rows, first[slot], i, node.layout.slots[i]))
    return Frame(columns, len(rows))
