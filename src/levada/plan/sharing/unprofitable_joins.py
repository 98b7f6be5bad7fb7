"""The search for unprofitable relaxed joins: more of their pairs are wasted than sharing can save,
by measured counts (docs/decisions/0070-ends-and-prices.md).

    relaxed   rows given + pairs made
    apart     rows given + rows picked, at least: each query would join its part of both sides

Some query wants each row that a relaxed join keeps, so separate joins would be given at least as
many. Pairs of rows for different queries' constants are made in the relaxed join only. A join whose
work is ``HIGH`` times the other is unprofitable until it is ``LOW`` times. A query that is added
meanwhile has a join of its own. If it is ``LEAVING`` times the other, running queries leave the
join, half of them at a time (``plan/migration/migrate_to_shared``): they have the cost of moving,
and separate joins are given more rows where their conditions overlap. No result depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from levada.core.size_thresholds import register
from levada.plan.execution.joins import GIVEN, MADE, PICKED, Pick
from levada.plan.execution.plan import At, QueryPlan
from levada.plan.execution.steps import Report
from levada.plan.topology.catalog_members import CatalogNode

HIGH, LOW, LEAVING = 2.0, 1.5, 3.0
DEAR = "more would meet in vain in the join of others than sharing saves, as measured"
MIN_PAIRS = register(f"{__name__}.MIN_PAIRS", 1000)
"""The minimum number of pairs for a decision."""


def wasted_work_ratio(counts: Sequence[int]) -> float:
    """Returns the work of a relaxed join relative to the minimum for separate joins.

    >>> wasted_work_ratio([100, 900, 30, 100]), wasted_work_ratio([100, 30, 30, 300])
    (5.0, 0.325)
    """
    apart = counts[GIVEN] + counts[PICKED]
    return (counts[GIVEN] + counts[MADE]) / max(apart, 1)


@dataclass(slots=True)
class UnprofitableJoins:
    """The currently unprofitable joins. ``measured``: those with enough pairs since queries left
    them.
    """

    joins: set[At] = field(default_factory=set)
    measured: set[At] = field(default_factory=set)
    _counts: dict[At, Sequence[int]] = field(default_factory=dict)
    _before: dict[At, Sequence[int]] = field(default_factory=dict)

    def observe(self, met: Mapping[str, Sequence[int]]) -> None:
        """Updates the joins from recent counts."""
        self._counts = {}
        for place, counts in met.items():
            node, member = map(int, place.split())
            self._counts[node, member] = counts
        self._before = {at: c for at, c in self._before.items() if at in self._counts}
        recent = {at: self._since(at) for at in self._counts}
        self.measured = {at for at, counts in recent.items() if counts[MADE] >= MIN_PAIRS}
        kept = (self.joins & self._counts.keys()) - self.measured
        self.joins = kept | {
            at
            for at in self.measured
            if wasted_work_ratio(recent[at]) > (LOW if at in self.joins else HIGH)
        }

    def begin_again(self, joins: Iterable[At]) -> None:
        """Judges these joins by what they do from now on, since queries leave them."""
        self._before |= {at: self._counts[at] for at in joins if at in self._counts}

    def _since(self, at: At) -> Sequence[int]:
        """Returns what a join has done since queries left it; all of it after counts were
        halved.
        """
        counts, before = self._counts[at], self._before.get(at)
        if before is None or any(now < then for now, then in zip(counts, before, strict=True)):
            self._before.pop(at, None)
            return counts
        return [now - then for now, then in zip(counts, before, strict=True)]

    def is_read_by(self, query: QueryPlan, nodes: Mapping[int, CatalogNode]) -> bool:
        """Whether a query picks from an unprofitable join."""
        return bool(self.joins) and any(join in self.joins for join in joins_of_picks(query, nodes))

    def leavers(
        self, queries: Iterable[QueryPlan], nodes: Mapping[int, CatalogNode]
    ) -> list[tuple[At, list[str]]]:
        """Returns the unprofitable joins of several of these queries, each with the names of the
        half that came last.
        """
        readers: dict[At, list[str]] = {}
        for query in queries if self.joins else ():
            for join in {*joins_of_picks(query, nodes)} & self.joins & self.measured:
                if wasted_work_ratio(self._since(join)) > LEAVING:
                    readers.setdefault(join, []).append(query.name)
        return [
            (join, names[(len(names) + 1) // 2 :]) for join, names in readers.items() if names[1:]
        ]


def joins_of_picks(query: QueryPlan, nodes: Mapping[int, CatalogNode]) -> Iterator[At]:
    """Returns the relaxed joins that a query picks from."""
    waiting, seen = [(query.node, query.member)], set[At]()
    while waiting:
        at = waiting.pop()
        if at in seen or at[0] not in nodes:
            continue
        seen.add(at)
        node = nodes[at[0]]
        below = list(zip(node.inputs, node.members[at[1]].inputs, strict=True))
        if isinstance(node.shape.step, Pick):
            yield join_below_pick(nodes, *below[0])
        waiting += below


def join_below_pick(nodes: Mapping[int, CatalogNode], number: int, member: int) -> At:
    """Returns the relaxed operator below a pick, also below a report of its rows."""
    node = nodes[number]
    if not isinstance(node.shape.step, Report):
        return number, member
    return node.inputs[0], node.members[member].inputs[0]
