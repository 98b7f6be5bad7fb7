"""Runs migrations: a query has a second set of operators in another join order, up to an Emit of
its own (STREAMREUSE, section 5; docs/decisions/0095-switching-orders.md).

    begin     installs the set like that of a new query. It counts elements from its start on, and
              its Emit is muted. A use of its own keeps it, as a query keeps its operators
    finish    the next plan version uses this Emit for the query, and removes the members that only
              the old Emit used (``migration`` defines the instant)
    removing a query also removes its migration (``Topology.remove``)

So the migration happens at a plan version, and each version has either Emit. The query's start, its
first version and its end do not change. The catalog of the version contains all of it, so a later
run continues the migration.
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
from levada.plan.migration.migration import PlanMigration, switch_instant
from levada.plan.physical.operators import Op
from levada.plan.sharing.batch_install import Batch
from levada.plan.sharing.join_orders.running_subjoins import (
    RunningConjunction,
    locate_conjunctions,
    with_places,
)
from levada.plan.topology.topology import Topology

MOST_OF_A_QUERY = register(f"{__name__}.MOST_OF_A_QUERY", 64)
"""The maximum number of migrations of a query: readers of old results need each of them."""


@frozen
class RunningMigration:
    """A migration with the conjunctions of its operators."""

    switch: PlanMigration
    joins: Sequence[RunningConjunction]


def begin(
    topology: Topology,
    name: str,
    query: Query,
    start: int,
    units: Mapping[int, Sequence[Tree]],
) -> RunningMigration | None:
    """Installs the operators of a query in the order of ``units``.

    None: the results would have another form, so the query stays. ``start``: after all elements
    that its streams have had. The site of the query stays the same.
    """
    topology.install()
    query_plan, before = topology.queries[name], topology.sharing.orders.standing[name][0].installer
    orders = Orders(units)
    root, installer = lower_again(topology, name, query, start, orders)
    installer.site = before.site
    batch = Batch(topology.graph.common, topology.version + 1)
    batch.ask(name, installer, root)
    made = batch.install()[name]
    node = topology.graph.index[made.shape]
    topology.graph.count_use(node, made.member, 1)
    old, new = (topology.graph.nodes[at].shape for at in (query_plan.node, node))
    same = (node, made.member) == (query_plan.node, query_plan.member)
    if same or new.layout != old.layout or new.step != old.step:
        topology.graph.count_use(node, made.member, -1)
        return None
    joins = [
        with_places(each, topology.graph.common, topology.graph.index)
        for each in locate_conjunctions(orders.conjunctions, installer, root, root)
    ]
    for each in joins:
        topology.sharing.orders.offer(each)
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
    """Returns the last operator of a query that is planned again, and its installer for the next
    version.
    """
    lowered = lower(
        query, topology.streams.facts, replaceable=topology.replaceable,
        joins=topology.sharing.joins, orders=orders,
    )  # fmt: skip
    return lowered.root, Installer(
        query, name, start, topology.intern, show_empty=lowered.show_empty,
        since=topology.version + 1, data=topology.data,
    )  # fmt: skip


def is_reordering(topology: Topology, name: str) -> bool:
    """Whether a query migrates to another join order, not to the operators of an equal query."""
    return topology.switches[name].order != topology.queries[name].manner.order


def finish(topology: Topology, name: str) -> None:
    """Gives the query the operators of its migration from the next version on.

    If its joins change, relaxations no longer count it.
    """
    anew = is_reordering(topology, name)
    switch, old = topology.switches.pop(name), topology.queries[name]
    if anew:
        topology.sharing.forget_operators(name)
    version = topology.version + 1
    topology.queries[name] = old.with_emit(switch.node, switch.member, version, switch.order)
    topology.builder.came[name] = None
    topology.graph.count_use(old.node, old.member, -1)


def members_to_remove(topology: Topology, names: Sequence[str]) -> frozenset[At]:
    """Returns the members that only these queries use. Cost: linear in these members."""
    left: dict[At, int] = {}
    waiting = [(topology.queries[n].node, topology.queries[n].member) for n in names]
    while waiting:
        at = waiting.pop()
        node = topology.graph.nodes[at[0]]
        left[at] = left.get(at, node.members.uses[at[1]]) - 1
        if not left[at]:
            waiting += zip(node.inputs, node.members[at[1]].inputs, strict=True)
    return frozenset(at for at, uses in left.items() if not uses)


def picks_from_shared_join(topology: Topology, name: str) -> bool:
    """Whether a query picks from a relaxed join."""
    query = topology.queries[name]
    waiting, seen = [(query.node, query.member)], set[At]()
    while waiting:
        at = waiting.pop()
        if at not in seen:
            seen.add(at)
            node = topology.graph.nodes[at[0]]
            if isinstance(node.shape.step, Pick):
                return True
            waiting += zip(node.inputs, node.members[at[1]].inputs, strict=True)
    return False
