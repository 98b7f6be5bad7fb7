"""Incremental DISTINCT, Except and relations: the multiplicity of equal rows, and the rows that
follow from it (CQL's bags; docs/semantics.md#results).

For n equal rows DISTINCT shows one if n > 0; Except shows as many as there are more on the left
than on the right. Both are functions of one count (rows on the right decrease it), so a change of
the count at a report is a change of the output. The state is a count for each row, by the row's
identity; the rows themselves come with the changes. A deletion of a row that a relation does not
contain is ignored: counts never fall below 0 (at a report; insertions and deletions of one instant
are added up first).
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Longs
from levada.core.frame import Frame, concat
from levada.kernels.keyed.hash_groups import group
from levada.kernels.time.running_aggregates import running_counts
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows.route_rows import key_of, with_report
from levada.operators.state import counters
from levada.operators.windowing.zset import consolidate, expand, steps
from levada.plan.execution import steps as s
from levada.plan.execution.joins import Shown
from levada.plan.execution.plan import PlanNode


def tally(node: PlanNode[s.Multiplicity], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Returns the changes of the output, from the changes of the inputs."""
    step, state = node.step, env.state
    sides = [f.with_(w=_signed_weights(f, i)) for i, f in enumerate(inputs) if f is not None]
    if not sides:
        return None
    rows = concat(sides)
    k, h = key_of(rows, range(len(node.layout.slots)))
    codes, first = group(k, h)
    key_steps = steps(codes, rows["r"])
    key = f"{node.id}.tally"
    before = counters.sum_column(
        counters.find(state, key, k[first], h[first]), len(first), col.COUNT
    )
    earlier, count = running_counts(
        key_steps.of, key_steps.net(rows["w"]), before, step.shown is Shown.HELD
    )
    change = _shown_multiplicity(count, step.shown) - _shown_multiplicity(earlier, step.shown)
    stored = np.zeros(len(first), np.int64)
    np.add.at(stored, key_steps.of, count - earlier)
    place = rows[col.PLACE][first]
    rest = Frame({col.KEY: k[first], col.CHECK: h[first], col.PLACE: place, col.COUNT: stored})
    rest = rest.where(stored != 0)
    counters.insert(state, key, rest, partial(counters.add, by=(), sums=(col.COUNT,)))
    some = np.flatnonzero(change)
    return (
        expand(rows.take(key_steps.order[key_steps.last[some]]), change[some])
        if len(some)
        else None
    )


def _signed_weights(frame: Frame, side: int) -> npt.NDArray[np.int8]:
    return frame["w"] if side == 0 else (-frame["w"]).astype(np.int8)


def _shown_multiplicity(count: Longs, shown: Shown) -> Longs:
    return np.clip(count, 0, 1) if shown is Shown.DISTINCT else np.maximum(count, 0)


def rexcept(node: PlanNode[s.RExcept], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The bag difference of report rows, report by report."""
    left, right = inputs
    if left is None:
        return None
    rows = left if right is None else concat([left, right])
    sign = np.where(np.arange(rows.n) < left.n, 1, -1).astype(np.int8)
    _, first, count = consolidate(
        *with_report(key_of(rows, range(len(node.layout.slots))), rows), sign
    )
    out = rows.take(np.repeat(first, np.maximum(count, 0)))
    return out if out.n else None
