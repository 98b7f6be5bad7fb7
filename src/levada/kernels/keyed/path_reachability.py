"""Nodes that a path of any length reaches (SPARQL 1.1, 18.4, ALP): a search from each start over
edges in CSR form.

Nodes are dense numbers; the edges of node i are ``targets[offsets[i]:offsets[i + 1]]``. Each start
is searched once, breadth first; a stamp per node marks the visited ones, so cycles end and equal
edges cost a look. The kernel stops before a start whose pairs might not fit in the output and can
be resumed. Twin: ``reach_by_rounds``, semi-naive rounds of NumPy joins.

Cost: per start the edges that it reaches, some ns each; edges that a start does not reach are not
touched.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Bools, Ints
from levada.core.event_time import MAX
from levada.kernels import BOOL, FLAG, I32, INT, OUT_I32, kernel

LEAST_OUTPUT = 1024


def edges_of(sources: Ints, targets: Ints, nodes: int) -> tuple[Ints, Ints]:
    """Edges as offsets and targets, in order of their sources.

    >>> offsets, targets = edges_of(np.array([1, 0], np.int32), np.array([0, 1], np.int32), 2)
    >>> offsets.tolist(), targets.tolist()
    ([0, 1, 2], [1, 0])
    """
    offsets = np.zeros(nodes + 1, np.int32)
    np.cumsum(np.bincount(sources, minlength=nodes), out=offsets[1:])
    return offsets, targets[np.argsort(sources, kind="stable")].astype(np.int32, copy=False)


def reach(
    offsets: Ints, targets: Ints, starts: Ints, zero: Bools, *, many: bool, most: int = MAX
) -> tuple[Ints, Ints]:
    """Returns all pairs (start, node) that a path connects, each once; the starts are distinct. If
    there are more than ``most`` pairs, returns only some, but more than ``most``.

    A path has one step or more; with zero steps, a start that ``zero`` flags reaches itself.
    Without ``many`` it has one at most.

    >>> offsets, targets = edges_of(np.array([0, 1], np.int32), np.array([1, 0], np.int32), 2)
    >>> i, j = reach(offsets, targets, np.array([0], np.int32), np.zeros(2, bool), many=True)
    >>> i.tolist(), j.tolist()
    ([0, 0], [1, 0])
    """
    room, at = max(LEAST_OUTPUT, len(starts) + len(targets)), 0
    parts: list[tuple[Ints, Ints]] = []
    pairs, enough = 0, max(most + 1, len(zero))  # enough for the nodes that any start reaches
    while at < len(starts) and pairs <= most:
        i, j = np.empty(room, np.int32), np.empty(room, np.int32)
        at, n = _reach(offsets, targets, starts, zero, many, at, i, j)
        parts.append((i[:n], j[:n]))
        pairs, room = pairs + n, min(2 * room, max(room, enough))
    none = np.empty(0, np.int32)
    return np.concatenate([none, *(i for i, _ in parts)]), np.concatenate(
        [none, *(j for _, j in parts)]
    )


@kernel((I32, I32, I32, BOOL, FLAG, INT, OUT_I32, OUT_I32))
def _reach(
    offsets: Ints,
    targets: Ints,
    starts: Ints,
    zero: Bools,
    many: bool,
    at: int,
    out_i: Ints,
    out_j: Ints,
) -> tuple[int, int]:
    """From the start at ``at`` on: (the next start, pairs written). The output is the queue."""
    stamps = np.full(zero.size, -1, np.int32)
    n = 0
    while at < starts.size:
        start = starts[at]
        first = n
        head = n
        if zero[start]:
            if n == out_i.size:
                return at, first
            stamps[start] = at
            out_i[n] = start
            out_j[n] = start
            n += 1
            head = n
        node = start
        while True:
            for e in range(offsets[node], offsets[node + 1]):
                target = targets[e]
                if stamps[target] == at:
                    continue
                if n == out_i.size:
                    return at, first
                stamps[target] = at
                out_i[n] = start
                out_j[n] = target
                n += 1
            if not many or head == n:
                break
            node = out_j[head]
            head += 1
        at += 1
    return at, n


def reach_by_rounds(
    offsets: Ints, targets: Ints, starts: Ints, zero: Bools, *, many: bool
) -> tuple[Ints, Ints]:
    """Returns the result of ``reach``, in order of start and node: each round joins the new pairs
    with the edges.
    """
    nodes = len(zero)
    seen = starts[zero[starts]].astype(np.int64) * (nodes + 1)
    new = _next_pairs(offsets, targets, starts, starts)
    new = np.setdiff1d(new, seen)
    while len(new):
        seen = np.union1d(seen, new)
        i, j = new // nodes, new % nodes
        new = np.setdiff1d(_next_pairs(offsets, targets, i, j), seen) if many else new[:0]
    seen = np.sort(seen)
    return (seen // nodes).astype(np.int32), (seen % nodes).astype(np.int32)


def _next_pairs(
    offsets: Ints, targets: Ints, i: npt.NDArray[np.integer], j: npt.NDArray[np.integer]
) -> npt.NDArray[np.int64]:
    """The pairs one step on, as numbers ``start * nodes + node``."""
    counts = offsets[j + 1] - offsets[j]
    ends = np.cumsum(counts)
    places = np.arange(int(counts.sum())) - np.repeat(ends - counts - offsets[j], counts)
    whole: npt.NDArray[np.int64] = (
        np.repeat(i, counts).astype(np.int64) * (len(offsets) - 1) + targets[places]
    )
    return np.unique(whole)
