"""The reports of a subquery as rows with event times: the content of a window of the query that
reads it.

For a stream each reported row is an element at the time of its report. For a relation the changes
become versions (``windowing/row_versions``): a row that begins and ends within an epoch knows its
end; one that ends later is ended by an equal row of weight -1, as in count windows
(``windowed/count_window``). Rows are equal if they agree in all columns that are read.

Reports that were put off (``reporting/nonempty_windows``) come after those of the windows that read
them, which is too late for these: then the query is suspended. Cost: only the columns and a
comparison, and for a relation a sort of them.
"""

from __future__ import annotations

import numpy as np

from levada.core import column_names as col
from levada.core.event_time import WindowKind
from levada.core.frame import Frame
from levada.errors import ExcessError
from levada.kernels.time.window_intervals import interval
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.state.retractions import whole_key
from levada.operators.windowing.row_versions import versions
from levada.operators.windowing.window_intervals import watermark
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode


def rows_in_window(
    node: PlanNode[s.SubqueryWindow], inputs: Inputs, env: OperatorContext
) -> Frame | None:
    """Report rows as rows of the node's window. Raises ``ExcessError``."""
    (frame,) = inputs
    if frame is None:
        return None
    _check_in_time(node, frame, env)
    columns = {n: c for n, c in frame.columns.items() if n not in ("r", "w")}
    columns[col.least(0)] = frame["r"]
    if not node.step.weighted:
        return Frame(columns, frame.n)
    columns["w"] = frame["w"]
    return versions(Frame(columns, frame.n), whole_key(frame, {"r", "w"}))


def _check_in_time(node: PlanNode[s.SubqueryWindow], frame: Frame, env: OperatorContext) -> None:
    """No row begins to count where the window that reads it has reported already."""
    w = watermark(node.windows, env.progress.old)[frame["op"]]
    old = frame.where(frame["r"] <= w)
    if not old.n:
        return
    table, op, r, w = node.windows, old["op"], old["r"], w[frame["r"] <= w]
    begin, end = interval(*table.params(0), table.start[0], op, r, r, np.empty(0, np.int64))
    closes = table.kind[0][op] == WindowKind.CLOSE_OPEN
    late = op[(begin < end) & ((begin < w) | ((begin == w) & closes))]
    if len(late):
        raise ExcessError(
            "At the end of its streams it has more reports than one epoch makes, and a query "
            "within it, of which some windows never empty, says too late how far they go: its last "
            "reports may lack rows.",
            node=node.id,
            member=int(late[0]),
            limit="reports",
        )
