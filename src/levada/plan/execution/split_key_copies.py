"""Sends rows of a divided group to each of the partitions that share its work (Parallel windowed
joins, W54).

All of them receive all rows of both sides of a join, and so keep the same state. They decide which
of them joins a new row (``operators/interval/divide``). So rows need not move when a group becomes
divided or whole again: they are in all places already, or in the first.

Cost: a lookup for each row, if any group is divided.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Ints, Longs
from levada.core.row_ranges import ranges
from levada.plan.execution.key_group_table import GroupTable

Groups = npt.NDArray[np.uint16]


class Copied(NamedTuple):
    """The places of rows in order, repeated for several targets, and the target of each."""

    rows: Longs
    target: Ints


class _Targets(NamedTuple):
    """For each group the row of ``first`` and ``sizes`` that locates its targets in ``flat``.

    The first row is that of all groups that are whole.
    """

    of: npt.NDArray[np.int32]
    first: Longs
    sizes: Longs
    flat: Ints


class Copies:
    """The rows that go to several targets, by a group table."""

    def __init__(self, table: GroupTable) -> None:
        self._table, self._division = table, table.division

    def find_targets(self, node: int, group: Groups, target: Ints) -> Copied | None:
        """Returns the targets of rows that go to a node; None: each goes to its own ``target``
        alone.
        """
        if not len(group) or not self._division.divided_groups(node):
            return None
        t = self._targets
        which = t.of[group]
        if not which.any():
            return None
        counts = t.sizes[which]
        to = t.flat[ranges(t.first[which], counts)]
        rows = np.repeat(np.arange(len(group)), counts)
        return Copied(rows, np.where(to < 0, target[rows], to))

    @cached_property
    def _targets(self) -> _Targets:
        heavy = self._division.heavy
        of = np.zeros(self._table.groups, np.int32)
        of[[h.group for h in heavy]] = np.arange(1, len(heavy) + 1)
        sizes = np.array([1, *(len(h.parts) for h in heavy)], np.int64)
        flat = np.array([-1, *(p for h in heavy for p in h.parts)], np.int32)
        return _Targets(of, np.cumsum(sizes) - sizes, sizes, flat)
