"""DISTINCT, ORDER BY with OFFSET and LIMIT on the rows of a report (SPARQL 1.1, 15 and 18.5). The
rows that LIMIT shows of a report are among the first rows of the tasks that have some, since the
order is the same everywhere (``plan/execution``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.core.frame import Frame
from levada.core.row_ranges import place_in_segment, starts_segment
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.expressions import evaluate, order_rows
from levada.operators.expressions.term_values import broadcast
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows.filter_extend import scope
from levada.operators.rows.route_rows import key_of, with_report
from levada.operators.rows.term_columns import column
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode


def distinct(node: PlanNode[s.RDistinct], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Equal rows of a report once."""
    (frame,) = inputs
    if frame is None:
        return None
    key = with_report(key_of(frame, range(len(node.layout.slots))), frame)
    _, first = group(*key)
    return frame.take(first)


def order(node: PlanNode[s.ROrder], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Rows in order per (member, report), ties by the terms' texts; then OFFSET and LIMIT."""
    step, (frame,) = node.step, inputs
    if frame is None:
        return None
    if step.in_order:
        ordered = frame.take(np.lexsort((np.arange(frame.n), frame["r"], frame["op"])))
    else:
        ordered = _order_frame(node, frame, env.pool)
    return _cut(ordered, step.offset, step.limit)


def first_rows(node: PlanNode[s.ROrder], frame: Frame, pool: TermLookup, most: int) -> Frame:
    """Returns the first rows of each (member, report). A row of another task that comes before one
    of these takes its place. Rows that tie to the end are equal in all shown columns.
    """
    return _cut(_order_frame(node, frame, pool), 0, most)


def _order_frame(node: PlanNode[s.ROrder], frame: Frame, pool: TermLookup) -> Frame:
    step = node.step
    values_scope = scope(node, frame, pool)
    keys = [broadcast(evaluate(e, values_scope), frame.n) for e, _ in step.keys]
    texts = [column(frame, i, pool).texts() for i in range(len(node.layout.slots))]
    ranked = (
        order_rows(keys, [d for _, d in step.keys], texts) if keys else _by_text(texts, frame.n)
    )
    op, r = frame["op"][ranked], frame["r"][ranked]
    return frame.take(ranked[np.lexsort((np.arange(frame.n), r, op))])


def _by_text(texts: Sequence[pl.Series], n: int) -> npt.NDArray[np.int64]:
    """Orders rows by the texts alone, without sort keys: a LIMIT takes the same rows however they
    arrive.
    """
    ranks = [t.fill_null("").rank("dense").to_numpy() for t in reversed(texts)]
    return np.lexsort(ranks) if ranks else np.arange(n)


def _cut(rows: Frame, offset: int, limit: int | None) -> Frame:
    """Returns rows offset .. offset + limit of each (member, report); the input is sorted by
    these.
    """
    if not rows.n or (offset == 0 and limit is None):
        return rows
    place = place_in_segment(starts_segment(rows["op"], rows["r"]))
    keep = place >= offset
    if limit is not None:
        keep &= place < offset + limit
    return rows.where(keep)
