"""A query that ran before others came is planned anew, beside what runs by now: it goes over to
what these keep of its joins (``plan/install/shared/sides``), as to another order (``under_way``).

    q1   Join (?x :p ?y, ?x :q ?z)              its own: nobody else had a side of it
    q2   StreamJoin (ArrangeStream (?x :p ?y), ?x :r ?w)
    q1   StreamJoin (the same one, ?x :q ?z)    muted, until q1 may go over

It comes as a newcomer would, in the order that it has. Among those who relax joins and have sides
it is counted by its new operators from then on. The old ones go when it has gone over.
"""

from __future__ import annotations

from levada.core.event_time import MAX
from levada.plan.execution.plan import At
from levada.plan.execution.shapes import Shape
from levada.plan.logical.nodes import Query
from levada.plan.lowering.join_order import Orders, units_of
from levada.plan.migration.migration import PlanMigration
from levada.plan.migration.running_migrations import RunningMigration, lower_again
from levada.plan.migration.switch_point import switch_instant
from levada.plan.physical.operators import Op
from levada.plan.sharing.batch_install import Batch
from levada.plan.sharing.join_orders.running_subjoins import RunningConjunction
from levada.plan.sharing.join_orders.subjoin_locations import locate_conjunctions, with_places
from levada.plan.sharing.pending_queries import Newcomer
from levada.plan.sharing.static_arrangements import with_arrangements
from levada.plan.topology.topology import Topology


def begin_anew(topology: Topology, name: str, query: Query, start: int) -> RunningMigration | None:
    """Installs the operators of a query beside what there is; None: nothing is kept that it could
    read, or it is never behind ``start``, which is behind all that its streams have said.
    """
    topology.install()
    query_plan = topology.queries[name]
    until = switch_instant(query_plan, start)
    if until >= MAX or not topology.sides.reconsider(name):
        return None
    shape, member, joins = _install_newcomer(topology, name, query, start)
    node, old = topology.index[shape], topology.nodes[query_plan.node].shape
    topology._count(node, member, 1)
    same = (node, member) == (query_plan.node, query_plan.member)
    if same or shape.layout != old.layout or shape.step != old.step:
        topology._count(node, member, -1)
        return None
    for each in joins:
        topology.orders.offer(each)
    order = query_plan.manner.order
    switch = PlanMigration(name, node, member, start, until, topology.version + 1, order)
    topology.switches[name] = switch
    return RunningMigration(switch, joins)


def _install_newcomer(
    topology: Topology, name: str, query: Query, start: int
) -> tuple[Shape, int, list[RunningConjunction]]:
    """The last operator of a query as a newcomer's, and what it joins."""
    query_plan = topology.queries[name]
    orders = Orders(units_of(query_plan.manner.order))
    lowered, installer = lower_again(topology, name, query, start, orders)
    installer.site = _site(topology, (query_plan.node, query_plan.member))
    root = topology._with_wide_sets(installer, lowered)
    planned = _plan_newcomer(topology, Newcomer(name, installer, root, orders, lambda _: root))
    batch, roots = Batch(topology._common, topology.version + 1), {name: planned}
    topology.sides.ask(batch, {name: installer}, roots)
    made = batch.install()[name]
    joins = [
        with_places(each, topology._common, topology.index)
        for each in locate_conjunctions(orders.conjunctions, installer, root, roots[name])
    ]
    return made.shape, made.member, joins


def _plan_newcomer(topology: Topology, one: Newcomer) -> Op:
    """The last operator of a query, noted as a newcomer's."""
    topology.relaxations.forget(one.name)
    topology._families.forget(one.name)
    topology.sides.forget(topology._common, one.name)
    noted = topology._note_root(one)
    return with_arrangements(topology.relaxations.relax(one.name, noted, topology._why_refused))


def _site(topology: Topology, last: At) -> str:
    """In which region the operators of a query stand: the first ones have its name."""
    waiting = [last]
    while waiting:
        number, member = waiting.pop()
        node = topology.nodes[number]
        if (query := node.members[member].query).startswith("+"):
            return query[1:]
        waiting += zip(node.inputs, node.members[member].inputs, strict=True)
    return ""
