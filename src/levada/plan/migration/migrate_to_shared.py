"""Plans a running query again to share joins, or sides of joins, with queries that were added
later, or to leave a join that does not pay.

The query migrates to the arrangements that these keep (``plan/sharing/shared_join_sides``), or to
the relaxed joins (``plan/sharing/relaxed_blocks``), in the same way as to another join order
(``running_migrations``).

    q1   Join (?x :p ?y, ?x :q ?z)              its own: no other query had a side of it
    q2   StreamJoin (ArrangeStream (?x :p ?y), ?x :r ?w)
    q1   StreamJoin (the same one, ?x :q ?z)    muted, until q1 may migrate

    q1   Join (?x :p :c, ?x :q ?z)              its own: no other query differed from it
    q2   Pick (Join (?x :p ?0, ?x :q ?z))
    q1   Pick (the same one)                    muted, until q1 may migrate

    q1   Pick (Join (?x :p ?0, ?x :q ?z))       most pairs are wasted (``unprofitable_joins``)
    q1   Join (?x :p :c, ?x :q ?z)              its own, muted, until q1 may migrate

The query is installed like a new one, in its current join order. The old operators are removed when
the migration ends.
"""

from __future__ import annotations

from levada.core.event_time import MAX
from levada.plan.logical.nodes import Query
from levada.plan.lowering.join_order import units_of
from levada.plan.migration.migration import switch_instant
from levada.plan.migration.running_migrations import RunningMigration, begin
from levada.plan.topology.topology import Topology


def begin_anew(
    topology: Topology, name: str, query: Query, start: int, apart: str = ""
) -> RunningMigration | None:
    """Installs operators of a query that share what exists now. ``apart``: why it leaves its
    relaxed join.

    None: there is nothing that it could share, or the migration would never end. ``start`` is
    after all elements that its streams have had.
    """
    topology.install()
    query_plan = topology.queries[name]
    relaxed = name in topology.sharing.relaxations.late
    if switch_instant(query_plan, start) >= MAX:
        return None
    if not (topology.sharing.sides.reconsider(name) or relaxed or apart):
        return None
    return begin(topology, name, query, start, units_of(query_plan.manner.order), apart=apart)
