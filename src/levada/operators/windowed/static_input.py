"""Kept results of static data alone: answers that are evaluated once, and right sides that are the
same at every report.

``answer_once`` turns the answer of a part that reads no window, whose rows are of the timeless
report, into rows of static data. Where these may be replaced the answer is remembered, and a new
one is passed on as its difference: with weights, at the instant of the replacement. ``lasting_run``
keeps the right side of a join of report rows as one run; static rows come in one epoch, whole.

Cost: ``lasting_run`` by the new left rows and their matches; ``answer_once`` nothing, but at a
replacement both answers.
"""

from __future__ import annotations

import numpy as np

from levada.core.event_time import MAX, MIN, Times
from levada.core.frame import Frame, concat
from levada.kernels.keyed.hash_groups import group
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows import route_rows as r
from levada.operators.state import join_state
from levada.operators.state.state_parts import State
from levada.operators.windowing.zset import consolidate, expand
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode

ALWAYS = MIN + 1  # the event time of what was there before all elements


def answer_once(
    node: PlanNode[s.StaticSubplan], inputs: Inputs, env: OperatorContext
) -> Frame | None:
    """New answers of the members that are answered in this epoch."""
    step, state, (frame,) = node.step, env.state, inputs
    if not step.weighted:
        return None if frame is None else _plain(frame)
    answered = env.due_members(node)
    if not answered.any():
        return None
    key = f"{node.id}.once"
    now = _plain(r.empty(node.input_layouts[0]) if frame is None else frame)
    known = concat([now.slice(0, 0), *(state.whole(p) for p in state.pieces(key))])
    reread = answered[known["op"]]
    left = concat([known.where(~reread & node.alive[known["op"]]), now])
    state.replace(key, [state.put({"": left}, left.n, (MAX, 0, 0))] if left.n else [])
    changed = _difference(node, known.where(reread), now)
    return changed.with_(lo0=_instants(node, env)[changed["op"]]) if changed.n else None


def _instants(node: PlanNode, env: OperatorContext) -> Times:
    """Returns for each member the instant from which on this epoch's static data is valid: always,
    for a member that reads it first.
    """
    first = node.fresh if env.statics.first else np.zeros(len(node.members), np.bool_)
    instant = env.statics.instant
    return np.where(first, ALWAYS, ALWAYS if instant is None else instant)


def _plain(rows: Frame) -> Frame:
    return rows.drop("r", "w")


def _difference(node: PlanNode, before: Frame, now: Frame) -> Frame:
    """Returns the rows that are new or more frequent now, with +1, and those that are gone or less
    frequent, with -1; each as often as the difference.
    """
    both = concat([before, now])
    sign = np.repeat(np.array([-1, 1], np.int8), [before.n, now.n])
    _, first, change = consolidate(*r.key_of(both, range(len(node.layout.slots))), sign)
    return expand(both.take(first), change)


def lasting_run(
    node: PlanNode[s.ReportJoin], state: State, frame: Frame | None
) -> join_state.Run | None:
    """Returns the right side, with the rows added to it so far."""
    step = node.step
    key = f"{node.id}.lasting"
    if frame is not None and frame.n:
        if not step.kind.returns_pairs and step.condition is None:  # each is met once
            slots = (*step.right, *(at for _, at in step.fills))
            frame = frame.take(group(*r.key_of(frame, slots))[1])
        begin, end = np.zeros(frame.n, np.int64), np.ones(frame.n, np.int64)
        keyed = join_state.with_run_columns(frame, r.key_of(frame, step.right), begin, end, None)
        join_state.append_to_one_run(state, key, join_state.build_run(keyed), node.alive)
    return join_state.single_run(state, key)
