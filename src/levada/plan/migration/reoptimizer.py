"""Proposes running queries for another join order, some queries at a time.

    look      up to ``MAX_QUERIES_PER_CHECK`` queries in turn. Queries that share a whole join
    migrate together,
              since a single one would not save it
    patience  a query that has migrated n times is skipped for 2**n looks: the measures of an order
              that does not run are estimates, and may be wrong repeatedly

A query with a better order that cannot migrate is recorded once. Only queries that were added in
this run are considered, the last ``plan.sharing.join_orders.running_subjoins.MIN_KEPT_SUBJOINS`` of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from levada.core.frozen import frozen
from levada.plan.execution.plan import At
from levada.plan.lowering.join_order import Tree
from levada.plan.migration.running_migrations import members_to_remove, picks_from_shared_join
from levada.plan.sharing.join_orders.choose_order import (
    MAX_SEARCHED_PARTS,
    Chosen,
    OrderContext,
    choose,
)
from levada.plan.sharing.join_orders.order_cost import Costs, cuts_of
from levada.plan.sharing.join_orders.running_subjoins import RunningConjunction, RunningSubjoins
from levada.plan.sharing.join_orders.subjoin_keys import Keyed, SubJoin
from levada.plan.sharing.pending_queries import show_order
from levada.plan.topology.topology import Topology

# The comparison of a running query's cost with its cost in another join order (STREAMREUSE,
# section 5: marginal cost over running operators).
#
# The cost is computed as for a new query (``choose_order``), as if the query and those that migrate
# with it were removed: operators that no other query uses do not run. An order is better if it adds
# less than ``SHARE`` of the current cost and saves at least ``MIN_SAVING_NS`` ns for each element
# of the streams. A migration runs both orders for as long as windows reach. There are no guesses:
# all parts of the query, and its current joins, must have been measured. Cost: as of a new query,
# up to some ms.


SHARE, MIN_SAVING_NS = 0.8, 20.0


def find_better_order(
    known: RunningSubjoins, followed: RunningConjunction, doomed: Collection[At]
) -> Chosen | None:
    """Returns the order of a conjunction that adds less cost by the required margin.

    None: there is none, or too little is measured. ``doomed``: the members that would be removed.
    """
    n = len(followed.conjunction.parts)
    keyed = known.key_conjunction(followed)
    whole = (1 << n) - 1
    if (
        not 2 < n <= MAX_SEARCHED_PARTS
        or not keyed.is_connected(whole)
        or not _is_measured(known, followed)
    ):
        return None

    def running(mask: int) -> Tree | None:
        join = keyed.sub_join(mask)
        one = known.find_running(join)
        return None if one is None or one.at in doomed else join.to_parts(one.tree)

    def rate(mask: int) -> float | None:
        at = followed.places.get(mask)
        if at is None and mask & (mask - 1):
            one = known.find_running(keyed.sub_join(mask))
            at = None if one is None else one.at
        return None if at is None else known.rate(at)

    seen = OrderContext(running, lambda mask: 1)
    if (tree := running(whole)) is not None:  # other queries join the whole
        costs = Costs.from_rates(keyed, whole, rate, ())
        current_cost = choose(
            keyed, OrderContext(lambda mask: None, seen.wanted), costs
        ).current_cost
        return _require_gain(Chosen((tree,), tree, 0.0, current_cost), followed)
    cuts = [cut for _, cut in cuts_of(followed.conjunction.tree)]
    cuts += [cut for mask in keyed.connected_sets(whole, n) if (cut := _cut(known, keyed, mask))]
    return _require_gain(choose(keyed, seen, Costs.from_rates(keyed, whole, rate, cuts)), followed)


def _require_gain(chosen: Chosen, followed: RunningConjunction) -> Chosen | None:
    """Returns an order if it differs and adds less cost by the required margin."""
    less = (
        chosen.current_cost - chosen.cost >= MIN_SAVING_NS
        and chosen.cost < SHARE * chosen.current_cost
    )
    return chosen if less and chosen.units and chosen.tree != followed.conjunction.tree else None


def _is_measured(known: RunningSubjoins, followed: RunningConjunction) -> bool:
    """Whether all parts and the running joins have been measured."""
    masks = [1 << i for i in range(len(followed.conjunction.parts))]
    masks += [left | right for _, (left, right) in cuts_of(followed.conjunction.tree)]
    return all(
        mask in followed.places and known.rate(followed.places[mask]) is not None for mask in masks
    )


def _cut(known: RunningSubjoins, keyed: Keyed, mask: int) -> tuple[int, int] | None:
    """Returns both sides of a sub-join as it runs."""
    if not mask & (mask - 1):
        return None
    join: SubJoin = keyed.sub_join(mask)
    one = known.find_running(join)
    return None if one is None else cuts_of(join.to_parts(one.tree))[-1][1]


MAX_QUERIES_PER_CHECK, MOST_TOGETHER = 16, 16
PATIENCE = 10
PICKS = "it picks from a join that others relax"


@frozen
class ReorderProposal:
    """A query that should migrate: the orders of its conjunctions, and the new order as a text.

    ``cost``, ``current_cost``: the cost that the new and the current order add (ns for each element
    of the streams).
    """

    name: str
    units: Mapping[int, Sequence[Tree]]
    order: str
    cost: float
    current_cost: float


@dataclass(slots=True)
class Reoptimizer:
    """The state of the search; ``times``: the number of migrations of each query."""

    looks: int = 0
    times: dict[str, int] = field(default_factory=dict)
    _until: dict[str, int] = field(default_factory=dict)
    _reported: set[str] = field(default_factory=set)
    _next: int = 0

    def note_migration(self, name: str) -> None:
        """Records that a query has migrated, or should have."""
        self.times[name] = self.times.get(name, 0) + 1
        self._until[name] = self.looks + (1 << min(self.times[name], PATIENCE))

    def propose(
        self, topology: Topology, why_not: Callable[[str], str]
    ) -> Iterator[ReorderProposal]:
        """Yields the queries that should migrate now; ``why_not`` returns the obstacle
        of a query.
        """
        self.looks += 1
        there = topology.sharing.orders.standing
        for known in (self.times, self._until):
            for name in [name for name in known if name not in there]:
                del known[name]
        self._reported &= there.keys()
        waiting = [
            name
            for name in there
            if name not in topology.switches and topology.queries[name].since <= topology.version
        ]
        if topology.sharing.orders.forced is not None:
            yield from self._propose_forced(topology, waiting, why_not)
            return
        at = self._next % len(waiting) if waiting else 0
        asked = [*waiting[at:], *waiting[:at]][:MAX_QUERIES_PER_CHECK]
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
        """Yields a query and those that share a whole join with it.

        The first of these that may migrate is examined for all (``looked``).
        """
        for followed in list(topology.sharing.orders.standing[name]):
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
            if (improvement := find_better_order(topology.sharing.orders, followed, gone)) is None:
                continue
            if why:
                self._record_obstacle(
                    topology, name, why, show_order(followed.conjunction, improvement.tree)
                )
                return
            for other in names:
                for conjunction in topology.sharing.orders.standing[other]:
                    if _root_member(conjunction) != _root_member(followed):
                        continue
                    each = find_better_order(topology.sharing.orders, conjunction, gone)
                    if each is not None:
                        order = show_order(conjunction.conjunction, each.tree)
                        units = _units(topology, other, {conjunction.number: each.tree})
                        yield ReorderProposal(other, units, order, each.cost, each.current_cost)
            return

    def _record_obstacle(self, topology: Topology, name: str, why: str, order: str) -> None:
        """Records once that a query cannot migrate to a better order."""
        if name not in self._reported:
            self._reported.add(name)
            message = f"{name} would add less by {order}, and keeps its order: {why}"
            topology.sharing.journal.record(topology.version + 1, message)

    def _propose_forced(
        self, topology: Topology, names: Sequence[str], why_not: Callable[[str], str]
    ) -> Iterator[ReorderProposal]:
        """Yields queries for the orders that a caller forces."""
        forced = topology.sharing.orders.forced
        assert forced is not None, "who says the orders"
        for name in names:
            if why_not(name) or _find_obstacle(topology, name):
                continue
            trees: dict[int, Tree] = {}
            order = ""
            for running in topology.sharing.orders.standing[name]:
                units = forced(name, running.number, running.conjunction)
                if units and units[0] != running.conjunction.tree:
                    trees[running.number] = units[0]
                    order = order or show_order(running.conjunction, units[0])
            if trees:
                yield ReorderProposal(name, _units(topology, name, trees), order, 0.0, 0.0)


def _units(topology: Topology, name: str, trees: Mapping[int, Tree]) -> dict[int, Sequence[Tree]]:
    """Returns the orders of all conjunctions of a query, with these replaced."""
    current_trees = {
        one.number: one.conjunction.tree for one in topology.sharing.orders.standing[name]
    }
    return {number: (tree,) for number, tree in {**current_trees, **trees}.items()}


def _root_member(followed: RunningConjunction) -> At | None:
    """Returns the member that joins a whole conjunction."""
    return followed.places.get((1 << len(followed.conjunction.parts)) - 1)


def _queries_in_common(topology: Topology, followed: RunningConjunction) -> list[str]:
    """Returns the queries that share the whole of a conjunction."""
    at = _root_member(followed)
    return [
        name
        for name, conjunctions in topology.sharing.orders.standing.items()
        if name not in topology.switches and any(_root_member(each) == at for each in conjunctions)
    ]


def _find_obstacle(topology: Topology, name: str) -> str:
    """Returns the reason why a query cannot migrate because of its relations to others;
    "": none.
    """
    return PICKS if picks_from_shared_join(topology, name) else ""
