"""Switches that are under way: of a query that runs a second set of operators, in another order of
joins, up to an Emit of its own (STREAMREUSE, 5; docs/decisions/0095-switching-orders.md).

    begin     the set comes as a newcomer's: it counts what comes from its start on, and its Emit is
              muted. A use of its own keeps it, as a query keeps its operators
    finish    the next plan version has this Emit as the query's, and what the old one alone used
              goes (``instant`` says when)
    a query that goes takes its switch along (``Topology.remove``)

So a plan version is the instant, and each version has the one Emit or the other. Beside the query's
numbers nothing is another: its start, since when it is there, its end. All of it is in the catalog
of the version, so a run that goes on has what the one before had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.plan.binding.installer import Installer
from levada.plan.execution.joins import Pick
from levada.plan.execution.plan import At
from levada.plan.logical.nodes import Query
from levada.plan.lowering.join_order import Orders, Tree, order_of
from levada.plan.lowering.lower import lower
from levada.plan.migration.migration import PlanMigration
from levada.plan.migration.switch_point import switch_instant
from levada.plan.physical.operators import Op
from levada.plan.sharing.batch_install import Batch
from levada.plan.sharing.join_orders.running_subjoins import RunningConjunction
from levada.plan.sharing.join_orders.subjoin_locations import locate_conjunctions, with_places
from levada.plan.topology.topology import Topology

MOST_OF_A_QUERY = register(f"{__name__}.MOST_OF_A_QUERY", 64)
"""Switches that one query may have: each is told to who reads results of long ago."""


@frozen
class RunningMigration:
    """A switch with what its operators join."""

    switch: PlanMigration
    joins: Sequence[RunningConjunction]


def begin(
    topology: Topology,
    name: str,
    query: Query,
    start: int,
    units: Mapping[int, Sequence[Tree]],
) -> RunningMigration | None:
    """Installs the operators of a query in the order of ``units``; None: its results would have
    another form, so it stays. ``start``: behind all that its streams have said. It stays where it
    stands.
    """
    topology.install()
    query_plan, before = topology.queries[name], topology.orders.standing[name][0].installer
    orders = Orders(units)
    root, installer = lower_again(topology, name, query, start, orders)
    installer.site = before.site
    batch = Batch(topology._common, topology.version + 1)
    batch.ask(name, installer, root)
    made = batch.install()[name]
    node = topology.index[made.shape]
    topology._count(node, made.member, 1)
    old, new = (topology.nodes[at].shape for at in (query_plan.node, node))
    same = (node, made.member) == (query_plan.node, query_plan.member)
    if same or new.layout != old.layout or new.step != old.step:
        topology._count(node, made.member, -1)
        return None
    joins = [
        with_places(each, topology._common, topology.index)
        for each in locate_conjunctions(orders.conjunctions, installer, root, root)
    ]
    for each in joins:
        topology.orders.offer(each)
    switch = PlanMigration(
        name,
        node,
        made.member,
        start,
        switch_instant(query_plan, start),
        topology.version + 1,
        order_of(units),
    )
    topology.switches[name] = switch
    return RunningMigration(switch, joins)


def lower_again(
    topology: Topology, name: str, query: Query, start: int, orders: Orders
) -> tuple[Op, Installer]:
    """The last operator of a query that is planned once more, and what installs it from the next
    version on.
    """
    lowered = lower(
        query, topology.facts, replaceable=topology.replaceable, joins=topology.joins,
        orders=orders,
    )  # fmt: skip
    return lowered.root, Installer(
        query, name, start, topology.intern, show_empty=lowered.show_empty,
        since=topology.version + 1, data=topology.data,
    )  # fmt: skip


def is_reordering(topology: Topology, name: str) -> bool:
    """Whether a query goes over to another order, and not to what an equal one has."""
    return topology.switches[name].order != topology.queries[name].manner.order


def finish(topology: Topology, name: str) -> None:
    """The query has the operators of its switch from the next version on; if its joins are others
    who relaxes joins counts it no more.
    """
    anew = is_reordering(topology, name)
    switch, old = topology.switches.pop(name), topology.queries[name]
    if anew:
        topology.relaxations.forget(name)
        topology._families.forget(name)
        topology.sides.forget(topology._common, name)
    version = topology.version + 1
    topology.queries[name] = old.with_emit(switch.node, switch.member, version, switch.order)
    topology._sealer.came[name] = None
    topology._count(old.node, old.member, -1)


def members_to_remove(topology: Topology, names: Sequence[str]) -> frozenset[At]:
    """The members that would go with these queries: nobody else uses them. Cost: by those that do
    go.
    """
    left: dict[At, int] = {}
    waiting = [(topology.queries[n].node, topology.queries[n].member) for n in names]
    while waiting:
        at = waiting.pop()
        node = topology.nodes[at[0]]
        left[at] = left.get(at, node.members.uses[at[1]]) - 1
        if not left[at]:
            waiting += zip(node.inputs, node.members[at[1]].inputs, strict=True)
    return frozenset(at for at, uses in left.items() if not uses)


def picks_from_shared_join(topology: Topology, name: str) -> bool:
    """Whether a query picks from a join that others relax."""
    query = topology.queries[name]
    waiting, seen = [(query.node, query.member)], set[At]()
    while waiting:
        at = waiting.pop()
        if at not in seen:
            seen.add(at)
            node = topology.nodes[at[0]]
            if isinstance(node.shape.step, Pick):
                return True
            waiting += zip(node.inputs, node.members[at[1]].inputs, strict=True)
    return False
