"""Routes rows of relaxed operators to picks, and counts them.

    to a pick          the rows of each of its members
    to a report        with picks above it: the rows that any of these wants, once
    to IStreams        of windows that differ in ranges: all rows, once
    to a relaxed join  the rows that any pick above wants

No query may take more than its limit. The pairs that relaxed joins make are counted, to decide
whether sharing them pays (``rows/cardinality_counters``).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from levada.core.array_types import Longs
from levada.core.frame import Frame, concat
from levada.core.query_limits import QueryLimits
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.reporting.deduplicated_reports import is_picked, readers_of, select_reported
from levada.operators.reporting.ranges.range_families import RangeCells, families_of
from levada.operators.reporting.shared_result_cells import Cells, cells_of
from levada.operators.row_limit import most_of, most_rows
from levada.operators.rows.cardinality_counters import SharedJoinCounters
from levada.operators.rows.compensation_filter import route
from levada.operators.rows.filter_extend import keep_rows
from levada.operators.rows.route_rows import fan_out, project_for_consumer, without_fan
from levada.operators.rows.shared_input_filter import drop_unwanted
from levada.plan.execution import steps as s
from levada.plan.execution.joins import is_arranged
from levada.plan.execution.plan import Consumer, Plan, PlanNode
from levada.plan.execution.sharing_demand import SharingDemand, sharing_demand_of

NO_ROWS = Frame({}, 0)


class CompensationRouter:
    """The picks of a plan, over the rows of one task."""

    def __init__(self, plan: Plan, pool: TermLookup, limits: QueryLimits) -> None:
        self.plan, self.pool, self.limits = plan, pool, limits
        self.met = SharedJoinCounters()
        self._counts: dict[int, Longs] = {}  # of rows by picks and their members
        self._reports: dict[int, int] = {}  # of rows by reports of which there are picks

    def cells(self, after: Consumer) -> Cells | None:
        """Returns the cells in which results go to a reader of picks."""
        cells = cells_of(self.plan, after.node, self.pool.seed)
        return cells if isinstance(cells, Cells) else None

    def route_ranges(
        self, node: PlanNode, out: Frame, edges: tuple[Consumer, Consumer]
    ) -> Frame | None:  # fmt: skip
        """Returns the rows of a join for readers whose windows differ in ranges, once for all of
        these; None if there are no such readers. ``edges``: to the picks, and from there. Raises
        ``ExcessError``.
        """
        consumer, after = edges
        target = self.plan.nodes[after.node].as_step(s.RangedChanges)
        picks = self.plan.nodes[consumer.node].as_step(s.Pick)
        if target is None or picks is None:
            return None
        families = families_of(target, sharing_demand_of(self.plan))
        rows = project_for_consumer(out, without_fan(consumer), node.layout)
        of = families.of_number[rows["op"]]
        if node.as_step(s.Join) is not None:
            self.met.add_output(node.id, rows, families.sizes[of])
        longest = families.longest[of[of >= 0]]
        routed = rows.where(of >= 0).with_(op=longest)
        many = self._reports.get(target.id, 0) + routed.n
        self._reports[target.id] = many
        if many > most_rows(target, self.limits):
            raise most_of(target, np.bincount(longest), self.limits)
        return project_for_consumer(
            keep_rows(routed, None, picks.step.kept, picks.layout), without_fan(after), picks.layout
        )

    def in_ranges(self, node: PlanNode, out: Frame, consumer: Consumer) -> Frame | None:
        """Returns the result rows of intervals of ranges; None if the consumer is something
        else.
        """
        cells = cells_of(self.plan, consumer.node, self.pool.seed)
        if not isinstance(cells, RangeCells):
            return None
        celled = out["op"] >= len(node.members)
        projected = project_for_consumer(out.where(celled), without_fan(consumer), node.layout)
        parts = [projected.with_(op=cells.local_numbers(projected["op"]))]
        if not celled.all():
            edge = replace(consumer, fan=cells.readers)
            parts.append(project_for_consumer(out.where(~celled), edge, node.layout))
        return concat(parts)

    def route_to_picks(
        self, node: PlanNode, out: Frame, consumer: Consumer, picks: PlanNode[s.Pick]
    ) -> Frame:
        """Returns and counts the rows of each pick, without the rows that no pick wants. Raises
        ``ExcessError``.
        """
        mixed = picks.compute_once(_has_mixed_windows, sharing_demand_of(self.plan))
        met = None if node.as_step(s.Join) is None else self.met
        picked = route(picks, consumer, out, node.layout, self.pool, mixed=mixed, met=met)
        if picks.layout.report:  # the report's input has been counted
            return picked
        counts = np.bincount(picked["op"], minlength=len(picks.members))
        before = self._counts.get(picks.id)
        self._counts[picks.id] = counts = counts if before is None else counts + before
        if int(counts.sum()) > most_rows(picks, self.limits):
            raise most_of(picks, counts, self.limits)
        return picked

    def route_to_report(self, node: PlanNode, out: Frame, consumer: Consumer) -> Frame | None:
        """Returns and counts the rows for a report with picks above it; None if the consumer is not
        such a report. Raises ``ExcessError``.
        """
        report = self.plan.nodes[consumer.node].as_step(s.Report)
        if report is None or not is_picked(self.plan, report):
            return None
        readers = readers_of(report, sharing_demand_of(self.plan), self.pool.seed)
        report_rows, rows, picks = select_reported(consumer, out, node.layout, readers, self.pool)
        if node.as_step(s.Join) is not None:
            self.met.add_output(node.id, rows, picks)
        self._reports[report.id] = many = self._reports.get(report.id, 0) + report_rows.n
        if many > most_rows(report, self.limits):
            raise readers.excess_error(report, rows, self.limits, self.pool)
        return report_rows

    def drop_unwanted_rows(self, frame: Frame, consumer: Consumer) -> Frame:
        """Drops the rows that the consumer, a relaxed join or set or a shared join side, does not
        need.
        """
        target, shares = self.plan.nodes[consumer.node], sharing_demand_of(self.plan)
        join, occurrences, relaxed_stream = (
            target.as_step(s.Join),
            target.as_step(s.Occur),
            target.as_step(s.RelaxedStream),
        )
        if (static := target.as_step(s.RelaxedStatic)) is not None:
            return drop_unwanted(static, 0, frame, shares, self.pool)
        if join is not None and join.step.relaxed:
            if is_arranged(join.step, consumer.input):  # read where it is
                return frame
            wanted_rows = drop_unwanted(join, consumer.input, frame, shares, self.pool)
            self.met.add_input(join.id, wanted_rows["op"])
            return wanted_rows
        if occurrences is not None and occurrences.step.relaxed:
            return drop_unwanted(occurrences, consumer.input, frame, shares, self.pool)
        if relaxed_stream is None:
            return frame
        wanted_rows = drop_unwanted(relaxed_stream, 0, frame, shares, self.pool)
        for edge in relaxed_stream.consumers:
            self.met.add_input(edge.node, fan_out(wanted_rows["op"], edge.fan)[1])
        return wanted_rows


def _has_mixed_windows(node: PlanNode, shares: SharingDemand) -> bool:
    return shares.has_mixed_windows(node.id)
