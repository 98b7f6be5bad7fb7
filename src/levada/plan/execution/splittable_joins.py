"""Finds the joins of a plan that may have the rows of a heavy key in several partitions at once
(Parallel windowed joins, W54).

The output of such a join is in the partition where its pairs were found, not where its key is. So
no operator above may depend on its place: rows may pass one by one, wait for their report, become
results, or be exchanged again. An operator that needs equal rows together, and takes them in place,
keeps the join whole. So does an input without an exchange, since its rows are in one partition. An
arrangement that a join reads is divided with it: its additional rows of other groups have no
partners. Each reason is a sentence for ``levada status``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Ints, Longs
from levada.core.row_ranges import ranges
from levada.plan.execution import steps as s
from levada.plan.execution.key_group_table import GroupTable, divide_groups
from levada.plan.execution.plan import Consumer, Plan, PlanNode


@dataclass(frozen=True)
class Divisible:
    """The joins that may be divided with the arrangements that they read, in order.

    ``whole``: the reasons of the other joins.
    """

    joins: tuple[int, ...]
    whole: Mapping[int, str]


def find_divisible_joins(plan: Plan) -> Divisible:
    """Returns the joins of a plan that may be divided, computed once."""
    if Divisible not in plan.facts:
        nodes = map(plan.nodes.__getitem__, plan.order)
        joins = [n for n in nodes if isinstance(n.step, s.Join | s.MultiwayJoin)]
        why = {node.id: _why_whole(plan, node) for node in joins}
        may = {number for number, reason in why.items() if not reason}
        may |= {n for at in may for n in plan.nodes[at].inputs if _is_kept(plan.nodes[n])}
        plan.facts[Divisible] = Divisible(
            tuple(sorted(may)), {n: reason for n, reason in why.items() if reason}
        )
    divisible_joins: Divisible = plan.facts[Divisible]
    return divisible_joins


def fit_divisions(table: GroupTable, plan: Plan) -> GroupTable:
    """Returns the table with its heavy groups divided in the joins of this plan that may be
    divided.

    It returns ``table`` itself if that is the case already.
    """
    by, joins = table.division, find_divisible_joins(plan).joins
    if not by.heavy or by.joins == joins:
        return table
    return divide_groups(table, replace(by, joins=joins))


def _why_whole(plan: Plan, node: PlanNode) -> str:
    """Returns why a join stays whole; "": it may be divided."""
    if not node.layout.windows:
        return "it joins static data alone"
    if node.layout.weighted or any(layout.weighted for layout in node.input_layouts):
        return "rows of it are taken back"
    if not all(_arrives_by_key(plan, node, i) for i in range(len(node.inputs))):
        return "not all of its rows come by their key from other tasks"
    return _why_not_below(plan, node)


def _arrives_by_key(plan: Plan, node: PlanNode, i: int) -> bool:
    """Whether the rows of an input, or of its arrangement, are exchanged by their key."""
    below = plan.nodes[node.inputs[i]]
    if _is_kept(below):
        return _arrives_by_key(plan, below, 0)
    edges = [c for c in below.consumers if (c.node, c.input) == (node.id, i)]
    return all(c.edge.exchange for c in edges)


def _is_kept(node: PlanNode) -> bool:
    return isinstance(node.step, s.Arrange)


def _why_not_below(plan: Plan, node: PlanNode) -> str:
    """Returns why the readers of a node depend on the place of its rows; "": they do not."""
    reasons = (_why_not(plan, plan.nodes[c.node]) for c in _consumers_in_place(node))
    apart = (s.RGroup for c in node.consumers if _adds_up(plan.nodes[c.node]))
    sums = (
        f"equal values of it must come to the {step.__name__} above from one task" for step in apart
    )
    return next((reason for reason in chain(reasons, sums) if reason), "")


def _adds_up(node: PlanNode) -> bool:
    return isinstance(node.step, s.RGroup) and node.step.apart


def _consumers_in_place(node: PlanNode) -> list[Consumer]:
    """Returns the readers that take rows in place."""
    return [c for c in node.consumers if c.edge.exchange is None]


def _why_not(plan: Plan, node: PlanNode) -> str:
    step = node.step
    if isinstance(step, s.Emit):
        return ""
    alone = step.rowwise or isinstance(step, s.Report | s.Pick)
    alone |= isinstance(step, s.Changes) and step.certain and step.rows is not None
    if not alone or node.layout.weighted:
        return f"equal rows of it must be together for the {type(step).__name__} above it"
    return _why_not_below(plan, node)


# Sends rows of a divided group to each of the partitions that share its work (Parallel windowed
# joins, W54).
#
# All of them receive all rows of both sides of a join, and so keep the same state. They decide
# which of them joins a new row (``operators/windowed/split_heavy_keys``). So rows need not move
# when a group becomes divided or whole again: they are in all places already, or in the first.
#
# Cost: a lookup for each row, if any group is divided.


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
