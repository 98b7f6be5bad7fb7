"""The nodes of a stage of a plan, in the order in which a task evaluates them, and what follows
from them alone: found once a plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from levada.checkpoint.epoch_context import load_plan
from levada.core.event_time import MAX, MIN, WindowKind
from levada.core.frame import Frame
from levada.core.frozen import frozen
from levada.operators.windowing.report_times import only_closes
from levada.operators.windowing.window_intervals import latest_end
from levada.plan.execution.plan import Plan, PlanNode
from levada.plan.execution.report_schedules import Families, Schedule
from levada.plan.execution.window_table import WindowTable


@frozen
class Nodes:
    """The nodes of one stage, inputs before consumers; those that may act without rows.

    ``timed`` are those below every report of the stage, ``reported`` the others. ``schedules``: the
    distinct ones of nodes whose reports are enumerated, and their families. ``lag``: how long after
    it has left its windows a row may still be said to have ended, since the next periodic report is
    the one that says it. ``closing``: those whose reports are made as soon as the watermark reaches
    them, and not when it has passed them.
    """

    timed: tuple[PlanNode, ...]
    reported: tuple[PlanNode, ...]
    due: frozenset[int]
    schedules: tuple[Schedule, ...]
    families: Families
    lag: int
    closing: frozenset[int]


@lru_cache(maxsize=8)
def nodes_of(plan: str, stage: int) -> Nodes:
    """The nodes of a stage of a plan, found once."""
    sealed = load_plan(plan)
    every = tuple(sealed.nodes[n] for n in sealed.order if sealed.nodes[n].stage == stage)
    listed = tuple(n for n in every if n.step.needs_reports)
    schedules = tuple(dict.fromkeys(d for n in listed for d in n.schedules.distinct))
    above = _reporting_nodes(every)
    reported = tuple(n for n in every if n.id in above)
    return Nodes(
        tuple(n for n in every if n.id not in above),
        reported,
        frozenset(n.id for n in every if n.step.due),
        schedules,
        Families.from_schedules(schedules),
        max(map(_period, every), default=0),
        _closing(sealed, reported),
    )


def _reporting_nodes(nodes: Sequence[PlanNode]) -> frozenset[int]:
    """The nodes of a stage that say something at reports of windows, and what is above these."""
    numbers: set[int] = set()
    for node in nodes:
        at_reports = node.layout.report and node.step.reports_of and not node.step.by_changes
        if at_reports or not numbers.isdisjoint(node.inputs):
            numbers.add(node.id)
    return frozenset(numbers)


def _closing(plan: Plan, nodes: Sequence[PlanNode]) -> frozenset[int]:
    """Those of these nodes all of whose reports are closes of windows with bounds [), or of a
    clock.
    """

    def kinds(node: PlanNode) -> tuple[WindowKind, ...]:
        below = (kinds_below for n in node.inputs if (kinds_below := kinds(plan.nodes[n])))
        return node.step.reports_of or next(below, ())

    return frozenset(n.id for n in nodes if only_closes(kinds(n)))


def _period(node: PlanNode) -> int:
    """The longest period of the node's members, if it says at periodic reports what has ended."""
    clock = node.step.clock_of_ends
    return 0 if clock < 0 else int(node.windows.step[clock].max(initial=0))


def ends_at(node: PlanNode, at: int, frame: Frame) -> int:
    """The greatest end of rows of an input; MAX where it does not follow from their times."""
    if not frame.n:
        return MIN
    table = node.compute_once(_windows_of, at)
    return MAX if table is None else latest_end(frame, node.input_layouts[at], table)


def _windows_of(node: PlanNode, at: int) -> WindowTable | None:
    """The windows of the rows of an input, if these say when the rows end."""
    step, width = node.step, len(node.input_layouts[at].windows)
    places = step.row_windows(at, width) if step.ends_by_time else None
    return None if places is None else node.windows.pick(places)
