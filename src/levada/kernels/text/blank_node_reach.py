"""The rows that blank nodes of a document reach: the elements by subject of a whole text
(docs/semantics.md#elements-by-subject).

A node is a number, or -1 for a term that is not a blank node. ``rows[starts[v]:starts[v + 1]]`` are
the rows about node v. Cost: some ns for each returned row. Twin: in
``tests/unit/connectors/ingest/test_descriptions.py``.
"""

from __future__ import annotations

import numpy as np

from levada.core.array_types import Bools, Longs
from levada.kernels import BOOL, I64, INT, kernel


@kernel((I64, I64, I64, I64, BOOL))
def subjects_of_cycles(
    subject: Longs, object_: Longs, starts: Longs, rows: Longs, root: Bools
) -> Bools:
    """Returns the nodes that elements are about: ``root``, the nodes without references to them,
    and for nodes that no other one reaches, since they refer to each other in a circle, the one
    that is described first.
    """
    about = root.copy()
    seen = root.copy()
    queue = np.empty(len(root), np.int64)
    for turn in range(2):  # nodes that subjects reach, then the circles
        for row in range(len(subject)):
            node = subject[row]
            if turn == 0 and node >= 0 and not root[node]:
                continue
            if turn == 1 and (node < 0 or seen[node]):
                continue
            last = 0
            if turn == 1:
                about[node] = seen[node] = True
                queue[0] = node
                last = 1
            elif object_[row] >= 0 and not seen[object_[row]]:
                seen[object_[row]] = True
                queue[0] = object_[row]
                last = 1
            at = 0
            while at < last:
                for i in range(starts[queue[at]], starts[queue[at] + 1]):
                    other = object_[rows[i]]
                    if other >= 0 and not seen[other]:
                        seen[other] = True
                        queue[last] = other
                        last += 1
                at += 1
    return about


@kernel((I64, I64, I64, I64, I64, I64, INT))
def reachable_rows(
    first: Longs,
    subject_rows: Longs,
    node: Longs,
    object_: Longs,
    starts: Longs,
    rows: Longs,
    most: int,
) -> tuple[Longs, Longs]:
    """Returns the rows of each element and of all nodes that they reach, and where each element
    begins; the last place is the end.

    ``subject_rows[first[e]:first[e + 1]]`` are the rows about subject ``node[e]`` of element e. If
    there would be more than ``most`` rows, only those of the elements before are returned.
    """
    out = np.empty(max(2 * len(object_), 16), np.int64)
    edges = np.zeros(len(node) + 1, np.int64)
    seen = np.full(len(starts), -1, np.int64)
    n = 0
    for e in range(len(node)):
        if node[e] >= 0:
            seen[node[e]] = e
        at = n
        begin, end = first[e], first[e + 1]
        source = subject_rows
        while True:
            if n + end - begin > most:
                return out[: edges[e]], edges[: e + 1]
            while n + end - begin > len(out):
                larger = np.empty(2 * len(out), np.int64)
                larger[:n] = out[:n]
                out = larger
            for i in range(begin, end):
                out[n] = source[i]
                n += 1
            next_node = -1
            while at < n and next_node < 0:
                other = object_[out[at]]
                at += 1
                if other >= 0 and seen[other] != e:
                    seen[other] = e
                    next_node = other
            if next_node < 0:
                break
            source = rows
            begin, end = starts[next_node], starts[next_node + 1]
        edges[e + 1] = n
    return out[:n], edges
