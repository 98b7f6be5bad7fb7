"""The end of queries: a report after a query's ``until`` is not a result (STREAMREUSE's lifetime of
a query, at event time).

Below the results nothing ends: operators are shared, and the driver removes a query once the
watermark of its streams has passed its end. Cost: one comparison for each frame of results, until
the first query of the plan ends.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from levada.core.event_time import MAX
from levada.core.frame import Frame
from levada.core.query_model import Form, Output
from levada.plan.execution.plan import Plan, PlanNode


def drop_unreported(plan: Plan, node: PlanNode, frame: Frame) -> Frame:
    """Drops result rows of an Emit node after the ends of their queries, and all rows of a muted
    Emit.
    """
    muted = [member for number, member in plan.muted if number == node.id]
    if muted:
        frame = frame.where(~np.isin(frame["op"], muted))
    if not frame.n or int(frame["r"].max()) <= plan.first_end:
        return frame
    members, each = np.unique(frame["op"], return_inverse=True)
    queries = [node.members.query_at(member) for member in members.tolist()]
    ends = np.array([_end(plan, query) for query in queries], np.int64)
    return frame.where(frame["r"] <= ends[each])


def shown_within(plan: Plan, shown: Mapping[str, list[int]]) -> dict[str, list[int]]:
    """Drops due reports after the ends of their queries, of queries that show empty reports."""
    return {
        query: [report for report in reports if report <= _end(plan, query)]
        for query, reports in shown.items()
        if not _says_changes(plan, query)
    }


def _says_changes(plan: Plan, name: str) -> bool:
    """Whether a query is an ASK that says its boolean where that is another one: a report that says
    nothing would say false.
    """
    query = plan.queries.get(name)
    if query is None or query.form is not Form.ASK:
        return False
    return query.output is not Output.RSTREAM


def _end(plan: Plan, name: str) -> int:
    query = plan.queries.get(name)
    return MAX if query is None else query.until
