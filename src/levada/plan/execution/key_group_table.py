"""The group table maps groups of keys to partitions (docs/architecture.md#a-triples-way).

Groups are assigned to partitions round robin, which is even. A table lists the groups with another
partition. It is a file like the plan and never changes: another assignment is the next version. An
intention names the version that routes its rows, so a replay routes alike. All rows of a group, and
so all rows of a key, are in one partition. A table moves work, never results.

*Divided* groups are the exception (Parallel windowed joins, W54): a group with a heavy key may be
too much work for one partition. Some joins keep all rows of such a group in several partitions, and
each of these joins a part of the new rows (``operators/windowed/split_heavy_keys``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from levada.core.array_types import Ints, Shorts
from levada.core.frozen import frozen


@frozen
class SplitKeyGroup:
    """A divided group, and the partitions that share its work, starting with its own."""

    group: int
    parts: tuple[int, ...]

    def __post_init__(self) -> None:
        assert len(self.parts) > 1 and len(set(self.parts)) == len(self.parts), (
            "a divided group is in several partitions"
        )


@frozen
class Division:
    """The divided groups, and the nodes of the plan in which they are divided."""

    heavy: tuple[SplitKeyGroup, ...] = ()
    joins: tuple[int, ...] = ()

    def divided_groups(self, node: int) -> tuple[SplitKeyGroup, ...]:
        """Returns the groups that are divided in a node."""
        return self.heavy if node in self.joins else ()


WHOLE = Division()


@dataclass(frozen=True)
class GroupTable:
    """The assignment of ``groups`` classes of keys to ``partitions``.

    ``moved``: the groups outside their round-robin partition; ``to``: the partition of each.

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
        assert _all_below(self.moved, self.groups), (
            "a group that is moved is one of those there are"
        )
        assert _all_below(self.to, self.partitions), "a group's partition is one of those there are"

    @cached_property
    def partition(self) -> Shorts:
        """The partition of each group."""
        table: Shorts = (np.arange(self.groups) % self.partitions).astype(np.int16)
        table[self.moved] = self.to.astype(np.int16)
        return table

    @property
    def division(self) -> Division:
        """The divided groups and their nodes."""
        return WHOLE


@dataclass(frozen=True)
class DividedTable(GroupTable):
    """A table with divided groups. It is a separate class, so tables without any keep their
    encoding.

    >>> heavy = Division((SplitKeyGroup(2, (0, 1)),))
    >>> divide_groups(deal_round_robin(4, 2), heavy).division.divided_groups(7)
    ()
    """

    by: Division

    def __post_init__(self) -> None:
        super().__post_init__()
        heavy = self.by.heavy
        assert len({h.group for h in heavy}) == len(heavy), "a group is divided once"
        for h in heavy:
            assert 0 <= h.group < self.groups, "a group that is divided is one of those there are"
            assert min(h.parts) >= 0 and max(h.parts) < self.partitions, (
                "a group's partition is one of those there are"
            )
            assert h.parts[0] == self.partition[h.group], "a group's own partition is the first"

    @property
    def division(self) -> Division:
        """The divided groups and their nodes."""
        return self.by


def divide_groups(table: GroupTable, by: Division) -> GroupTable:
    """Returns the table with exactly these groups divided.

    >>> some = divide_groups(deal_round_robin(4, 2), Division((SplitKeyGroup(2, (0, 1)),)))
    >>> some.division.heavy[0].parts, divide_groups(some, WHOLE).division.heavy
    ((0, 1), ())
    """
    base = (table.version, table.groups, table.partitions, table.moved, table.to)
    return DividedTable(*base, by) if by.heavy else GroupTable(*base)


def deal_round_robin(groups: int, partitions: int) -> GroupTable:
    """Returns the first table of a checkpoint: round robin.

    >>> np.bincount(deal_round_robin(65_536, 48).partition).tolist()[:2]
    [1366, 1366]
    """
    none = np.empty(0, np.int32)
    return GroupTable(1, groups, partitions, none, none)


def table_of_partitions(partition: Ints, partitions: int) -> GroupTable:
    """Returns the table with this partition of each group.

    >>> table_of_partitions(np.array([0, 0, 0, 1], np.int32), 2).moved.tolist()
    [1]
    """
    (moved,) = np.nonzero(partition != np.arange(len(partition)) % partitions)
    to = np.ascontiguousarray(partition[moved])
    return GroupTable(1, len(partition), partitions, moved.astype(np.int32), to)


def _all_below(numbers: Ints, bound: int) -> bool:
    return not len(numbers) or (int(numbers.min()) >= 0 and int(numbers.max()) < bound)
