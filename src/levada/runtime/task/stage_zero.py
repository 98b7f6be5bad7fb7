"""Nodes of stage 0: what is evaluated where the rows are read, before any exchange (filters,
computed variables).
"""

from __future__ import annotations

from levada.model.frame import Frame
from levada.operators.rows.compute import extend, filter_
from levada.plan.sealed import steps as s
from levada.plan.sealed.plan import Plan, PlanNode
from levada.runtime.task.exchange import Outbox
from levada.terms.term_pool import Pool


def local(plan: Plan, pool: Pool, outbox: Outbox, node: PlanNode, frame: Frame) -> None:
    """Sends a first node's rows along its edges, through the nodes of stage 0 on the way."""
    for consumer, rows in outbox.along(node, frame):
        target = plan.nodes[consumer.node]
        match target.step:
            case s.Filter():
                out = filter_(target, rows, pool)
            case s.Extend():
                out = extend(target, rows, pool)
            case s.Union():
                out = rows  # of static data: each input's rows as they come
            case _:
                raise AssertionError(f"a {type(target.step).__name__} needs an exchange first")
        if out.n:
            local(plan, pool, outbox, target, out)
