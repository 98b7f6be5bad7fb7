"""Evaluates the nodes of stage 0 where rows are read, before any exchange (filters, computed
variables).
"""

from __future__ import annotations

from levada.core.frame import Frame
from levada.operators.operator_context import OperatorContext
from levada.operators.operator_registry import evaluate
from levada.plan.execution.plan import Plan, PlanNode
from levada.runtime.task.exchange import Exchange
from levada.runtime.task.operator_failures import raise_failure
from levada.runtime.task.work_note import READING, note_here


def run_ingest_operators(
    plan: Plan, env: OperatorContext, exchange: Exchange, node: PlanNode, frame: Frame
) -> None:
    """Sends a first node's rows along its edges, through the nodes of stage 0.

    A union in stage 0 is one of static data: it passes on the rows of each input.
    """
    for consumer, rows in exchange.along(node, frame):
        target = plan.nodes[consumer.node]
        kind = type(target.step)
        assert kind.rowwise, f"a {kind.__name__} needs an exchange first"
        work = note_here()
        before = READING if work is None else work.node
        if work is not None:
            work.begin(target.id)
        try:
            out = evaluate(target, (rows,), env)
        except BaseException as error:
            raise_failure(error, target.id)
        if work is not None:
            work.begin(before)
        if out is not None and out.n:
            env.pool.spent.hold(target.id, out)
            run_ingest_operators(plan, env, exchange, target, out)
