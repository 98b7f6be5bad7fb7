"""Finds the conjunctions of a query that continues from an earlier run: the places of its parts and
joins. Finds its blocks, too, that other queries could share relaxed.

The query is lowered in the join order that its plan has (``QuerySettings.order``). Its operators
and the members below its Emit are then walked side by side. The inputs of both are the same, even
if other queries read more columns. If they differ (the query picks from a relaxed join), nothing is
recovered, and the query keeps its order. No result depends on it. Cost: as of an added query.
"""

from __future__ import annotations

from collections.abc import Mapping

from levada.plan.binding.edges import base_of
from levada.plan.binding.installer import Installer
from levada.plan.execution import steps as s
from levada.plan.execution.plan import At
from levada.plan.logical.nodes import Query
from levada.plan.lowering.join_order import MAX_ORDERED_PARTS, Orders, units_of
from levada.plan.lowering.lower import lower
from levada.plan.migration.running_migrations import picks_from_shared_join
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op
from levada.plan.sharing.join_orders.order_cost import mask_of
from levada.plan.sharing.join_orders.running_subjoins import RunningConjunction
from levada.plan.topology.topology import Topology


def recover_conjunctions(
    topology: Topology, name: str, query: Query, *, empty_reports: bool
) -> bool:
    """Records the conjunctions of a query; returns whether all were found."""
    query_plan = topology.queries[name]
    orders = Orders(units_of(query_plan.manner.order))
    lowered = lower(
        query, topology.streams.facts, empty_reports=empty_reports,
        replaceable=topology.replaceable, joins=topology.sharing.joins, orders=orders,
    )  # fmt: skip
    if all(len(each.parts) < 3 for each in orders.conjunctions):
        return False
    installer = Installer(
        query,
        name,
        query_plan.start,
        topology.intern,
        show_empty=lowered.show_empty,
        since=query_plan.since,
    )
    places = _places(topology, lowered.root, (query_plan.node, query_plan.member))
    if places is None:
        return False
    installer.site = _site(topology, places)
    for number, each in enumerate(orders.conjunctions):
        if 1 < len(each.parts) <= MAX_ORDERED_PARTS:
            ops = {1 << i: part for i, part in enumerate(each.parts)}
            ops |= {mask_of(tree): op for tree, op in each.joined.items()}
            there = {mask: id(base_of(op)) for mask, op in ops.items()}
            at = {mask: places[key] for mask, key in there.items() if key in places}
            topology.sharing.orders.follow(RunningConjunction(installer, each, at, number))
    return True


def recover_blocks(topology: Topology, name: str, query: Query, *, empty_reports: bool) -> None:
    """Registers the blocks of a query (``plan/sharing/relaxed_blocks``), for later queries."""
    query_plan, sharing = topology.queries[name], topology.sharing
    lowered = lower(
        query, topology.streams.facts, empty_reports=empty_reports,
        replaceable=topology.replaceable, joins=sharing.joins,
        orders=Orders(units_of(query_plan.manner.order)),
    )  # fmt: skip
    installer = Installer(
        query, name, query_plan.start, topology.intern, show_empty=lowered.show_empty,
        since=query_plan.since,
    )  # fmt: skip
    root = sharing.with_wide_sets(installer, lowered.root)
    picks = picks_from_shared_join(topology, name)
    sharing.relaxations.recover(name, installer, root, picks=picks)


def _site(topology: Topology, places: Mapping[int, At]) -> str:
    """Returns the region of operators; their leaves have its name (``Steps.site``)."""
    names = (
        topology.graph.nodes[number].members[member].query for number, member in places.values()
    )
    return next((name[1:] for name in names if name.startswith("+")), "")


def _places(topology: Topology, root: Op, at: At) -> dict[int, At] | None:
    """Returns the member of each operator below a root; None: operators and members differ."""
    places: dict[int, At] = {}
    waiting = [(base_of(root), at)]
    while waiting:
        op, (number, member) = waiting.pop()
        if id(op) in places:
            continue
        node = topology.graph.nodes[number]
        if isinstance(node.shape.step, s.Arrange):  # not an operator of the lowered query
            number, member = node.inputs[0], node.members[member].inputs[0]
            node = topology.graph.nodes[number]
        step = node.shape.step
        fits = type(op.spec).__name__ == type(step).__name__
        fits = fits or (isinstance(op.spec, p.Join) and isinstance(step, s.ArrangedJoin))
        fits |= isinstance(op.spec, p.ReportJoin) and isinstance(step, s.ArrangedReportJoin)
        if not fits or len(op.inputs) != len(node.inputs):
            return None
        places[id(op)] = number, member
        below = zip(node.inputs, node.members[member].inputs, strict=True)
        waiting += zip(map(base_of, op.inputs), below, strict=True)
    return places
