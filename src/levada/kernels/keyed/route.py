"""Routing: a key's partition-group and partition, and the rows in order of their target.

A key's group is the top of its ``h`` half, scaled to the number of groups G (with G a power of two:
its top bits), so it does not depend on the bucket bits of ``k``. A table of the plan maps groups to
partitions (docs/architecture.md#a-triples-way).

Cost: 1 ns a row for the target, 2 to 3 ns for the order.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from levada.kernels import I32, INT, U64, fused, kernel
from levada.model.arrays import Ints, Words

MOST_GROUPS = 1 << 20

_HALF = np.uint64(32)


@fused
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


@kernel((U64, I32))
def partition_of(h: Words, table: Ints) -> Ints:
    """The partition of each key by its high half: ``table[group_of(h, len(table))]``."""
    out = np.empty(h.size, np.int32)
    many = np.uint64(table.size)
    for i in range(h.size):
        out[i] = table[_group(h[i], many)]
    return out


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
