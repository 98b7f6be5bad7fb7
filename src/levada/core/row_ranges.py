"""Rows that lie together: where runs of equal values begin and end, and ranges of places.

A *segment* is a run of consecutive rows with equal values in some columns. Cost: a few passes of
NumPy over the rows; no Python per segment.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Bools, Longs


def starts_segment(*columns: npt.NDArray[Any]) -> Bools:
    """Flags the rows at which a segment begins: the first, and each that differs from the one
    before.

    >>> starts_segment(np.array([3, 3, 5]), np.array([1, 2, 2])).tolist()
    [True, True, True]
    >>> starts_segment(np.array([3, 3, 5])).tolist()
    [True, False, True]
    """
    new = np.empty(columns[0].size, np.bool_)
    if new.size:
        new[0] = True
        new[1:] = _differ(columns)
    return new


def ends_segment(*columns: npt.NDArray[Any]) -> Bools:
    """Flags the rows at which a segment ends: the last, and each that differs from the one
    behind.

    >>> ends_segment(np.array([3, 3, 5])).tolist()
    [False, True, True]
    """
    last = np.ones(len(columns[0]), np.bool_)
    if len(last):
        last[:-1] = _differ(columns)
    return last


def place_in_segment(begins: Bools) -> Longs:
    """0, 1, 2, .. within each segment; ``begins``: where they begin, the first row among them.

    >>> place_in_segment(np.array([True, False, False, True])).tolist()
    [0, 1, 2, 0]
    """
    row = np.arange(len(begins))
    places: Longs = row - np.maximum.accumulate(np.where(begins, row, 0))
    return places


def _differ(columns: tuple[npt.NDArray[Any], ...]) -> Bools:
    """Flags, for each row but the first, whether it differs from the one before in any column."""
    is_different: Bools = columns[0][1:] != columns[0][:-1]
    for column in columns[1:]:
        is_different = is_different | (column[1:] != column[:-1])
    return is_different


def ranges(starts: npt.NDArray[np.integer[Any]], counts: npt.NDArray[np.integer[Any]]) -> Longs:
    """Returns the places ``start, start + 1, ..`` of ranges of these lengths, one range behind the
    other.

    >>> ranges(np.array([10, 5]), np.array([2, 3])).tolist()
    [10, 11, 5, 6, 7]
    """
    before = np.cumsum(counts) - counts
    places: Longs = np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
    return places
