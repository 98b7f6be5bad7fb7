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
from levada.plan.execution.shapes import Shape
from levada.plan.logical.nodes import Query
from levada.plan.lowering.join_order import Orders, Tree, order_of
from levada.plan.lowering.lower import lower
from levada.plan.migration.migration import PlanMigration, switch_instant
from levada.plan.sharing.batch_install import Batch
from levada.plan.sharing.join_orders.running_subjoins import (
    RunningConjunction,
    locate_conjunctions,
    with_places,
)
from levada.plan.sharing.pending_queries import Newcomer
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
    *,
    apart: str = "",
) -> RunningMigration | None:
    """Installs the operators of a query in the order of ``units``, with all that it may share.

    None: the results would have another form, so the query stays. ``start``: after all elements
    that its streams have had. ``apart``: why it shares no relaxed join. The site of the query stays
    the same. From now on relaxations and join sides count the query by its new operators.
    """
    topology.install()
    query_plan = topology.queries[name]
    until = switch_instant(query_plan, start)
    orders = Orders(units)
    shape, member, joins = _install_newcomer(topology, name, query, start, orders, apart=apart)
    node, old = topology.graph.index[shape], topology.graph.nodes[query_plan.node].shape
    topology.graph.count_use(node, member, 1)
    same = (node, member) == (query_plan.node, query_plan.member)
    if same or shape.layout != old.layout or shape.step != old.step:
        topology.graph.count_use(node, member, -1)
        return None
    for each in joins:
        topology.sharing.orders.offer(each)
    version, order = topology.version + 1, order_of(orders.units)
    switch = PlanMigration(name, node, member, start, until, version, order)
    topology.switches[name] = switch
    return RunningMigration(switch, joins)


def _install_newcomer(
    topology: Topology, name: str, query: Query, start: int, orders: Orders, *, apart: str
) -> tuple[Shape, int, list[RunningConjunction]]:
    """Returns the last operator of a query, installed like a new query, and its conjunctions."""
    query_plan, graph = topology.queries[name], topology.graph
    lowered = lower(
        query, topology.streams.facts, replaceable=topology.replaceable,
        joins=topology.sharing.joins, orders=orders,
    )  # fmt: skip
    installer = Installer(
        query, name, start, topology.intern, show_empty=lowered.show_empty,
        since=topology.version + 1, data=topology.data,
    )  # fmt: skip
    installer.site = _site(topology, (query_plan.node, query_plan.member))
    root = topology.sharing.with_wide_sets(installer, lowered.root)
    one = Newcomer(name, installer, root, orders, lambda _: root)
    batch = Batch(graph.common, topology.version + 1)
    topology.sharing.forget_operators(name)
    roots = topology.sharing.share([one], topology.queries, batch, again=True, apart=apart)
    made = batch.install()[name]
    topology.replace_joins(batch.narrower)
    joins = [
        with_places(each, graph.common, graph.index)
        for each in locate_conjunctions(orders.conjunctions, installer, root, roots[name])
    ]
    return made.shape, made.member, joins


def _site(topology: Topology, last: At) -> str:
    """Returns the region of a query's operators; its leaves have the region's name."""
    waiting = [last]
    while waiting:
        number, member = waiting.pop()
        node = topology.graph.nodes[number]
        if (query := node.members[member].query).startswith("+"):
            return query[1:]
        waiting += zip(node.inputs, node.members[member].inputs, strict=True)
    return ""


def is_reordering(topology: Topology, name: str) -> bool:
    """Whether a query migrates to another join order, not to the operators of an equal query."""
    return topology.switches[name].order != topology.queries[name].manner.order


def finish(topology: Topology, name: str) -> None:
    """Gives the query the operators of its migration from the next version on."""
    switch, old = topology.switches.pop(name), topology.queries[name]
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
