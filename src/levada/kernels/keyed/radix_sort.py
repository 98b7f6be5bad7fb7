"""Rows in order: the result of ``np.lexsort``, by counting in place of comparing.

Most sort columns span few bits: group numbers, the instants of an epoch. So each column is sorted
by its distance from the least value, digit by digit from the lowest on, and a column that is in
order already is skipped. The order is stable. Words that span all 64 bits (identities) take eight
passes.

Cost: 2 to 4 ns a row and digit of eight bits, where a sort that compares takes 80 ns a column.
Twins: ``np.lexsort``, and ``np.searchsorted`` for look-ups in ordered words.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Longs, Words
from levada.kernels import I64, INT, U64, kernel

MIN_RADIX_ROWS = 128
"""Rows; of so few NumPy's sort costs less than the calls here."""
_BITS = 8
_DIGITS = 1 << _BITS
_MASK = np.uint64(_DIGITS - 1)


def in_order(*columns: npt.NDArray[Any]) -> Longs:
    """Returns the rows in the order of the last of these columns of integers, equal ones in the
    order of the column before it, and so on; rows that are equal in all columns keep their order.

    >>> in_order(np.array([2, 1, 0]), np.array([5, 5, 4])).tolist()
    [2, 1, 0]
    """
    n = len(columns[0])
    if n < MIN_RADIX_ROWS:
        return np.lexsort(columns)
    order = np.empty(0, np.int64)  # as they come
    for column in columns:
        order = _sort_by_column(column, order)
    return order if len(order) else np.arange(n)


def _sort_by_column(column: npt.NDArray[Any], order: Longs) -> Longs:
    """Rows that are in an order, by this column."""
    if not len(order) and (column[1:] >= column[:-1]).all():
        return order
    low = column.min()
    wide = column if column.itemsize == 8 else column.astype(np.int64)
    # the distance of 64-bit integers from the least one is right modulo 2**64
    words = np.ascontiguousarray(wide).view(np.uint64) - np.array(low, wide.dtype).view(np.uint64)
    return _by_digits(words, order, int(words.max()).bit_length())


@kernel((U64, I64, INT))
def _by_digits(words: Words, order: Longs, bits: int) -> Longs:
    """Sorts the rows ``order`` (empty: all rows, in their order) by words below 2**bits."""
    n = words.size
    rows, values = np.empty(n, np.int64), np.empty(n, np.uint64)
    for i in range(n):
        rows[i] = order[i] if order.size else i
        values[i] = words[rows[i]]
    to_rows, to_values = np.empty(n, np.int64), np.empty(n, np.uint64)
    place = np.empty(_DIGITS, np.int64)
    shift = 0
    while shift < bits:
        by = np.uint64(shift)
        place[:] = 0
        for i in range(n):
            place[np.int64((values[i] >> by) & _MASK)] += 1
        before = np.int64(0)
        for digit in range(_DIGITS):
            count = place[digit]
            place[digit] = before
            before += count
        for i in range(n):
            bucket = np.int64((values[i] >> by) & _MASK)
            at = place[bucket]
            place[bucket] = at + 1
            to_rows[at] = rows[i]
            to_values[at] = values[i]
        rows, to_rows = to_rows, rows
        values, to_values = to_values, values
        shift += _BITS
    return rows


@kernel((U64, U64))
def spans_of(kept: Words, wanted: Words) -> tuple[Longs, Longs]:
    """Returns for each word of ``wanted`` its first place among those ``kept``, and its number of
    occurrences; both are in order.

    It goes forward from word to word by steps that double, so it costs a look where words are dense
    and some where they are far apart.
    """
    first, many = np.empty(wanted.size, np.int64), np.empty(wanted.size, np.int64)
    at = 0
    for i in range(wanted.size):
        if i and wanted[i] == wanted[i - 1]:
            first[i], many[i] = first[i - 1], many[i - 1]
            continue
        low, step = at, 1
        while low + step <= kept.size and kept[low + step - 1] < wanted[i]:
            low += step
            step *= 2
        high = min(low + step - 1, kept.size)
        while low < high:
            middle = (low + high) // 2
            if kept[middle] < wanted[i]:
                low = middle + 1
            else:
                high = middle
        at = low
        while at < kept.size and kept[at] == wanted[i]:
            at += 1
        first[i], many[i] = low, at - low
    return first, many
