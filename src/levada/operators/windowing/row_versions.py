"""Versions: rows that begin and end as rows with an end.

The content of a relation changes by rows of weight +1 and -1. A view whose value changes with each
event has as many changes in an epoch as events, and a join by key would meet all changes of a key,
before or after a row: the square of a key's events in an epoch, nearly all of which cancel. Here +1
and the -1 that takes it back become one row that counts from the one instant to the other (``u``),
and a join meets the rows that exist at its row's instants. A row that still exists at the end of an
epoch has no end yet: it is taken back by a later -1 (``state/join_state_with_retractions``). Sums
of weights are the same at every instant, so results are.

The -1 of a row is the next change of an equal row. In a set that is always so; in a bag, several +1
may come first, and the remaining ones stay unchanged. Cost: a hash probe a row and a sort by (row,
time).
"""

from __future__ import annotations

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Longs, Words
from levada.core.event_time import MAX, Times
from levada.core.frame import Frame
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.radix_sort import in_order
from levada.operators.windowing.zset import Weights


def versions(rows: Frame, key: tuple[Words, Words]) -> Frame:
    """Changes (instant ``lo0``, weight ``w``) with ``u``; equal rows have equal keys.

    >>> k = np.array([7, 7, 8], np.uint64)
    >>> lo0, w = np.array([1, 5, 3]), np.array([1, -1, 1], np.int8)
    >>> rows = versions(Frame({"lo0": lo0, "w": w}, 3), (k, k))
    >>> rows["lo0"].tolist(), rows["u"].tolist() == [5, MAX]
    ([1, 3], True)
    """
    at = rows[col.least(0)]
    begin, end = find_retractions(key, at, rows["w"])
    until = np.full(rows.n, MAX, np.int64)
    until[begin] = at[end]
    stay = np.ones(rows.n, np.bool_)
    stay[end] = False
    return rows.with_(**{col.UNTIL: until}).where(stay)


def find_retractions(key: tuple[Words, Words], at: Times, weight: Weights) -> tuple[Longs, Longs]:
    """Rows of weight +1, and for each the row that takes it back: the next change of its key, if
    that is of weight -1. It is later, never at the same instant.

    >>> k, at = np.array([7, 7, 7], np.uint64), np.array([5, 1, 5])
    >>> [rows.tolist() for rows in find_retractions((k, k), at, np.array([1, 1, -1], np.int8))]
    [[1], [2]]
    """
    codes, _ = group(*key)
    # at one instant what goes is first: what comes again then is a version of its own
    order = in_order(weight, at, codes)
    of, sign = codes[order], weight[order]
    comes = np.flatnonzero((of[1:] == of[:-1]) & (sign[:-1] > 0) & (sign[1:] < 0))
    return order[comes], order[comes + 1]
