"""Steps that let rows pass as they are: several inputs as one, rows that waited for their
watermark, results.
"""

from __future__ import annotations

import numpy as np

from levada.core.frame import Frame, concat
from levada.operators.operator_context import Inputs, OperatorContext
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode


def union(node: PlanNode[s.Union], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The rows of all inputs."""
    there = [f for f in inputs if f is not None]
    return concat(there) if there else None


def hold(node: PlanNode[s.Hold], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The rows: they are below their watermark now."""
    return inputs[0]


def emit(node: PlanNode[s.Emit], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The results; the due reports of queries that show empty ones are noted, by one partition."""
    if node.step.enumerated and env.place.partition == 0:
        calendar = env.calendar(node, node.step.kinds)
        for m in np.flatnonzero(node.alive).tolist():
            times = calendar.member_reports(m)
            if len(times):
                env.show(node, m, times)
    return inputs[0]
