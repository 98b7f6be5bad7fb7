"""Families of members whose windows differ in ranges over the same rows, and intervals of ranges as
cells.

The members of a ``RangedChanges`` that read one member below the picks are a *family*. The changes
of a row for them follow from its times and their ranges, so a report assigns a row to an interval
of ranges, in ascending order. An interval is at most two nodes for each level of a binary tree over
the ranges; such a node is a *cell* (CQELS Cloud, C32 and C56: a row goes with the set of its
readers). The cells of a family are numbered from ``first`` on, the root as 1, the children of k as
2 k and 2 k + 1; cell numbers follow the numbers of members.

Cost: computed once for a plan version, by a sort of the members.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from levada.core.array_types import Ints, Longs
from levada.core.frame import Frame
from levada.core.row_ranges import ranges
from levada.operators.rows.route_rows import fan_out
from levada.plan.execution import steps as s
from levada.plan.execution.plan import FanOut, Plan, PlanNode
from levada.plan.execution.shared_results import drop_muted_members, find_shared_results
from levada.plan.execution.sharing_demand import SharingDemand


@dataclass(frozen=True, eq=False, slots=True)
class Members:
    """Members by their ranges: ``of[offsets[i] : offsets[i + 1]]`` have the ``i``-th one."""

    of: Ints
    offsets: Longs

    def members_in_intervals(self, low: Longs, high: Longs) -> tuple[Longs, Ints]:
        """Returns (interval, member) of the members whose ranges are the ``low``-th up to before
        the ``high``-th of intervals.
        """
        first, last = self.offsets[low], self.offsets[high]
        return np.repeat(np.arange(len(low)), last - first), self.of[ranges(first, last - first)]


@dataclass(frozen=True, eq=False, slots=True)
class Family:
    """Members of a node that read the same rows. ``number``: the member below the picks that has
    these rows. ``longest``: the member with the longest range, which represents all. ``ranges``:
    the distinct ranges (ms), ascending. ``starts``: the begin instants of queries, each once, with
    the queries that begin then. ``first``: the number of its first cell, which is unused.
    ``leaves``: the number of leaves of the tree.
    """

    number: int
    longest: int
    ranges: Longs
    members: Members
    starts: tuple[tuple[int, Members], ...]
    first: int
    leaves: int

    @property
    def reach(self) -> int:
        """The longest range (ms)."""
        return int(self.ranges[-1])

    def cells(self, low: Longs, high: Longs) -> tuple[Longs, Longs]:
        """(interval, cell) of the fewest cells that are intervals of ranges: the ``low``-th up to
        before the ``high``-th.
        """
        row = np.arange(len(low))
        high = np.where(high >= len(self.ranges), self.leaves, high)
        left, right, rows, cells = low + self.leaves, high + self.leaves, [row[:0]], [row[:0]]
        while (open_ := left < right).any():
            for odd, at in ((open_ & (left & 1 == 1), left), (open_ & (right & 1 == 1), right - 1)):
                rows.append(row[odd])
                cells.append(at[odd])
            left, right = (left + 1) >> 1, right >> 1
        return np.concatenate(rows), self.first + np.concatenate(cells)

    def members_of_cells(self, cells: Longs) -> tuple[Longs, Ints]:
        """Returns (cell, member) of the members that have these cells of the family."""
        at = cells - self.first
        _, level = np.frexp(at)
        wide = self.leaves >> (level.astype(np.int64) - 1)
        low = np.minimum(at * wide - self.leaves, len(self.ranges))
        return self.members.members_in_intervals(low, np.minimum(low + wide, len(self.ranges)))


@dataclass(frozen=True, eq=False, slots=True)
class Families:
    """The families of a node. ``of_member``: by its members, -1 for removed ones; ``of_number``: by
    the members below the picks, likewise. ``longest``: the member that represents each family.
    ``sizes``: the number of members of each family, and 0 for -1.
    """

    each: tuple[Family, ...]
    of_member: Longs
    of_number: Longs

    longest: Ints
    sizes: Longs


def families_of(node: PlanNode[s.RangedChanges], shares: SharingDemand) -> Families:
    """The families of a node, found once for a version of the plan."""
    return node.compute_once(_families, shares)


def _families(node: PlanNode[s.RangedChanges], shares: SharingDemand) -> Families:
    picks = shares.plan.nodes[node.inputs[0]]
    living = np.flatnonzero(node.alive)
    below = picks.members.inputs[0]
    number = below[node.members.inputs[0][living]].astype(np.int64)
    (row,) = node.step.rows
    length, start = node.windows.range[row][living], node.windows.start[row][living]
    of_member = np.full(len(node.members), -1, np.int64)
    of_number = np.full(len(shares.plan.nodes[picks.inputs[0]].members), -1, np.int64)
    families, first = list[Family](), len(node.members)
    for pick_number in np.unique(number).tolist():
        at = np.flatnonzero(number == pick_number)
        order = at[np.argsort(length[at], kind="stable")]
        one = _family(pick_number, living[order], length[order], start[order], first)
        of_member[living[order]] = of_number[pick_number] = len(families)
        families.append(one)
        first += 2 * one.leaves
    longest = np.array([one.longest for one in families], np.int32)
    sizes = np.append(np.bincount(of_member[living], minlength=len(families)), 0)
    return Families(tuple(families), of_member, of_number, longest, sizes)


def _family(number: int, members: Longs, length: Longs, start: Longs, first: int) -> Family:
    distinct, at = np.unique(length, return_inverse=True)
    by_start = [
        (int(instant), _members(members[start == instant], at[start == instant], len(distinct)))
        for instant in np.unique(start).tolist()
    ]
    leaves = 1 << (len(distinct) - 1).bit_length()
    every = _members(members, at, len(distinct))
    return Family(
        number, int(members[-1]), distinct, every, tuple(by_start), first, leaves
    )  # fmt: skip


def _members(members: Longs, at: Longs, many: int) -> Members:
    """Members in order of their ranges, which are the ``at``-th of so many."""
    offsets = np.zeros(many + 1, np.int64)
    np.cumsum(np.bincount(at, minlength=many), out=offsets[1:])
    return Members(members.astype(np.int32), offsets)


@dataclass(frozen=True, eq=False, slots=True)
class RangeCells:
    """The cells of an Emit above a ``RangedChanges``, in whose numbers they follow ``below``
    members. ``first``: the number of the first cell here. ``readers``: the members of the Emit, the
    first of each set of equal ones.
    """

    families: Families
    below: int
    first: int
    readers: FanOut

    def local_numbers(self, cells: Ints) -> Ints:
        """Their numbers here."""
        return cells + np.int32(self.first - self.below)

    def owners(self, cells: Ints) -> Frame:
        """Returns the owners of these cells: members of the Emit (``op``), and their cell
        (``first``).
        """
        ops, firsts = [np.empty(0, np.int32)], [cells[:0]]
        for cell_rows, member in self._members_of_cells(
            cells.astype(np.int64) - self.first + self.below
        ):
            at, op = fan_out(member, self.readers)
            firsts.append(cells[cell_rows if at is None else cell_rows[at]])
            ops.append(op)
        op = np.concatenate(ops)
        return Frame({"op": op, "first": np.concatenate(firsts)}, len(op))

    def _members_of_cells(self, cells: Longs) -> Iterator[tuple[Longs, Ints]]:
        for family in self.families.each:
            family_rows = np.flatnonzero(
                (cells > family.first) & (cells < family.first + 2 * family.leaves)
            )
            row, member = family.members_of_cells(cells[family_rows])
            yield family_rows[row], member


def range_cells(plan: Plan, emit: PlanNode[s.Emit], shares: SharingDemand) -> RangeCells | None:
    """The cells of an Emit; None where it is above no ``RangedChanges``."""
    below = plan.nodes[emit.inputs[0]].as_step(s.RangedChanges)
    if below is None:
        return None
    (fan,) = (edge.fan for edge in below.consumers if edge.node == emit.id)
    alike = find_shared_results(plan, emit.id)
    readers = drop_muted_members(plan, emit.id, fan) if alike is None else alike.fan
    return RangeCells(families_of(below, shares), len(below.members), len(emit.members), readers)
