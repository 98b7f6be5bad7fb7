"""GROUP BY of report rows. All rows of a report arrive in one epoch, so they fold straight into
values, without state.

Without keys there is one group, in one partition. So aggregates that are sums are folded where the
rows are, and the group's home only adds the sums up (``partials``; ``plan/execution``). The sums
are the same, since they are exact and independent of order (``aggregate_functions``). A DISTINCT
aggregate is a sum if equal values come from one task. If all aggregates are of the same distinct
values, only these values are sent.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Ints, Longs
from levada.core.frame import Column as Array
from levada.core.frame import Frame, concat
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.aggregation.panes import add_empty_groups, finish_groups, fold_one, merge
from levada.operators.aggregation.slicing.partial_aggregates import group_columns, lookup
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows.route_rows import Key, key_of, with_report
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode


def rgroup(node: PlanNode[s.RGroup], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Groups these rows, and partials that other tasks folded, at their reports."""
    step, pool, (frame,) = node.step, env.pool, inputs
    arrived = parts = [part for part in env.partials.get(node.id, ()) if part.n]
    if frame is not None and frame.n:
        parts = [*arrived, _fold_groups(step, frame, pool)]
    merged: Frame | None = None
    if parts:  # one frame may have the partials of several tasks
        merged = merge(step, concat(parts), pool) if arrived else parts[0]
    if not step.keys and step.enumerated:
        calendar = env.calendar(node, step.kinds)
        merged = add_empty_groups(step, merged, calendar, env.home(node), pool)
    return finish_groups(node, step, merged, pool) if merged is not None and merged.n else None


def partials(
    node: PlanNode[s.RGroup], frame: Frame, pool: TermLookup, most: float
) -> Frame | None:  # fmt: skip
    """One partial per (member, group, report) of report rows; None if they are more than ``most``
    of the rows. They are of no partition-group until they are sent.
    """
    keyed = _group_rows(node.step, frame)
    if len(keyed[2]) > most * frame.n:
        return None
    return _fold_groups(node.step, frame, pool, keyed).drop(col.PLACE)


def values(node: PlanNode[s.RGroup], frame: Frame, most: float) -> Frame | None:
    """One row for each distinct value that the aggregates see in a report; None as for partials."""
    step = node.step
    key = with_report(key_of(frame, step.keys), frame)
    first = _distinct_rows(frame, key, step.aggregates[0])
    return None if len(first) > most * frame.n else frame.take(first)


_Grouped = tuple[Key, Ints, Longs]


def _group_rows(step: s.RGroup, frame: Frame) -> _Grouped:
    """The key of each row by its report, the number of its group, and the first row of each."""
    key = with_report(key_of(frame, step.keys), frame)
    return (key, *group(*key))


def _fold_groups(
    step: s.RGroup, frame: Frame, pool: TermLookup, keyed: _Grouped | None = None
) -> Frame:
    key, codes, first = keyed or _group_rows(step, frame)
    columns = group_columns(frame, step.keys, first)
    sums = _fold_distinct(step, frame, key, codes=codes, g=len(first), pool=pool)
    return Frame({**columns, "r": frame["r"][first], **sums}, len(first))


def _fold_distinct(
    step: s.RGroup, frame: Frame, key: Key, *, codes: Ints, g: int, pool: TermLookup
) -> dict[str, Array]:
    """DISTINCT aggregates see each value of a group once (COUNT(DISTINCT *): each row)."""
    out: dict[str, Array] = {}
    for j, spec in enumerate(step.aggregates):
        rows, row_codes = frame, codes
        if spec.distinct:
            first = _distinct_rows(frame, key, spec)
            rows, row_codes = frame.take(first), codes[first]
        out.update(fold_one(rows, row_codes, g, j, spec=spec, terms=lookup(pool)))
    return out


def _distinct_rows(frame: Frame, key: Key, spec: s.Aggregate) -> npt.NDArray[np.int64]:
    k, h = key
    slots = (
        [spec.slot]
        if spec.slot >= 0
        else [i for i in range(len(frame.columns)) if col.x(i) in frame]
    )
    for i in slots:
        k, h = combine(k, h, frame[col.x(i)], frame[col.y(i)])
    return group(k, h)[1]
