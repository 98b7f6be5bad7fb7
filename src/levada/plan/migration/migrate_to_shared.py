"""Plans a running query again to share joins, or sides of joins, with queries that were added
later.

The query migrates to the arrangements that these keep (``plan/sharing/shared_join_sides``), or to
the relaxed joins (``plan/sharing/relaxed_blocks``), in the same way as to another join order
(``running_migrations``).

    q1   Join (?x :p ?y, ?x :q ?z)              its own: no other query had a side of it
    q2   StreamJoin (ArrangeStream (?x :p ?y), ?x :r ?w)
    q1   StreamJoin (the same one, ?x :q ?z)    muted, until q1 may migrate

    q1   Join (?x :p :c, ?x :q ?z)              its own: no other query differed from it
    q2   Pick (Join (?x :p ?0, ?x :q ?z))
    q1   Pick (the same one)                    muted, until q1 may migrate

The query is installed like a new one, in its current join order. From then on relaxations and join
sides count it by its new operators. The old operators are removed when the migration ends.
"""

from __future__ import annotations

from levada.core.event_time import MAX
from levada.plan.execution.plan import At
from levada.plan.execution.shapes import Shape
from levada.plan.logical.nodes import Query
from levada.plan.lowering.join_order import Orders, units_of
from levada.plan.migration.migration import PlanMigration, switch_instant
from levada.plan.migration.running_migrations import RunningMigration, lower_again
from levada.plan.sharing.batch_install import Batch
from levada.plan.sharing.join_orders.running_subjoins import (
    RunningConjunction,
    locate_conjunctions,
    with_places,
)
from levada.plan.sharing.pending_queries import Newcomer
from levada.plan.topology.topology import Topology


def begin_anew(topology: Topology, name: str, query: Query, start: int) -> RunningMigration | None:
    """Installs operators of a query that share what exists now.

    None: there is nothing that it could share, or the migration would never end. ``start`` is
    after all elements that its streams have had.
    """
    topology.install()
    query_plan = topology.queries[name]
    until = switch_instant(query_plan, start)
    relaxed = name in topology.sharing.relaxations.late
    if until >= MAX or not (topology.sharing.sides.reconsider(name) or relaxed):
        return None
    shape, member, joins = _install_newcomer(topology, name, query, start)
    node, old = topology.graph.index[shape], topology.graph.nodes[query_plan.node].shape
    topology.graph.count_use(node, member, 1)
    same = (node, member) == (query_plan.node, query_plan.member)
    if same or shape.layout != old.layout or shape.step != old.step:
        topology.graph.count_use(node, member, -1)
        return None
    for each in joins:
        topology.sharing.orders.offer(each)
    order = query_plan.manner.order
    switch = PlanMigration(name, node, member, start, until, topology.version + 1, order)
    topology.switches[name] = switch
    return RunningMigration(switch, joins)


def _install_newcomer(
    topology: Topology, name: str, query: Query, start: int
) -> tuple[Shape, int, list[RunningConjunction]]:
    """Returns the last operator of a query, installed like a new query, and its conjunctions."""
    query_plan = topology.queries[name]
    orders = Orders(units_of(query_plan.manner.order))
    lowered, installer = lower_again(topology, name, query, start, orders)
    installer.site = _site(topology, (query_plan.node, query_plan.member))
    root = topology.sharing.with_wide_sets(installer, lowered)
    one = Newcomer(name, installer, root, orders, lambda _: root)
    batch = Batch(topology.graph.common, topology.version + 1)
    topology.sharing.forget_operators(name)
    roots = topology.sharing.share([one], topology.queries, batch, again=True)
    made = batch.install()[name]
    joins = [
        with_places(each, topology.graph.common, topology.graph.index)
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
