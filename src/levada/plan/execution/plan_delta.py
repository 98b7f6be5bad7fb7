"""The difference of a plan version from the previous one: it is written to disk and read by workers
that have the previous version.

    nodes      nodes with other members, completely
    revised    nodes with the same members: changed readers, members that are new to an epoch, and
               the starts from which they count
    queries    the added queries; the names of the removed ones

All other nodes are the same objects in both versions, with their computed facts. So the cost of a
query is linear in itself and in the nodes that it joins (``plan/topology/catalog_members``), not in
the number of existing queries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from levada.core.array_types import Longs
from levada.plan.execution.plan import Consumer, Plan, PlanNode, QueryPlan


@dataclass(frozen=True)
class Revised:
    """A revised node with the same members.

    ``fresh``: the numbers of members that no epoch had before. ``newest``: None if unchanged.
    ``kept``: for each edge to a reader the index of the previous edge, -1: the next of
    ``consumers``.
    """

    fresh: Longs
    newest: Longs | None
    kept: tuple[int, ...]
    consumers: tuple[Consumer, ...]

    def apply_to(self, node: PlanNode) -> PlanNode:
        """Returns the revised node. Raises ``LookupError`` for a node with other edges."""
        new = iter(self.consumers)
        consumers = tuple([node.consumers[at] if at >= 0 else next(new) for at in self.kept])
        fresh = np.zeros(len(node.members), np.bool_)
        fresh[self.fresh] = True
        newest = node.newest if self.newest is None else self.newest
        return node.revise(consumers, fresh, newest)


@dataclass(frozen=True)
class PlanChange:
    """Version ``version`` after ``base``; ``order`` has all existing nodes."""

    base: int
    version: int
    nodes: Mapping[int, PlanNode]
    revised: Mapping[int, Revised]
    order: tuple[int, ...]
    streams: tuple[str, ...]
    queries: Mapping[str, QueryPlan]
    gone: tuple[str, ...]
    stages: int
    made: Mapping[str, str]
    muted: tuple[tuple[int, int], ...] = ()

    def apply_to(self, base: Plan) -> Plan:
        """Returns the version made from the previous one. Raises ``LookupError`` for
        another one.
        """
        there = {*self.order}
        nodes = {n: node for n, node in base.nodes.items() if n in there} | dict(self.nodes)
        for number, revised in self.revised.items():
            nodes[number] = revised.apply_to(base.nodes[number])
        for number in there - self.nodes.keys() - self.revised.keys():
            nodes[number].forget()
        queries = base.queries_after(self.queries, self.gone)
        return Plan(
            self.version, nodes, self.order, self.streams, queries, self.stages, dict(self.made),
            self.muted,
        )  # fmt: skip


def change_of(before: Plan, after: Plan, came: Iterable[str], gone: Collection[str]) -> PlanChange:
    """Returns the difference of a version from the previous one; ``came``, ``gone``: queries since
    then.
    """
    nodes: dict[int, PlanNode] = {}
    revised: dict[int, Revised] = {}
    for number, node in after.nodes.items():
        old = before.nodes.get(number)
        if old is None or not node.same_members(old):
            nodes[number] = node
        elif node is not old:
            revised[number] = _describe_revision(old, node)
    return PlanChange(
        before.version,
        after.version,
        nodes,
        revised,
        after.order,
        after.streams,
        {name: after.queries[name] for name in came},
        tuple(gone),
        after.stages,
        after.made,
        after.muted,
    )


def _describe_revision(old: PlanNode, node: PlanNode) -> Revised:
    places = {id(consumer): at for at, consumer in enumerate(old.consumers)}
    kept = tuple([places.get(id(consumer), -1) for consumer in node.consumers])
    new = tuple([c for c, at in zip(node.consumers, kept, strict=True) if at < 0])
    same = np.array_equal(old.newest, node.newest)
    return Revised(np.flatnonzero(node.fresh), None if same else node.newest, kept, new)
