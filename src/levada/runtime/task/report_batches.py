"""Makes the reports of an epoch in several steps, so that the rows expanded at a time are bounded.

A window that reports on change is read once for each report: rows times reports, which may not fit
into memory for a whole epoch. If they are many, the operators above the border process the reports
of the epoch in steps, each as if the watermark had advanced only so far. Smaller epochs would have
the same results.

Cost: counting the pairs, by two sorts of the window's rows, only if rows times instants exceed
``MOST_PAIRS``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Ints, Longs
from levada.core.event_time import MAX, MIN, Times, WindowKind
from levada.core.frame import Frame, concat
from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.operators.operator_context import OperatorContext
from levada.operators.reporting import report, results_at_reports
from levada.operators.reporting.due_reports import Calendar
from levada.operators.state.state_parts import State
from levada.operators.windowing.element_times import NOTHING
from levada.operators.windowing.report_times import WatermarkProgress
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode

Inputs = dict[tuple[int, int], list[Frame]]  # rows by node and input
Partials = dict[int, list[Frame]]  # by node

MOST_PAIRS = register(f"{__name__}.MOST_PAIRS", 1_000_000)
"""How many pairs of a row and a report a step has at most, but for those of one report."""


@frozen
class ReportBatch:
    """A part of an epoch's progress: up to the instant ``until``, which no watermark exceeds (MAX:
    all of it).
    """

    progress: WatermarkProgress
    until: int = MAX

    def is_made(self, rows: Frame, *, closing: bool) -> npt.NDArray[np.bool_]:
        """Returns a mask of the report rows whose reports are made by then. ``closing``: a report
        is made when the watermark reaches it.
        """
        due: npt.NDArray[np.bool_] = rows["r"] <= self.until if closing else rows["r"] < self.until
        return due if self.until < MAX else np.ones(rows.n, np.bool_)


class BufferedReports:
    """The report rows of other stages, and partials of reports, until the step that makes their
    reports.
    """

    def __init__(self, nodes: Sequence[PlanNode], inputs: Inputs, partials: Partials) -> None:
        there = [
            (n.id, i) for n in nodes for i, layout in enumerate(n.input_layouts) if layout.report
        ]
        self.rows = {at: concat(inputs.pop(at)) for at in there if at in inputs}
        reporting = [n.id for n in nodes if any("r" in f for f in partials.get(n.id, ()))]
        self.partials = {node: concat(partials.pop(node)) for node in reporting}

    def take(self, step: ReportBatch, closing: Collection[int], inputs: Inputs) -> Partials:
        """Adds the rows of the step to ``inputs``, and returns its partials."""
        for (node, at), rows in self.rows.items():
            is_made = step.is_made(rows, closing=node in closing)
            if is_made.any():
                inputs[node, at] = [rows.where(is_made)]
            self.rows[node, at] = rows.where(~is_made)
        taken_partials = {}
        for node, partials in self.partials.items():
            is_made = step.is_made(partials, closing=node in closing)
            taken_partials[node] = [partials.where(is_made)]
            self.partials[node] = partials.where(~is_made)
        return taken_partials


Expands = PlanNode[s.Report] | PlanNode[s.Standing]


def expanding(node: PlanNode) -> Expands | None:
    """Returns this node, if it has rows once for every report at which they count."""
    return node.as_step(s.Report) or node.as_step(s.Standing)


def in_steps(
    nodes: Sequence[PlanNode],
    reports: Iterable[tuple[Expands, Sequence[Frame]]],
    env: OperatorContext,
) -> list[ReportBatch]:
    """Divides the epoch's progress into steps, for these nodes. ``reports``: the expanding ones,
    with their new rows.
    """
    pairs_of_nodes = [
        pairs for node, new in reports if (pairs := _pairs(node, new, env)) is not None
    ]
    if not pairs_of_nodes:
        return [ReportBatch(env.progress)]
    times, at = np.unique(
        np.concatenate([times for times, _ in pairs_of_nodes]), return_inverse=True
    )
    counts = np.zeros(len(times), np.int64)
    np.add.at(counts, at, np.concatenate([counts for _, counts in pairs_of_nodes]))
    step = np.maximum(np.cumsum(counts) - 1, 0) // MOST_PAIRS
    instants = times[:-1][step[1:] != step[:-1]] + 1
    return _cut(env.progress, instants[instants <= _last_step(nodes, env)])


def _last_step(nodes: Sequence[PlanNode], env: OperatorContext) -> int:
    """Returns the latest beginning of the last step. At the end of its streams, a window that never
    empties has no report after the last element, and no empty one. Only the last step knows that
    the streams have ended, so it has all later reports.
    """
    endless = [n for n in nodes if _never_empties(n)]
    streams = {i for n in endless for some in n.schedules.distinct for i in some.streams}
    progress = env.progress
    has_ended = progress.new >= MAX
    has_ended = has_ended if progress.ended is None else has_ended | progress.ended
    times = [env.element_times.get(i, NOTHING).ts for i in streams if has_ended[i]]
    return min((int(ts[-1]) if len(ts) else MIN for ts in times), default=MAX)


def _never_empties(node: PlanNode) -> bool:
    kinds: Sequence[WindowKind] = getattr(node.step, "kinds", ())
    shows_empty = any(some.show_empty for some in node.schedules.distinct)
    return shows_empty or any(kind.endless for kind in kinds)


def _cut(progress: WatermarkProgress, instants: Times) -> list[ReportBatch]:
    """Cuts progress at these instants."""
    marks = [np.clip(instant, progress.old, progress.new) for instant in instants.tolist()]
    parts = zip(
        [progress.old, *marks], [*marks, progress.new], [*instants.tolist(), MAX], strict=True
    )
    # before the last one more elements may arrive
    return [
        ReportBatch(WatermarkProgress(old, new, progress.ended if until >= MAX else None), until)
        for old, new, until in parts
    ]


def _pairs(node: Expands, new: Sequence[Frame], env: OperatorContext) -> tuple[Times, Longs] | None:
    """Counts the rows at each due report of a node's members; None if they are certainly few."""
    step, state = node.step, env.state
    rows = sum(f.n for f in new) + sum(p.rows for p in state.pieces(f"{node.id}.live"))
    # each row begins and ends to count
    instants = 2 * sum(len(element_times.ts) for element_times in env.element_times.values())
    if not step.enumerated or not step.kinds or rows * instants <= MOST_PAIRS:
        return None
    calendar = env.calendar(node, step.kinds)
    if not calendar.any_due or (isinstance(step, s.Report) and step.instant):
        return None
    op, at, weight = _changes(node, state, new)
    of = calendar.schedules[op]
    counts = [
        _counts(calendar, number, at[of == number], weight[of == number])
        for number in np.unique(of).tolist()
    ]
    return (
        (np.concatenate([t for t, _ in counts]), np.concatenate([n for _, n in counts]))
        if counts
        else None
    )


def _changes(node: Expands, state: State, new: Sequence[Frame]) -> tuple[Ints, Times, Longs]:
    """Returns the member and instant at which each row begins to count, or ends; with signed
    weights.
    """
    if (standing := node.as_step(s.Standing)) is not None:
        return results_at_reports.pending_changes(standing, state, new)
    op, begin, end = report.pending_intervals(cast("PlanNode[s.Report]", node), state, new)
    one = np.ones(len(op), np.int64)
    return np.tile(op, 2), np.concatenate([begin, end]), np.concatenate([one, -one])


def _counts(calendar: Calendar, schedule: int, at: Times, weight: Longs) -> tuple[Times, Longs]:
    reports = calendar.reports(schedule)
    times = reports.times[reports.nonempty]
    order = np.argsort(at)
    total = np.concatenate([[0], np.cumsum(weight[order])])
    return times, total[np.searchsorted(at[order], times, side="right")]
