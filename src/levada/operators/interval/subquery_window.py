"""What a query within the query reports, as rows with event times: content of a window of the query
that reads it.

Of a stream each reported row is an element at the time of its report. Of a relation the changes
become versions (``windows/versions``): a row that begins and ends within an epoch knows its end;
one that ends later is ended by an equal row of weight -1, the way of count windows
(``operators/interval/count_window``). Rows are equal if they agree in all that is read of them.
Cost: none but the columns; of a relation a sort of them.
"""

from __future__ import annotations

from levada.model import columns as col
from levada.model.frame import Frame
from levada.operators.env import Env, Inputs
from levada.plan.sealed import steps as s
from levada.plan.sealed.plan import PlanNode
from levada.windows.state.cancel import whole_key
from levada.windows.versions import versions


def lift(node: PlanNode[s.SubqueryWindow], inputs: Inputs, env: Env) -> Frame | None:
    """Report rows as rows of the node's window."""
    (frame,) = inputs
    if frame is None:
        return None
    columns = {n: c for n, c in frame.columns.items() if n not in ("r", "w")}
    columns[col.least(0)] = frame["r"]
    if not node.step.weighted:
        return Frame(columns, frame.n)
    columns["w"] = frame["w"]
    return versions(Frame(columns, frame.n), whole_key(frame, {"r", "w"}))
