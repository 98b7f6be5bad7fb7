"""Legs of a star: each pair of an operator's member and a subject meets the rows of one more
pattern (docs/architecture.md#a-triples-way).

The rows that a pattern matched are in order of their subject's number. Pairs probe them in their
own order; a galloping cursor makes that a merge where pairs are in order, and a binary search where
they are not.

Cost: 3 to 10 ns a pair in order. Twin: ``meet_by_search``.
"""

from __future__ import annotations

import numpy as np
from numba import types

from levada.core.array_types import Ints, Longs
from levada.kernels import I32, I64, INT, fuse, kernel

_OUT = types.Array(types.int64, 1, "C")


@fuse
def _at_least(subject: Ints, low: int, high: int, wanted: int) -> int:
    """Returns the first place of ``low:high`` whose subject is not less; gallops from ``low``
    on.
    """
    step = 1
    while low < high and subject[low] < wanted:
        ahead = low + step
        if ahead < high and subject[ahead] < wanted:
            low = ahead + 1
            step *= 2
        elif step == 1:
            low += 1
        else:
            high = min(ahead, high)
            step = 1
            while low < high:
                middle = (low + high) >> 1
                if subject[middle] < wanted:
                    low = middle + 1
                else:
                    high = middle
    return low


@kernel((I64, I32, I32, I64, INT, _OUT, _OUT))
def meet(
    pattern: Longs,
    wanted: Ints,
    subject: Ints,
    starts: Longs,
    start: int,
    pairs: Longs,
    places: Longs,
) -> tuple[int, int]:
    """Fills (pair, place of a row) from pair ``start`` on, in order; returns (next pair, number of
    rows).

    The rows of pattern p are the places ``starts[p] : starts[p + 1]`` of ``subject``, ascending
    there. Stops before the pair whose rows do not fit; the room must fit those of one pair.
    """
    count = 0
    cursor = 0
    for i in range(start, pattern.size):
        p = pattern[i]
        low, high = starts[p], starts[p + 1]
        if i > start and pattern[i - 1] == p and wanted[i - 1] <= wanted[i]:
            low = cursor
        at = _at_least(subject, low, high, wanted[i])
        cursor = at
        stop = at
        while stop < high and subject[stop] == wanted[i]:
            stop += 1
        if count + stop - at > pairs.size:
            return i, count
        for place in range(at, stop):
            pairs[count] = i
            places[count] = place
            count += 1
    return pattern.size, count


def meet_by_search(
    pattern: Longs, wanted: Ints, subject: Ints, starts: Longs
) -> tuple[Longs, Longs]:
    """Returns the whole result by NumPy: the twin."""
    pairs, places = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for i, (p, s) in enumerate(zip(pattern.tolist(), wanted.tolist(), strict=True)):
        subjects = subject[starts[p] : starts[p + 1]]
        low, high = np.searchsorted(subjects, s, "left"), np.searchsorted(subjects, s, "right")
        places.append(starts[p] + np.arange(low, high))
        pairs.append(np.full(high - low, i, np.int64))
    return np.concatenate(pairs), np.concatenate(places)
