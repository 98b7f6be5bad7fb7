"""DISTINCT, ORDER BY with OFFSET and LIMIT, and numbers of rows, of the rows of a report (SPARQL
1.1, 15 and 18.5). The rows that LIMIT shows of a report are among the first rows of the tasks that
have some, since the order is the same everywhere (``plan/execution``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.core.array_types import Bools, Longs
from levada.core.frame import Frame
from levada.core.rdf_terms import Kind
from levada.core.row_ranges import place_in_segment, starts_segment
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.expressions import evaluate, order_rank, order_rows
from levada.operators.expressions.row_blocks import Result
from levada.operators.expressions.term_values import Column, broadcast
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows.filter_extend import scope
from levada.operators.rows.route_rows import key_of, with_report
from levada.operators.rows.term_columns import column, slot
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


def number(node: PlanNode[s.RNumber], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Rows with their number within the partition of a report, in the order of the keys."""
    step, (frame,) = node.step, inputs
    if frame is None or not frame.n:
        return frame
    keys = _sort_values(node, frame, env.pool)
    ranked = _rank_rows(node, frame, env.pool, keys)
    codes = group(*with_report(key_of(frame, step.partition), frame))[0][ranked]
    by_partition = np.argsort(codes, kind="stable")
    ordered, codes = ranked[by_partition], codes[by_partition]
    starts = starts_segment(codes)
    values = place_in_segment(starts) + 1
    if step.function == "count":
        values = np.diff(np.append(np.flatnonzero(starts), frame.n))[np.cumsum(starts) - 1]
    elif step.function != "row_number":
        differs = starts.copy()
        if keys:
            rank = order_rank(keys, [False] * len(keys))[ordered]
            differs[1:] |= rank[1:] != rank[:-1]
        values = _numbers_of_ties(values, starts, differs, dense=step.function == "dense_rank")
    result = Result(frame.n)
    result.put(ordered, Kind.INTEGER, man=values, scale=np.zeros(frame.n, np.uint8))
    facets = node.layout.slots[step.slot]
    return frame.with_(**slot(result.column(), step.slot, facets, env.pool, tuples=True))


def _numbers_of_ties(places: Longs, starts: Bools, differs: Bools, *, dense: bool) -> Longs:
    """Returns the rank of each row: rows that do not differ from the one before have its rank."""
    if not dense:
        return np.asarray(
            places[np.maximum.accumulate(np.where(differs, np.arange(len(places)), 0))]
        )
    counts = np.cumsum(differs)
    base = np.maximum.accumulate(np.where(starts, counts - 1, 0))
    return np.asarray(counts - base)


def _order_frame(node: PlanNode[s.ROrder], frame: Frame, pool: TermLookup) -> Frame:
    ranked = _rank_rows(node, frame, pool, _sort_values(node, frame, pool))
    op, r = frame["op"][ranked], frame["r"][ranked]
    return frame.take(ranked[np.lexsort((np.arange(frame.n), r, op))])


def _sort_values(
    node: PlanNode[s.ROrder] | PlanNode[s.RNumber], frame: Frame, pool: TermLookup
) -> list[Column]:
    values_scope = scope(node, frame, pool)
    return [broadcast(evaluate(e, values_scope), frame.n) for e, _ in node.step.keys]


def _rank_rows(
    node: PlanNode[s.ROrder] | PlanNode[s.RNumber],
    frame: Frame,
    pool: TermLookup,
    keys: Sequence[Column],
) -> npt.NDArray[np.int64]:
    """Returns all rows in the order of the keys, ties by the terms' texts."""
    number_slot = node.step.slot if isinstance(node.step, s.RNumber) else -1  # has no value yet
    slots = [i for i in range(len(node.layout.slots)) if i != number_slot]
    texts = [column(frame, i, pool).texts() for i in slots]
    if not keys:
        return _by_text(texts, frame.n)
    return order_rows(keys, [d for _, d in node.step.keys], texts)


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
