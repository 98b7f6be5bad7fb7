"""Local combine: reduces rows that go to one place, before they are sent, if that saves much
(``plan/execution/local_reduction``).

Each report and member is reduced by itself; rows that are left out change no result. A task may
always send all of its rows, so it does where there is little to save. Cost: a look at the rows; the
work done here is not repeated at home.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from levada.core.array_types import Longs
from levada.core.frame import Frame
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.aggregation import incremental_group_by, report_group_by
from levada.operators.reporting.order_and_distinct import first_rows
from levada.operators.rows.route_rows import key_of, with_report
from levada.plan.execution import steps as s
from levada.plan.execution.local_reduction import ReducedRows, find_reduction
from levada.plan.execution.plan import PlanNode

FEWER = 0.5
"""Reduced rows are sent if they are at most this share of the rows."""


class Sent(NamedTuple):
    """The rows to send; ``folded``: they are partials instead of rows."""

    frame: Frame
    folded: bool


def combine_locally(node: PlanNode, at: int, frame: Frame, pool: TermLookup) -> Sent | None:
    """Reduces the rows of a node's input ``at`` to the ones that its home needs. Returns None if
    the rows are sent unchanged.
    """
    reduction = node.compute_once(less_of, at)
    if reduction is None or reduction.what is ReducedRows.WHOLE or not frame.n:
        return None
    combined = _WAYS[reduction.what](node, frame, pool)
    return None if combined is None else Sent(combined, reduction.what is ReducedRows.PARTIALS)


def less_of(node: PlanNode, at: int) -> Any:
    """Returns the reduction that a node's step allows for input ``at``."""
    return find_reduction(node.step, at)


def _partials(node: PlanNode, frame: Frame, pool: TermLookup) -> Frame | None:
    if (groups := node.as_step(s.RGroup)) is not None:
        return report_group_by.partials(groups, frame, pool, FEWER)
    running = node.as_step(s.Running)
    assert running is not None, "partials are of groups"
    return incremental_group_by.partials(running, frame, pool, FEWER)


def _values(node: PlanNode, frame: Frame, pool: TermLookup) -> Frame | None:
    groups = node.as_step(s.RGroup)
    assert groups is not None, "distinct values are of groups of report rows"
    return report_group_by.values(groups, frame, FEWER)


def _first(node: PlanNode, frame: Frame, pool: TermLookup) -> Frame | None:
    """The first rows of each report, as many as are shown at most."""
    order = node.as_step(s.ROrder)
    assert order is not None and order.step.limit is not None, "an order with LIMIT"
    if "w" in frame:
        return None  # rows of a result that is kept by changes
    most = order.step.offset + order.step.limit
    counts = np.bincount(group(*with_report(key_of(frame, ()), frame))[0])
    if int(np.minimum(counts, most).sum()) > FEWER * frame.n:
        return None
    return first_rows(order, frame, pool, most)


def _sum_weights(node: PlanNode, frame: Frame, pool: TermLookup) -> Frame | None:
    """The sum of the weights of each instant, also where it is 0: something has changed there."""
    codes, first = group(*with_report(key_of(frame, ()), frame))
    if len(first) > FEWER * frame.n:
        return None
    net: Longs = np.zeros(len(first), np.int64)
    np.add.at(net, codes, frame["w"].astype(np.int64))
    return frame.take(first).with_(w=net)


_WAYS: dict[ReducedRows, Callable[[PlanNode, Frame, TermLookup], Frame | None]] = {
    ReducedRows.PARTIALS: _partials,
    ReducedRows.VALUES: _values,
    ReducedRows.FIRST: _first,
    ReducedRows.NETTED: _sum_weights,
}
