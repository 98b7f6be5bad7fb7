"""The border between rows with event times and report rows: each row once for every report at which
it counts.

RStream's cost is its output. Between reports rows are only remembered. With weights (count windows)
equal rows of a report are netted first: each row is repeated as often as its weight says. A query
without windows has one report: all its rows come in the epoch that reads its static data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.event_time import TIMELESS, Times
from levada.core.frame import Frame, concat
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.reporting import report_buffer
from levada.operators.reporting.deduplicated_reports import check_few
from levada.operators.reporting.due_reports import Calendar
from levada.operators.rows.route_rows import key_of, with_report
from levada.operators.state.state_parts import State
from levada.operators.windowing.window_intervals import exact_interval
from levada.operators.windowing.zset import consolidate
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode


def report(node: PlanNode[s.Report], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """New rows and remembered ones at the due reports."""
    step, state, (frame,) = node.step, env.state, inputs
    calendar = env.calendar(node, step.kinds)
    if calendar.timeless:
        return None if frame is None else frame.with_(r=np.full(frame.n, TIMELESS, np.int64))
    key = f"{node.id}.live"
    new = None
    if frame is not None:
        new = report_buffer.rows_by_interval(
            frame, *exact_interval(frame, node.input_layouts[0], node.windows, step.rows)
        )
    rows = [] if not calendar.any_due else report_buffer.recall(state, key)
    if new is not None and new.n:
        rows.append(new)
        report_buffer.remember(state, key, report_buffer.rows_after(new, calendar.high))
    if calendar.any_due and not step.instant:
        check_few(node, calendar, rows, env)
    out = (
        [r for r in (_at_reports(f, step, calendar) for f in rows) if r.n]
        if calendar.any_due
        else []
    )
    report_buffer.forget(state, key, calendar.last_made)
    if not out:
        return None
    rows_at_reports = concat(out)
    return net_weights(rows_at_reports, node) if "w" in rows_at_reports else rows_at_reports


def pending_intervals(
    node: PlanNode[s.Report], state: State, new: Sequence[Frame]
) -> tuple[npt.NDArray[np.int32], Times, Times]:
    """Returns member, begin and end of all rows that may be at the due reports: remembered and new
    rows.
    """
    step = node.step
    frames = [state.rows_of_partition(p, state.frame(p)) for p in state.pieces(f"{node.id}.live")]
    spans = [(f["op"], f[col.BEGIN], f[col.END]) for f in frames]
    for f in new:
        begin, end = exact_interval(f, node.input_layouts[0], node.windows, step.rows)
        counts = begin < end
        spans.append((f["op"][counts], begin[counts], end[counts]))
    op = np.concatenate([np.empty(0, np.int32), *(op for op, _, _ in spans)])
    begin, end = (
        np.concatenate([np.empty(0, np.int64), *(span[i] for span in spans)]) for i in (1, 2)
    )
    return op, begin, end


def _at_reports(rows: Frame, step: s.Report, calendar: Calendar) -> Frame:
    if not rows.n:
        return Frame({**rows.columns, "r": np.empty(0, np.int64)}, 0)
    if step.instant:
        op, r = rows["op"], rows[col.BEGIN]
        at = np.flatnonzero((r > calendar.low[op]) & (r <= calendar.high[op]))
        r = r[at]
    else:
        at, r = calendar.pairs(rows["op"], rows[col.BEGIN], rows[col.END], step.enumerated)
    visible = rows.visible()
    return visible.take(at).with_(r=r)


def net_weights(rows: Frame, node: PlanNode) -> Frame:
    """Equal rows of one report by the sum of their weights: gone at 0, as often as it says else."""
    if (rows["w"] > 0).all():
        return rows.drop("w")
    key = with_report(key_of(rows, range(len(node.layout.slots))), rows)
    _, first, weights = consolidate(*key, rows["w"])
    assert (weights >= 0).all(), "no more copies leave than came"
    plain = rows.drop("w")
    return plain.take(np.repeat(first, weights))
