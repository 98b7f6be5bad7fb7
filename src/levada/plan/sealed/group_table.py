"""The group table: which partition has which group of keys (docs/architecture.md#a-triples-way).

Groups are dealt to partitions round robin, which is even; a table says which of them are elsewhere.
It is a file like the plan and never changes: another dealing is the next version. An intention
names the version by which its rows go, so that a replay routes alike. All rows of a group, and so
all rows of a key, are in one partition, whatever a table says: it moves work, never results.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from levada.model.arrays import Ints, Shorts


@dataclass(frozen=True)
class GroupTable:
    """``groups`` classes of keys on so many ``partitions``; ``moved``: the groups that are not
    where they were dealt to, and ``to``: the partition of each of these.

    >>> none = np.empty(0, np.int32)
    >>> GroupTable(1, 5, 2, none, none).partition.tolist()
    [0, 1, 0, 1, 0]
    >>> GroupTable(2, 5, 2, np.array([4], np.int32), np.array([1], np.int32)).partition.tolist()
    [0, 1, 0, 1, 1]
    """

    version: int
    groups: int
    partitions: int
    moved: Ints
    to: Ints

    def __post_init__(self) -> None:
        assert self.version >= 1 and self.groups >= 1 and self.partitions >= 1, (
            "a group table has a version, groups and partitions"
        )
        assert self.partitions < 1 << 15, "a partition's number has 16 bits"
        assert len(self.moved) == len(self.to), "a group that is moved has a partition"
        assert _below(self.moved, self.groups), "a group that is moved is one of those there are"
        assert _below(self.to, self.partitions), "a group's partition is one of those there are"

    @cached_property
    def partition(self) -> Shorts:
        """The partition of each group."""
        table: Shorts = (np.arange(self.groups) % self.partitions).astype(np.int16)
        table[self.moved] = self.to.astype(np.int16)
        return table


def dealt(groups: int, partitions: int) -> GroupTable:
    """The first table of a checkpoint: round robin.

    >>> np.bincount(dealt(65_536, 48).partition).tolist()[:2]
    [1366, 1366]
    """
    none = np.empty(0, np.int32)
    return GroupTable(1, groups, partitions, none, none)


def given(partition: Ints, partitions: int) -> GroupTable:
    """The table that has each group in its partition, of so many.

    >>> given(np.array([0, 0, 0, 1], np.int32), 2).moved.tolist()
    [1]
    """
    (moved,) = np.nonzero(partition != np.arange(len(partition)) % partitions)
    to = np.ascontiguousarray(partition[moved])
    return GroupTable(1, len(partition), partitions, moved.astype(np.int32), to)


def _below(numbers: Ints, bound: int) -> bool:
    return not len(numbers) or (int(numbers.min()) >= 0 and int(numbers.max()) < bound)
