"""The incremental windowed join: new rows of each side meet the runs of the other, and each other, exactly once.

    out = new_left x old_right  +  old_left x new_right  +  new_left x new_right

Pairs have equal keys (the member is part of the key) and instants in common; times are joined by min and max, so a row of
the result counts exactly while both its parts do. Raw sides are made sets on the way in. (Parallel windowed joins, W3,
W20; CQELS Cloud, Algorithm 1, batch version C24. Runs in place of block lists: ``windows/runs``.)

Cost: by the new rows and the result, a probe per run; never by the window.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from levada.kernels.probe import join_pairs
from levada.model.frame import Column, Frame, concat
from levada.operators import rows as r
from levada.operators.occur import as_set
from levada.plan import shapes as s
from levada.plan.layout import Layout, slot_columns
from levada.plan.topology import PlanNode, WindowTable
from levada.windows import runs
from levada.windows.intervals import exact, outer, quarter
from levada.windows.pieces import State

PIECE = 32_768  # probe rows at a time: what keeps a run's directory and the output in cache
Pairs = npt.NDArray[np.int32] | npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Side:
    """New rows of one side as a run, and the runs of before."""

    new: runs.Run
    old: list[runs.Run]
    layout: Layout


def join(node: PlanNode, state: State, inputs: list[Frame | None], horizons: runs.Horizons) -> Frame | None:
    """The new result rows. ``horizons``: rows that are dead by then are dropped."""
    step = node.step
    assert isinstance(step, s.Join), "a join"
    left, right = (_side(node, step, state, i, frame, horizons) for i, frame in enumerate(inputs))
    parts = [
        *_meet(node, step, left.new, right.old, left, right),
        *_meet_reverse(node, step, left.old, right.new, left, right),
        *_meet(node, step, left.new, [right.new], left, right),
    ]
    for i, side in enumerate((left, right)):
        if side.new.rows.n:
            runs.insert(state, f"{node.id}.{i}", side.new, quarter(node.windows), horizons.next)
    filled = [p for p in parts if p.n]
    return concat(filled) if filled else None


def _side(node: PlanNode, step: s.Join, state: State, i: int, frame: Frame | None, horizons: runs.Horizons) -> _Side:
    """One input: its keys, its occurrences if it is raw, its runs."""
    layout = node.input_layouts[i]
    old = runs.live(state, f"{node.id}.{i}", horizons.now)
    raw = step.raw[i]
    if frame is None:
        frame = r.empty(layout)
    key = r.key_of(frame, step.left if i == 0 else step.right)
    whole = None
    if raw:
        whole_key = r.key_of(frame, range(len(layout.slots)))
        frame, kept = as_set(frame, key, whole_key, old)
        key, whole = (key[0][kept], key[1][kept]), whole_key[1][kept]
    frame = _shown(frame, step, i)
    columns = [(left, right)[i] for left, right in step.windows]
    table = _project(node, columns, len(layout.windows))
    start, end = outer(frame, layout, table)
    return _Side(runs.arranged(runs.keyed(frame, key, start, end, whole)), old, layout)


def _shown(frame: Frame, step: s.Join, i: int) -> Frame:
    """What the result takes of a side: its slots, those that may have to be filled, times; keys are in the # columns."""
    slots = {at for side, at in step.out if side == i} | {pair[i] for pair in step.fills}
    kept = {
        n: c for n, c in frame.columns.items() if not (n[0] in "xykdmc" and n[1:].isdigit() and int(n[1:]) not in slots)
    }
    return Frame(kept, frame.n)


def _project(node: PlanNode, columns: list[int], width: int) -> WindowTable:
    """The node's window table in the order of one input's windows."""
    order = [columns.index(w) for w in range(width)]
    return node.windows.pick(order)


def _meet(
    node: PlanNode, step: s.Join, new: runs.Run, old: list[runs.Run], left: _Side, right: _Side
) -> list[Frame]:  # fmt: skip
    """New left rows against runs of the right."""
    out = []
    for run in old:
        for at in range(0, new.rows.n, PIECE):
            b = new.buckets
            cut = slice(at, at + PIECE)
            i, j = join_pairs(b.k[cut], b.h[cut], b.s[cut], b.e[cut], run.buckets)
            out.append(_paired(node, step, new.rows, i + at, run.rows, j, left, right))
    return out


