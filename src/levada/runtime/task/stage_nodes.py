"""Lists the nodes of a stage of a plan in the order of evaluation, with facts that follow from them
alone; computed once a plan.
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
from levada.runtime.task.report_batches import Expands, expanding


@frozen
class Nodes:
    """The nodes of one stage, inputs before consumers, and those that may act without rows.

    ``timed`` are those below every report of the stage, ``reported`` the others. ``schedules``: the
    distinct schedules of nodes with listed reports, and their families. ``lag``: how long after a
    row has left its windows a node may still report its end, since the next periodic report does
    so. ``closing``: nodes whose reports are made as soon as the watermark reaches them, not when it
    has passed them. ``expanding``: those of ``reported`` that have rows once for every report.
    """

    timed: tuple[PlanNode, ...]
    reported: tuple[PlanNode, ...]
    due: frozenset[int]
    schedules: tuple[Schedule, ...]
    families: Families
    lag: int
    closing: frozenset[int]
    expanding: tuple[Expands, ...]


@lru_cache(maxsize=8)
def nodes_of(plan: str, stage: int) -> Nodes:
    """Returns the nodes of a stage of a plan; computed once."""
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
        tuple(node for n in reported if (node := expanding(n)) is not None),
    )


def _reporting_nodes(nodes: Sequence[PlanNode]) -> frozenset[int]:
    """Returns the nodes of a stage that act at reports of windows, and the nodes above these."""
    numbers: set[int] = set()
    for node in nodes:
        at_reports = node.layout.report and node.step.reports_of and not node.step.by_changes
        if at_reports or not numbers.isdisjoint(node.inputs):
            numbers.add(node.id)
    return frozenset(numbers)


def _closing(plan: Plan, nodes: Sequence[PlanNode]) -> frozenset[int]:
    """Returns those nodes all of whose reports are closes of windows with bounds [), or of a
    clock.
    """

    def kinds(node: PlanNode) -> tuple[WindowKind, ...]:
        below = (kinds_below for n in node.inputs if (kinds_below := kinds(plan.nodes[n])))
        return node.step.reports_of or next(below, ())

    return frozenset(n.id for n in nodes if only_closes(kinds(n)))


def _period(node: PlanNode) -> int:
    """Returns the longest period of the node's members, if it reports ended rows at periodic
    reports.
    """
    clock = node.step.clock_of_ends
    return 0 if clock < 0 else int(node.windows.step[clock].max(initial=0))


def ends_at(node: PlanNode, at: int, frame: Frame) -> int:
    """Returns the largest end of rows of an input; MAX if it does not follow from their times."""
    if not frame.n:
        return MIN
    table = node.compute_once(_windows_of, at)
    return MAX if table is None else latest_end(frame, node.input_layouts[at], table)


def _windows_of(node: PlanNode, at: int) -> WindowTable | None:
    """Returns the windows of the rows of an input, if these determine the end of the rows."""
    step, width = node.step, len(node.input_layouts[at].windows)
    places = step.row_windows(at, width) if step.ends_by_time else None
    return None if places is None else node.windows.pick(places)
