"""Elements of consecutive rows: their numbers, and the one time of each.

Rows are in the order of their lines, so the boundary of an element (other subjects, or graphs) is
between a row and the next. Cost: 2 ns a row each, one pass. Twins: ``numbers_by_columns``,
``times_by_columns``.
"""

from __future__ import annotations

import numpy as np

from levada.core.array_types import Ints, Longs, Words
from levada.core.event_time import MIN, Times
from levada.core.row_ranges import starts_segment
from levada.kernels import I64, U64, kernel


@kernel((U64, U64))
def number_alike(x: Words, y: Words) -> tuple[Ints, Longs]:
    """Rows of equal (x, y) that follow each other are one element: each row's (from 0), and where
    elements begin, and the end.
    """
    n = x.size
    number = np.empty(n, np.int32)
    edges = np.empty(n + 1, np.int64)
    count = 0
    for i in range(n):
        if i == 0 or x[i] != x[i - 1] or y[i] != y[i - 1]:
            edges[count] = i
            count += 1
        number[i] = count - 1
    edges[count] = n
    return number, edges[: count + 1].copy()


@kernel((I64, I64))
def one_time(ts: Times, edges: Longs) -> tuple[Times, bool]:
    """The time of each element's first row, and whether all its rows say that one, a valid one."""
    out = np.empty(edges.size - 1, np.int64)
    agree = True
    for e in range(out.size):
        t = ts[edges[e]]
        agree &= t > MIN
        for i in range(edges[e] + 1, edges[e + 1]):
            agree &= ts[i] == t
        out[e] = t
    return out, agree


def numbers_by_columns(x: Words, y: Words) -> tuple[Ints, Longs]:
    """``number_alike`` by NumPy: the twin."""
    new = starts_segment(x, y)
    return np.cumsum(new, dtype=np.int32) - np.int32(1), np.append(np.flatnonzero(new), len(x))


def times_by_columns(ts: Times, edges: Longs) -> tuple[Times, bool]:
    """``one_time`` by NumPy: the twin."""
    out = ts[edges[:-1]]
    return out, bool((np.repeat(out, np.diff(edges)) == ts).all() and (out > MIN).all())
