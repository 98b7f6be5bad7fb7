"""The operator function of each step: the one table between plan and operators.

Steps that are not in the table are evaluated where rows are read (``plan/execution/leaves``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from levada.core.frame import Frame
from levada.errors import ExcessError
from levada.operators.aggregation.incremental_group_by import running
from levada.operators.aggregation.multiplicity import rexcept, tally
from levada.operators.aggregation.panes import panes
from levada.operators.aggregation.report_group_by import rgroup
from levada.operators.operator_context import Inputs, Operator, OperatorContext
from levada.operators.reporting.order_and_distinct import distinct, number, order
from levada.operators.reporting.path_closure import closure
from levada.operators.reporting.ranges.range_relation_to_stream import ranged_changes
from levada.operators.reporting.relation_to_stream import changes, event_deltas, net_changes
from levada.operators.reporting.report import report
from levada.operators.reporting.report_join import arranged_report_join, report_join
from levada.operators.reporting.results_at_reports import rows_at_due_reports
from levada.operators.reporting.snapshot import snapshot
from levada.operators.row_limit import attribute_to_query
from levada.operators.rows.compensation_filter import by_window, pick
from levada.operators.rows.filter_extend import emit, extend, filter_, hold, union
from levada.operators.windowed.adaptive_join import adaptive, adaptive_in_pieces
from levada.operators.windowed.arranged_join import (
    arrange,
    arrange_distinct,
    arranged_join,
    arranged_join_in_pieces,
    relaxed_static,
)
from levada.operators.windowed.count_window import count_window, narrow, select
from levada.operators.windowed.deduplicate import find_occurrences
from levada.operators.windowed.last_rows import last_rows, recent_in_pieces
from levada.operators.windowed.multiway_join import multiway, multiway_in_pieces
from levada.operators.windowed.replicated_join import linked_in_pieces, replicated_join
from levada.operators.windowed.row_numbers import instants, number_rows
from levada.operators.windowed.session_window import session
from levada.operators.windowed.shared_join_side import (
    arrange_stream,
    relaxed_stream,
    stream_join,
    stream_join_in_pieces,
)
from levada.operators.windowed.static_input import answer_once
from levada.operators.windowed.subquery_window import rows_in_window
from levada.operators.windowed.user_operator import user_operator
from levada.operators.windowed.windowed_join import join, join_in_pieces
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.steps import Step

OPERATORS: dict[type[Step], Operator] = {
    # rows with event times
    s.Occur: find_occurrences,
    s.Hold: hold,
    s.Arrange: arrange,
    s.Join: join,
    s.ArrangeDistinct: arrange_distinct,
    s.ArrangedJoin: arranged_join,
    s.ArrangeStream: arrange_stream,
    s.RelaxedStatic: relaxed_static,
    s.RelaxedStream: relaxed_stream,
    s.StreamJoin: stream_join,
    s.MultiwayJoin: multiway,
    s.AdaptiveJoin: adaptive,
    s.LinkedJoin: replicated_join,
    s.CountWindow: count_window,
    s.UserOperator: user_operator,
    s.Numbered: number_rows,
    s.Instants: instants,
    s.Narrow: narrow,
    s.Recent: last_rows,
    s.Session: session,
    s.SubqueryWindow: rows_in_window,
    s.StaticSubplan: answer_once,
    s.Select: select,
    # any rows
    s.Filter: filter_,
    s.Pick: pick,
    s.ByWindow: by_window,
    s.Extend: extend,
    s.Union: union,
    # the border
    s.Report: report,
    s.Panes: panes,
    s.Changes: changes,
    s.RangedChanges: ranged_changes,
    s.Deltas: event_deltas,
    # rows of reports
    s.ReportJoin: report_join,
    s.ArrangedReportJoin: arranged_report_join,
    s.RGroup: rgroup,
    s.RDistinct: distinct,
    s.RExcept: rexcept,
    s.ROrder: order,
    s.RNumber: number,
    s.Closure: closure,
    # changes
    s.Running: running,
    s.Multiplicity: tally,
    s.Net: net_changes,
    s.Snapshot: snapshot,
    s.Standing: rows_at_due_reports,
    s.Emit: emit,
}


IN_PIECES: dict[type[Step], Callable[[PlanNode[Any], Inputs, OperatorContext], Iterator[Frame]]] = {
    s.Join: join_in_pieces,
    s.ArrangedJoin: arranged_join_in_pieces,
    s.StreamJoin: stream_join_in_pieces,
    s.MultiwayJoin: multiway_in_pieces,
    s.AdaptiveJoin: adaptive_in_pieces,
    s.LinkedJoin: linked_in_pieces,
    s.Recent: recent_in_pieces,
}
"""Operators that may make many rows of few, and yield them a part at a time."""


def evaluate(node: PlanNode, inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The new output rows of a node, from its inputs' new rows and its state. Raises
    ``ExcessError``, which names the node.
    """
    env.pool.spent.turn = node.id
    try:
        return OPERATORS[type(node.step)](node, inputs, env)
    except ExcessError as error:
        raise attribute_to_query(error, node, inputs) from None
