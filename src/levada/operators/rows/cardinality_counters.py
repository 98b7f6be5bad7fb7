"""Counts output rows of the parts and joins of a plan, by task and member: the input of join
ordering (``plan/sharing/join_orders``). Rows of static data come once, and are not counted.

Cost: a count of each frame that is joined, or is the result of a join.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from levada.core.array_types import Bools, Ints, Longs
from levada.core.expressions import requires_values
from levada.core.frame import Frame
from levada.core.frozen import frozen
from levada.core.member_columns import count_rows
from levada.core.size_thresholds import register
from levada.plan.execution import steps as s
from levada.plan.execution.joins import GIVEN, MADE, PICKED, WANTED
from levada.plan.execution.plan import Plan

MAX_REPORTED_MEMBERS = register(f"{__name__}.MAX_REPORTED_MEMBERS", 256)
"""Members, those with most rows, that are told."""


@frozen
class Joining:
    """The nodes of a plan whose rows have windows, and which are inputs or results of joins."""

    nodes: frozenset[int]

    @staticmethod
    def from_plan(plan: Plan) -> Joining:
        """Returns the joining nodes of a plan, computed once."""
        if Joining not in plan.facts:
            joins = {n for n, node in plan.nodes.items() if isinstance(node.step, s.Join)}
            below = {i for n in joins for i in plan.nodes[n].inputs}
            arrangements = {n for n in below if isinstance(plan.nodes[n].step, s.Arrange)}
            below |= {i for n in arrangements for i in plan.nodes[n].inputs}
            waiting = list(below)
            while waiting:  # the rows of a part are counted before those with a NULL go
                node = plan.nodes[waiting.pop()]
                if isinstance(node.step, s.Filter) and requires_values(node.step.condition):
                    waiting += node.inputs
                    below |= {*node.inputs}
            timed = {n for n in joins | below if plan.nodes[n].layout.windows}
            plan.facts[Joining] = Joining(frozenset(timed))
        joining: Joining = plan.facts[Joining]
        return joining


@dataclass(slots=True)
class Flows:
    """The rows of a task by node and member."""

    nodes: frozenset[int]
    counts: dict[int, Longs] = field(default_factory=dict)

    def record(self, node: int, frame: Frame) -> None:
        """Rows that a node has put out."""
        if node in self.nodes:
            counts = count_rows(frame["op"])
            before = self.counts.get(node)
            if before is not None:
                few, many = sorted((counts, before), key=len)
                many[: len(few)] += few
                counts = many
            self.counts[node] = counts

    def snapshot(self) -> dict[str, int]:
        """The counts, by node and member as a text."""
        counts = {
            f"{node} {member}": int(node_counts[member])
            for node, node_counts in self.counts.items()
            for member in _largest_members(node_counts)
        }
        if len(counts) <= MAX_REPORTED_MEMBERS:
            return counts
        return {
            at: counts[at]
            for at in sorted(counts, key=lambda at: -counts[at])[:MAX_REPORTED_MEMBERS]
        }


def _largest_members(counts: Longs) -> list[int]:
    """The members with most rows."""
    there = counts.nonzero()[0]
    if len(there) > MAX_REPORTED_MEMBERS:
        there = there[np.argsort(-counts[there], kind="stable")[:MAX_REPORTED_MEMBERS]]
    members: list[int] = there.tolist()
    return members


# Costs and benefits of relaxed joins, by task: for each join the input rows, the pairs made, the
# pairs that some pick wants, and the rows that picks take of them.
#
# Pairs that no pick wants are made in vain: rows of two queries' constants may meet below one join
# (docs/audits/0034-relax-judged.md). Cost: a count of each frame.


@dataclass(slots=True)
class SharedJoinCounters:
    """Counters by the node and the member of a join."""

    counts: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    _wanted: dict[int, tuple[Frame, Bools]] = field(default_factory=dict)

    def add_input(self, node: int, members: Ints) -> None:
        """Rows for a join, each by the member that it is for."""
        self._add(node, GIVEN, members)

    def pick(self, node: int, rows: Frame, row: Longs) -> None:
        """Counts rows of a join and the numbers of those that picks of a node take. Picks of other
        nodes take from the same rows, until all have (``close``).
        """
        if node not in self._wanted:
            self._add(node, MADE, rows["op"])
            self._wanted[node] = rows, np.zeros(rows.n, np.bool_)
        self._wanted[node][1][row] = True
        self._add(node, PICKED, rows["op"][row])

    def add_output(self, node: int, rows: Frame, picks: Longs) -> None:
        """Counts rows of a join, with the number of picks that take each of them."""
        self.pick(node, rows, np.flatnonzero(picks))
        self._add(node, PICKED, rows["op"], np.maximum(picks - 1, 0))

    def close(self, node: int) -> None:
        """Ends the counting of a join's rows, after all picks have taken theirs."""
        if node in self._wanted:
            rows, wanted_rows = self._wanted.pop(node)
            self._add(node, WANTED, rows["op"][wanted_rows])

    def snapshot(self) -> dict[str, list[int]]:
        """The counts, by node and member as a text."""
        return {f"{node} {member}": counts for (node, member), counts in self.counts.items()}

    def _add(self, node: int, what: int, members: Ints | Longs, many: Longs | None = None) -> None:
        counts = np.bincount(members, many)
        for member in np.flatnonzero(counts).tolist():
            member_counts = self.counts.setdefault((node, member), [0, 0, 0, 0])
            member_counts[what] += int(counts[member])
