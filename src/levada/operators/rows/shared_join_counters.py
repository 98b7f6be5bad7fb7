"""Costs and benefits of relaxed joins, by task: for each join the input rows, the pairs made, the
pairs that some pick wants, and the rows that picks take of them.

Pairs that no pick wants are made in vain: rows of two queries' constants may meet below one join
(docs/audits/0034-relax-judged.md). Cost: a count of each frame.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from levada.core.array_types import Bools, Ints, Longs
from levada.core.frame import Frame
from levada.plan.execution.joins import GIVEN, MADE, PICKED, WANTED


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
            rows, wanted = self._wanted.pop(node)
            self._add(node, WANTED, rows["op"][wanted])

    def snapshot(self) -> dict[str, list[int]]:
        """The counts, by node and member as a text."""
        return {f"{node} {member}": counts for (node, member), counts in self.counts.items()}

    def _add(self, node: int, what: int, members: Ints | Longs, many: Longs | None = None) -> None:
        counts = np.bincount(members, many)
        for member in np.flatnonzero(counts).tolist():
            member_counts = self.counts.setdefault((node, member), [0, 0, 0, 0])
            member_counts[what] += int(counts[member])
