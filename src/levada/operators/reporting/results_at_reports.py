"""Incrementally maintained results as report rows: whole results of groups and DISTINCT over
windows that report on every change.

Such windows report at every change of any element in them, and a row counts at all reports of its
stay; but a group changes only where its own rows begin or end. So a row of the result begins with a
change and ends with another, and exists at the reports between these, which ``due_reports`` lists
from all elements. (In levels that read a subquery, the windows' rows determine the reports:
``snapshot``.)

The state is the current result. The changes of a row are in the partition of its group, so nothing
moves. Cost: the changes and the current result, in epochs with reports, and the output rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Ints, Longs
from levada.core.event_time import Times
from levada.core.frame import Frame, concat
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.reporting import report_buffer
from levada.operators.reporting.snapshot import Lifetimes, remember
from levada.operators.state.state_parts import State
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode


def rows_at_due_reports(
    node: PlanNode[s.Standing], inputs: Inputs, env: OperatorContext
) -> Frame | None:
    """Returns the rows that exist at each due report."""
    state, (new,) = env.state, inputs
    calendar = env.calendar(node, node.step.kinds)
    key = f"{node.id}.live"
    if new is None and not (calendar.any_due and state.pieces(key)):
        return None
    buffered = report_buffer.recall(state, key)
    rows = concat([f.visible() for f in (*buffered, *_changes(new))])
    rows = rows if node.alive.all() else rows.where(node.alive[rows["op"]])
    lifetimes = Lifetimes.from_changes(node, rows)
    there = np.flatnonzero(lifetimes.count > 0)
    at, r = calendar.pairs(
        rows["op"][lifetimes.row[there]],
        lifetimes.start[there],
        lifetimes.until[there],
        enumerated=True,
    )
    at = there[at]
    copies = lifetimes.count[at]
    if (copies != 1).any():
        at, r = np.repeat(at, copies), np.repeat(r, copies)
    if new is not None or rows.n != sum(f.n for f in buffered):
        remember(node, state, key, lifetimes.remaining_rows(rows), env.pool)
    return rows.take(lifetimes.row[at]).drop("w").with_(r=r) if len(at) else None


def _changes(new: Frame | None) -> list[Frame]:
    return [] if new is None else [new.with_(w=new["w"].astype(np.int64))]


def pending_changes(
    node: PlanNode[s.Standing], state: State, new: Sequence[Frame]
) -> tuple[Ints, Times, Longs]:
    """Returns member, instant and weight of all changes of the current result: the previous result,
    and new changes.
    """
    frames = [state.rows_of_partition(p, state.frame(p)) for p in state.pieces(f"{node.id}.live")]
    op = np.concatenate([np.empty(0, np.int32), *(f["op"] for f in (*frames, *new))])
    at = [np.empty(0, np.int64), *(f[col.BEGIN] for f in frames), *(f["r"] for f in new)]
    w = [np.empty(0, np.int64), *(f["w"].astype(np.int64) for f in (*frames, *new))]
    return op, np.concatenate(at), np.concatenate(w)