def _meet_reverse(
    node: PlanNode, step: s.Join, old: list[runs.Run], new: runs.Run, left: _Side, right: _Side
) -> list[Frame]:  # fmt: skip
    """New right rows against runs of the left."""
    out = []
    for run in old:
        for at in range(0, new.rows.n, PIECE):
            b = new.buckets
            cut = slice(at, at + PIECE)
            j, i = join_pairs(b.k[cut], b.h[cut], b.s[cut], b.e[cut], run.buckets)
            out.append(_paired(node, step, run.rows, i, new.rows, j + at, left, right))
    return out


def _paired(
    node: PlanNode, step: s.Join, a: Frame, i: Pairs, b: Frame, j: Pairs, left: _Side, right: _Side
) -> Frame:  # fmt: skip
    """The result rows of pairs (i of a, j of b): compatible ones that count at some instant."""
    if not len(i):
        return r.empty(node.layout)
    if step.fills:
        keep = compatible(a, i, b, j, step.fills)
        i, j = i[keep], j[keep]
    columns: dict[str, Column] = {"op": a["op"][i]}
    filled = dict(step.fills)
    for n, (side, at) in enumerate(step.out):
        facets = node.layout.slots[n]
        columns.update(r.gather((a, b)[side], (i, j)[side], at, n, facets))
        if side == 0 and at in filled:
            _fill(columns, n, slot_columns(n, facets), a, i, at, b, j, filled[at])
    for w, (at_left, at_right) in enumerate(step.windows):
        columns.update(_times(node.layout, w, a, i, left.layout, at_left, b, j, right.layout, at_right))
    if node.layout.weighted:
        columns["w"] = _weight(a, i) * _weight(b, j)
    joined = Frame(columns, len(i))
    return _counting(node, joined)


def _counting(node: PlanNode, joined: Frame) -> Frame:
    """Outer instants are wider than exact ones for windows on close and for repeated triples."""
    if (node.windows.kind >= 2).all() and not any(w.prev for w in node.layout.windows):
        return joined
    start, end = exact(joined, node.layout, node.windows)
    return joined.where(start < end)


def _weight(frame: Frame, rows: Pairs) -> npt.NDArray[np.int8]:
    return frame["w"][rows] if "w" in frame else np.ones(len(rows), np.int8)


def compatible(a: Frame, i: Pairs, b: Frame, j: Pairs, fills: tuple[tuple[int, int], ...]) -> npt.NDArray[np.bool_]:
    """Which pairs agree on the shared slots that may be unbound."""
    keep = np.ones(len(i), bool)
    for left, right in fills:
        ax, ay = a[f"x{left}"][i], a[f"y{left}"][i]
        bx, by = b[f"x{right}"][j], b[f"y{right}"][j]
        keep &= ((ax == bx) & (ay == by)) | ((ax == 0) & (ay == 0)) | ((bx == 0) & (by == 0))
    return keep


def _fill(
    columns: dict[str, Column], n: int, names: list[str], a: Frame, i: Pairs, at: int, b: Frame, j: Pairs, other: int
) -> None:  # fmt: skip
    """Takes the right side's value where the left's is unbound."""
    ax, ay = a[f"x{at}"][i], a[f"y{at}"][i]
    missing = (ax == 0) & (ay == 0)
    for name in names:
        columns[name] = np.where(missing, b[f"{name[0]}{other}"][j], columns[name])


def _times(
    layout: Layout, w: int, a: Frame, i: Pairs, la: Layout, at_a: int, b: Frame, j: Pairs, lb: Layout, at_b: int
) -> dict[str, Column]:  # fmt: skip
    """min of lo, max of hi, max of prev over the sides that carry the window."""
    sides = [(f, rows, lay, at) for f, rows, lay, at in ((a, i, la, at_a), (b, j, lb, at_b)) if at >= 0]
    lows = [f[f"lo{at}"][rows] for f, rows, _, at in sides]
    columns: dict[str, Column] = {f"lo{w}": lows[0] if len(lows) == 1 else np.minimum(*lows)}
    if layout.windows[w].hi:
        highs = [f[f"hi{at}" if lay.windows[at].hi else f"lo{at}"][rows] for f, rows, lay, at in sides]
        columns[f"hi{w}"] = highs[0] if len(highs) == 1 else np.maximum(*highs)
    if layout.windows[w].prev:
        prevs = [f[f"prev{at}"][rows] for f, rows, _, at in sides if f"prev{at}" in f]
        columns[f"prev{w}"] = prevs[0] if len(prevs) == 1 else np.maximum(*prevs)
    return columns
