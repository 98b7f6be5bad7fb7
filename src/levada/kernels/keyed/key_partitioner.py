"""Routing: a key's partition-group and partition, and the rows in order of their target.

A key's group is the top of its ``h`` half, scaled to the number of groups G (with G a power of two:
its top bits), so it does not depend on the bucket bits of ``k``. A table of the plan maps groups to
partitions (docs/architecture.md#a-triples-way).

Cost: 1 ns a row for the target (2 with its group), 2 to 3 ns for the order; 6 ns to count
pairs of groups, 30 where there are a million pairs.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from levada.core.array_types import Ints, Longs, Shorts, Words
from levada.kernels import I16, I32, INT, U64, fuse, kernel

MOST_GROUPS = 1 << 20

_HALF = np.uint64(32)
_ODD, _LOW = np.uint64(0x9E3779B1), np.uint64(0xFFFFFFFF)
_PLACES = types.Array(types.uint16, 1, "C", readonly=True)
_COUNTS = types.int64[::1]  # that are written to


@fuse
def _group(h: np.uint64, groups: np.uint64) -> np.int64:
    return np.int64(((h >> _HALF) * groups) >> _HALF)


@kernel((U64, INT))
def group_of(h: Words, groups: int) -> Ints:
    """The partition-group (0 to ``groups`` - 1, below 2**20) of each key by its high half."""
    out = np.empty(h.size, np.int32)
    many = np.uint64(groups)
    for i in range(h.size):
        out[i] = _group(h[i], many)
    return out


@kernel((U64, I16))
def partition_of(h: Words, table: Shorts) -> Ints:
    """The partition of each key by its high half: ``table[group_of(h, len(table))]``.

    A table of 65,536 partitions in 16 bits each stays in the nearest caches.
    """
    out = np.empty(h.size, np.int32)
    many = np.uint64(table.size)
    for i in range(h.size):
        out[i] = table[_group(h[i], many)]
    return out


@kernel((U64, I16))
def group_and_partition(h: Words, table: Shorts) -> tuple[npt.NDArray[np.uint16], Ints]:
    """The partition-group of each key in 16 bits (of at most 65,536 groups), and its partition."""
    groups = np.empty(h.size, np.uint16)
    out = np.empty(h.size, np.int32)
    many = np.uint64(table.size)
    for i in range(h.size):
        g = _group(h[i], many)
        groups[i] = np.uint16(g)
        out[i] = table[g]
    return groups, out


@kernel((_PLACES, _COUNTS, INT))
def count_groups(groups: npt.NDArray[np.uint16], counts: Longs, shift: int) -> None:
    """Counts the rows of each group, in place; of coarser ones, without the last ``shift`` bits."""
    for i in range(groups.size):
        counts[groups[i] >> shift] += 1


@kernel((_PLACES, _PLACES, INT))
def count_pairs(
    source: npt.NDArray[np.uint16], target: npt.NDArray[np.uint16], shift: int
) -> tuple[npt.NDArray[np.uint32], Longs]:
    """Returns the distinct pairs of groups between which rows go, as ``source`` times 65,536 and
    ``target``, in order of first occurrence, and the number of rows of each; of coarser groups as
    above.
    """
    bits = 4
    while (1 << bits) < 2 * source.size:
        bits += 1
    place = np.full(1 << bits, -1, np.int32)  # of a pair among those found; -1 is free
    pairs = np.empty(source.size, np.uint32)
    rows = np.zeros(source.size, np.int64)
    many = 0
    for i in range(source.size):
        pair = np.uint32((np.int64(source[i]) >> shift) << 16 | np.int64(target[i]) >> shift)
        slot = np.int64(((np.uint64(pair) * _ODD) & _LOW) >> np.uint64(32 - bits))
        while place[slot] >= 0 and pairs[place[slot]] != pair:
            slot = (slot + 1) & (place.size - 1)
        if place[slot] < 0:
            place[slot] = many
            pairs[many] = pair
            many += 1
        rows[place[slot]] += 1
    return pairs[:many].copy(), rows[:many].copy()


@kernel((I32, INT))
def scatter_order(target: Ints, parts: int) -> tuple[Ints, npt.NDArray[np.int64]]:
    """Rows in stable order of target (0 to ``parts`` - 1), and where each target's rows start.

    The rows of target p are ``order[offsets[p]:offsets[p + 1]]``.
    """
    offsets = np.zeros(parts + 1, np.int64)
    for i in range(target.size):
        offsets[target[i] + 1] += 1
    for p in range(parts):
        offsets[p + 1] += offsets[p]
    place = offsets[:-1].copy()
    order = np.empty(target.size, np.int32)
    for i in range(target.size):
        p = target[i]
        order[place[p]] = i
        place[p] += 1
    return order, offsets
