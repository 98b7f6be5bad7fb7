"""What a query within the query reports, as rows with event times: content of a window of the query
that reads it.

Of a stream each reported row is an element at the time of its report. Of a relation the changes
become rows that never leave by time, ended by equal rows of weight -1: the way of count windows
(``operators/interval/count_window``). Cost: none but the columns.
"""

from __future__ import annotations

from levada.model.frame import Frame
from levada.plan.sealed import steps as s
from levada.plan.sealed.plan import PlanNode


def lift(node: PlanNode, frame: Frame) -> Frame:
    """Report rows as rows of the node's window."""
    step = node.step
    assert isinstance(step, s.Lift), "a lift"
    columns = {n: c for n, c in frame.columns.items() if n not in ("r", "w")}
    columns["lo0"] = frame["r"]
    if step.weighted:
        columns["w"] = frame["w"]
    return Frame(columns, frame.n)
