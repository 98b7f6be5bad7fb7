"""Looks up and counts by member (the column ``op``). Most nodes have one member; then NumPy's
general ways cost ten to fifty times as much as these.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Ints, Longs

T = TypeVar("T", bound=np.generic)


def values_of_members(values: npt.NDArray[T], op: npt.NDArray[np.integer[Any]]) -> npt.NDArray[T]:
    """Returns the value of each row's member. If there is one member, its value stands for all
    rows: the result is for expressions that broadcast.

    >>> values_of_members(np.array([7]), np.array([0, 0])).tolist()
    [7]
    >>> values_of_members(np.array([7, 8]), np.array([1, 0])).tolist()
    [8, 7]
    """
    return values if len(values) == 1 else values.take(op)


def has_one_member(op: Ints) -> bool:
    """Whether there are rows, all of one member."""
    return bool(len(op) and op[0] == op[-1] and (op == op[0]).all())


def count_rows(op: Ints, members: int = 0) -> Longs:
    """Returns the number of rows of each member, of at least so many members.

    >>> count_rows(np.array([1, 1, 1])).tolist(), count_rows(np.array([2, 0]), 4).tolist()
    ([0, 3], [1, 0, 1, 0])
    """
    # one bin: each of its additions waits for the one before
    if has_one_member(op):
        counts = np.zeros(max(int(op[0]) + 1, members), np.int64)
        counts[op[0]] = len(op)
        return counts
    return np.bincount(op, minlength=members)
