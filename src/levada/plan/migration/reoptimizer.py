"""Which queries that run would be better off in another order of joins: asked now and then, of some
at a time.

    look      of up to ``MOST`` queries in turn; those that have the whole of a join in common go
              over together, since alone none of them would save it
    patience  of a query that has gone over n times the next 2**n looks ask nothing: measures of an
              order that does not run are guesses, and may be wrong again and again

A query of which a better order is known and that cannot go over is told, once. Only queries that
came in this run are known; the last ``plan.sharing.join_orders.running_subjoins.FEW`` of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from levada.core.frozen import frozen
from levada.plan.execution.plan import At
from levada.plan.lowering.join_order import Tree
from levada.plan.migration.running_migrations import members_to_remove, picks_from_shared_join
from levada.plan.sharing.join_orders.reoptimization_check import find_better_order
from levada.plan.sharing.join_orders.running_subjoins import RunningConjunction
from levada.plan.sharing.pending_queries import show_order
from levada.plan.topology.topology import Topology

MOST, MOST_TOGETHER = 16, 16
PATIENCE = 10
PICKS = "it picks from a join that others relax"


@frozen
class ReorderProposal:
    """A query that is to go over: the orders of its conjunctions, the new one as a text, what it
    adds and what the old one does (ns for each element of the streams).
    """

    name: str
    units: Mapping[int, Sequence[Tree]]
    order: str
    cost: float
    current_cost: float


@dataclass(slots=True)
class Reoptimizer:
    """What has been asked; ``times``: how often each query has gone over."""

    looks: int = 0
    times: dict[str, int] = field(default_factory=dict)
    _until: dict[str, int] = field(default_factory=dict)
    _reported: set[str] = field(default_factory=set)
    _next: int = 0

    def note_migration(self, name: str) -> None:
        """A query has gone over, or should have."""
        self.times[name] = self.times.get(name, 0) + 1
        self._until[name] = self.looks + (1 << min(self.times[name], PATIENCE))

    def propose(
        self, topology: Topology, why_not: Callable[[str], str]
    ) -> Iterator[ReorderProposal]:
        """The queries that are to go over now; ``why_not``: what keeps one from it, if anything."""
        self.looks += 1
        there = topology.orders.standing
        for known in (self.times, self._until):
            for name in [name for name in known if name not in there]:
                del known[name]
        self._reported &= there.keys()
        waiting = [
            name
            for name in there
            if name not in topology.switches and topology.queries[name].since <= topology.version
        ]
        if topology.orders.forced is not None:
            yield from self._propose_forced(topology, waiting, why_not)
            return
        at = self._next % len(waiting) if waiting else 0
        asked = [*waiting[at:], *waiting[:at]][:MOST]
        self._next = at + len(asked)
        looked: set[At | None] = set()
        for name in asked:
            if name not in topology.switches and self._until.get(name, 0) <= self.looks:
                yield from self._propose_for(topology, name, why_not, looked)

    def _propose_for(
        self,
        topology: Topology,
        name: str,
        why_not: Callable[[str], str],
        looked: set[At | None],
    ) -> Iterator[ReorderProposal]:
        """A query, and those that have a whole join in common with it; of those who share one the
        first that may go over is asked for all (``looked``).
        """
        for followed in list(topology.orders.standing[name]):
            names, together = [name], _queries_in_common(topology, followed)
            if len(together) > MOST_TOGETHER or _root_member(followed) in looked:
                continue
            if not (why := why_not(name) or _find_obstacle(topology, name)):
                looked.add(_root_member(followed))
                names = [
                    other
                    for other in together
                    if other == name or not (why_not(other) or _find_obstacle(topology, other))
                ]
            gone = members_to_remove(topology, names)
            if (improvement := find_better_order(topology.orders, followed, gone)) is None:
                continue
            if why:
                self._record_obstacle(
                    topology, name, why, show_order(followed.conjunction, improvement.tree)
                )
                return
            for other in names:
                for conjunction in topology.orders.standing[other]:
                    if _root_member(conjunction) != _root_member(followed):
                        continue
                    each = find_better_order(topology.orders, conjunction, gone)
                    if each is not None:
                        order = show_order(conjunction.conjunction, each.tree)
                        units = _units(topology, other, {conjunction.number: each.tree})
                        yield ReorderProposal(other, units, order, each.cost, each.current_cost)
            return

    def _record_obstacle(self, topology: Topology, name: str, why: str, order: str) -> None:
        """A better order that cannot be gone over to."""
        if name not in self._reported:
            self._reported.add(name)
            message = f"{name} would add less by {order}, and keeps its order: {why}"
            topology.journal.record(topology.version + 1, message)

    def _propose_forced(
        self, topology: Topology, names: Sequence[str], why_not: Callable[[str], str]
    ) -> Iterator[ReorderProposal]:
        """As who forces orders says."""
        forced = topology.orders.forced
        assert forced is not None, "who says the orders"
        for name in names:
            if why_not(name) or _find_obstacle(topology, name):
                continue
            trees: dict[int, Tree] = {}
            order = ""
            for running in topology.orders.standing[name]:
                units = forced(name, running.number, running.conjunction)
                if units and units[0] != running.conjunction.tree:
                    trees[running.number] = units[0]
                    order = order or show_order(running.conjunction, units[0])
            if trees:
                yield ReorderProposal(name, _units(topology, name, trees), order, 0.0, 0.0)


def _units(topology: Topology, name: str, trees: Mapping[int, Tree]) -> dict[int, Sequence[Tree]]:
    """The orders of all conjunctions of a query, of which some are others."""
    current_trees = {one.number: one.conjunction.tree for one in topology.orders.standing[name]}
    return {number: (tree,) for number, tree in {**current_trees, **trees}.items()}


def _root_member(followed: RunningConjunction) -> At | None:
    """Where the rows of a whole conjunction are."""
    return followed.places.get((1 << len(followed.conjunction.parts)) - 1)


def _queries_in_common(topology: Topology, followed: RunningConjunction) -> list[str]:
    """The queries that have the whole of a conjunction in common."""
    at = _root_member(followed)
    return [
        name
        for name, conjunctions in topology.orders.standing.items()
        if name not in topology.switches and any(_root_member(each) == at for each in conjunctions)
    ]


def _find_obstacle(topology: Topology, name: str) -> str:
    """What of its place among others keeps a query from going over."""
    return PICKS if picks_from_shared_join(topology, name) else ""
