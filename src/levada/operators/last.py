"""Count windows: the last n rows of a stream as changes of its content (design, section 1, TRIPLES n; section 2, weights).

Rows are ordered by (ts, canonical text). The content changes with each m-th occurrence only (m is the step, mostly 1): with
number b*m it becomes the numbers above b*m - n. So number q enters with the first multiple of m that is not less than q, and
leaves with the first that is not less than q + n; if these are one, it never was there. Over triples the content is a set: a
triple enters (+1) if none of its earlier occurrences is still there, and leaves (-1) with its last one; over tuples every row
does. A row has ``lo`` of its triple and ``hi`` of the instant of its change. The state is what can still be there, or come in.
"""

from __future__ import annotations

from dataclasses import dataclass

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
Members = npt.NDArray[np.int32]


def last(node: PlanNode, state: State, frame: Frame, pool: Pool) -> Frame | None:
    """New rows of streams -> changes of their count windows."""
    step = node.step
    assert isinstance(step, s.Last), "a count window"
    key = f"{node.id}.last"
    kept = [state.frame(p) for p in state.pieces(key)]
    fresh = ordered(node, _occurrences(node, frame, step.bag), pool)
    stored = concat(kept) if kept else None
    rows = _numbered(stored, fresh)
    sizes = _Sizes(*(np.array([getattr(m.windows[0], f) for m in node.members], np.int64) for f in ("count", "step")))
    out = _changes(node, rows, sizes, step.bag)
    live = rows.where(node.alive[rows["op"]] & (rows["#q"] > sizes.since(rows["op"], _last_number(rows))))
    plain = Frame({n: c for n, c in live.columns.items() if n != "#new"}, live.n)
    state.replace(key, [state.put({"": plain}, plain.n, (2**62, 0, 0))] if plain.n else [])
    return out if out.n else None


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Of each member how many occurrences its window holds, and after how many it changes."""

    count: Longs
    step: Longs

    def enters(self, op: Members, q: Longs) -> Longs:
        """The number with which occurrence q enters."""
        return self._up(op, q)

    def leaves(self, op: Members, q: Longs) -> Longs:
        """The number with which it leaves."""
        return self._up(op, q + self.count[op])

    def since(self, op: Members, last_: Longs) -> Longs:
        """After number ``last_``: the greatest that is not there any more."""
        kept: Longs = last_ // self.step[op] * self.step[op] - self.count[op]
        return kept

    def _up(self, op: Members, q: Longs) -> Longs:
        m = self.step[op]
        up: Longs = -(-q // m) * m
        return up


def _occurrences(node: PlanNode, frame: Frame, bag: bool) -> Frame:
    """Equal triples of one ts are one occurrence; rows of tuples all stay."""
    if bag:
        return frame
    k, h = key_of(frame, range(len(node.input_layouts[0].slots)))
    k, h = combine(k, h, frame["lo0"].view(np.uint64), np.zeros(frame.n, np.uint64))
    return frame.take(group(k, h)[1])


def ordered(node: PlanNode, frame: Frame, pool: Pool) -> Frame:
    """By (member, ts, text)."""
    texts = [column(frame, i, pool).texts().fill_null("") for i in range(len(node.input_layouts[0].slots))]
    ranks = [t.rank("dense").to_numpy() for t in reversed(texts)] if frame.n else []
    return frame.take(np.lexsort((*ranks, frame["lo0"], frame["op"])))


def _numbered(stored: Frame | None, fresh: Frame) -> Frame:
    """Stored and new rows by member, each with its number #q (from 1) in the stream's order; a member's are without gaps."""
    fresh = fresh.with_(**{"#new": np.ones(fresh.n, bool), "#q": np.zeros(fresh.n, np.int64)})
    if stored is None:
        rows = fresh
    else:
        rows = concat([stored.with_(**{"#new": np.zeros(stored.n, bool)}).select(fresh.columns), fresh])
        rows = rows.take(np.argsort(rows["op"], kind="stable"))
    first = _firsts(rows["op"])
    starts = np.maximum.accumulate(np.where(first, np.arange(rows.n), 0))
    base = np.where(rows["#new"][starts], 1, rows["#q"][starts])
    return rows.with_(**{"#q": base + np.arange(rows.n) - starts})


def _firsts(values: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
    return np.concatenate([[True], values[1:] != values[:-1]]) if len(values) else np.empty(0, bool)


def _last_number(rows: Frame) -> Longs:
    """For each row the greatest number of its member."""
    greatest = np.zeros(int(rows["op"].max(initial=0)) + 1, np.int64)
    np.maximum.at(greatest, rows["op"], rows["#q"])
    return greatest[rows["op"]]


def _changes(node: PlanNode, rows: Frame, sizes: _Sizes, bag: bool) -> Frame:
    """+1 for what comes in, -1 for what goes, where the occurrence with which it does is new."""
    q, op = rows["#q"], rows["op"]
    entry, exit_ = sizes.enters(op, q), sizes.leaves(op, q)
    there = entry < exit_
    previous, following = _neighbours(node, rows, there, bag)
    at_entry, comes = _changing(rows, entry)
    at_exit, goes = _changing(rows, exit_)
    enters = there & comes & ((previous < 0) | (exit_[previous] <= entry))
    leaves = there & goes & ((following < 0) | (entry[following] >= exit_))
    plus = weighted_row(rows, np.flatnonzero(enters), rows["lo0"][at_entry[enters]], 1)
    minus = weighted_row(rows, np.flatnonzero(leaves), rows["lo0"][at_exit[leaves]], -1)
    return concat([plus, minus])


def _changing(rows: Frame, number: Longs) -> tuple[Longs, npt.NDArray[np.bool_]]:
    """The place of each row's member's occurrence with this number, and whether it is there and new."""
    at = np.arange(rows.n) + number - rows["#q"]
    inside = at < rows.n
    at = np.minimum(at, max(rows.n - 1, 0))
    return at, inside & (rows["op"][at] == rows["op"]) & rows["#new"][at]


def _neighbours(node: PlanNode, rows: Frame, there: npt.NDArray[np.bool_], bag: bool) -> tuple[Longs, Longs]:
    """For each row the places of the occurrence of the same triple before and after it that is ever ``there``, -1 if none."""
    none = np.full(rows.n, -1, np.int64)
    if bag or not rows.n:
        return none, none.copy()
    codes, _ = group(*key_of(rows, range(len(node.input_layouts[0].slots))))
    order = np.argsort(codes, kind="stable")
    order = order[there[order]]
    same = ~_firsts(codes[order])
    previous, following = none, none.copy()
    previous[order[1:][same[1:]]] = order[:-1][same[1:]]
    following[order[:-1][same[1:]]] = order[1:][same[1:]]
    return previous, following


def weighted_row(rows: Frame, at: Longs, instant: Longs, weight: int) -> Frame:
    """These rows as changes at these instants."""
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
