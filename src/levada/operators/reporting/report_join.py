"""Joins of report rows: all rows of a report are in one place, so they are hash joins with the
report as one more key.

INNER pairs compatible rows; LEFT (OPTIONAL) also keeps left rows without a partner (SPARQL 1.1,
18.5); a condition sees both sides. SEMI (EXISTS) keeps left rows with a partner, ANTI (NOT EXISTS)
and MINUS those without a partner, MARK flags the rows with a partner. For these three kinds,
without a condition, each distinct right row is met once, and there are at most as many pairs as
left rows if all shared variables are keys. Shared variables that may be unbound are not keys: pairs
are tested for compatibility and filled from either side.

Right rows that last (``windowed/static_input``) are a run: they belong to no report, and left rows
may have event times. Right rows of several joins are kept elsewhere, as runs
(``windowed/arranged_join``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Bools, Longs
from levada.core.frame import Column, Frame, concat
from levada.core.query_limits import QueryLimits
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.hash_probe import arrange
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.expressions import truth
from levada.operators.expressions.logic import column_of
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.row_limit import most_rows, too_many
from levada.operators.rows import route_rows as r
from levada.operators.rows.filter_extend import scope
from levada.operators.rows.term_columns import slot
from levada.operators.state.join_state import Run
from levada.operators.windowed.arranged_join import arranged_rows
from levada.operators.windowed.static_input import lasting_run
from levada.operators.windowed.windowed_join import compatible
from levada.plan.execution import steps as s
from levada.plan.execution.joins import JoinKind
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.row_layout import slot_columns

Right = Frame | Run
Origins = tuple[tuple[int, int], ...]


def report_join(node: PlanNode[s.ReportJoin], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Joins the left rows of each report with the right side, by the kind of the join."""
    left, right = _sides(node, inputs, env)
    if left is None:
        return None
    return _join_sides(node, left, r.key_of(left, node.step.left), right, env)


def arranged_report_join(
    node: PlanNode[s.ArrangedReportJoin], inputs: Inputs, env: OperatorContext
) -> Frame | None:  # fmt: skip
    """The same with rows that last where they are kept."""
    (left, _), step = inputs, node.step
    if left is None:
        return None
    met = left.with_(op=node.members.inputs[1][left["op"]])
    arranged = arranged_rows(node, 1, step.reads, env.state)
    return _join_sides(node, left, r.key_of(met, step.left), arranged, env)


def _join_sides(
    node: PlanNode[s.ReportJoin], left: Frame, key: r.Key, rights: Sequence[Right], env:
    OperatorContext
) -> Frame | None:  # fmt: skip
    """Joins left rows by this key with each of the right sides."""
    step, pool = node.step, env.pool
    partners = [(right, *_partners(node, left, key, right, env)) for right in rights]
    i = np.concatenate([np.empty(0, np.int64), *(i for _, i, _ in partners)])
    if len(partners) > 1 and len(i) > most_rows(node, env.limits):
        raise too_many(node, left["op"][i], env.limits)
    pool.spent.ask(node.id, len(i) * node.layout.width, lambda: left["op"][i])
    if not step.kind.returns_pairs:
        return _decide_left_rows(node, step, left, i, pool)
    parts = [
        _pair(node, left, left_rows, _rows(right), j=j, out=step.out, fills=step.fills)
        for right, left_rows, j in partners
        if len(left_rows)
    ]
    if step.kind is JoinKind.LEFT and len(rest := np.flatnonzero(~_flag_rows(i, left.n))):
        parts.append(_pad_left_rows(node, left, rest, step.out))
    return concat(parts) if parts else None


def _flag_rows(i: Longs, n: int) -> Bools:
    there = np.zeros(n, bool)
    there[i] = True
    return there


def _decide_left_rows(
    node: PlanNode, step: s.ReportJoin, left: Frame, i: Longs, pool: TermLookup
) -> Frame | None:
    """The left rows on which others decide, of which rows ``i`` have a partner."""
    partnered = _flag_rows(i, left.n)
    marks = step.kind is JoinKind.MARK
    keep = np.arange(left.n) if marks else np.flatnonzero(partnered == (step.kind is JoinKind.SEMI))
    columns = _row_columns(left, keep)
    for n, (_, at) in enumerate(step.out):
        columns.update(r.gather(left, keep, at, n, node.layout.slots[n]))
    if len(node.layout.slots) > (last := len(step.out)):
        columns.update(
            slot(column_of(partnered.astype(np.uint8)), last, node.layout.slots[last], pool)
        )
    return Frame(columns, len(keep)) if len(keep) else None


def _sides(
    node: PlanNode[s.ReportJoin], inputs: Inputs, env: OperatorContext
) -> tuple[Frame | None, Sequence[Right]]:
    """Returns the left rows, and the right ones: those of the reports, or the lasting ones."""
    left, rows = inputs
    right = lasting_run(node, env.state, rows) if node.step.lasting else rows
    return left, () if right is None else (right,)


def _partners(
    node: PlanNode[s.ReportJoin], left: Frame, key: r.Key, right: Right, env: OperatorContext
) -> tuple[Longs, Longs]:
    """Returns the pairs that count. For kinds that only test for a partner, the right rows are
    distinct (lasting rows are distinct already).
    """
    step = node.step
    if not step.kind.returns_pairs and step.condition is None and not isinstance(right, Run):
        slots = (*step.right, *(at for _, at in step.fills))
        right = right.take(group(*r.with_report(r.key_of(right, slots), right))[1])
    i, j = _pairs(node, left, key, right, env.limits)
    # keys are bound: there, all pairs meet
    if step.kind is JoinKind.MINUS and not step.left and len(i):
        keep = _share_bound_variable(left, i, _rows(right), j, step.fills)
        i, j = i[keep], j[keep]
    if step.condition is not None and len(i):
        keep = _satisfies_condition(node, step, left, i, right=_rows(right), j=j, pool=env.pool)
        i, j = i[keep], j[keep]
    return i, j


def _share_bound_variable(left: Frame, i: Longs, right: Frame, j: Longs, fills: Origins) -> Bools:
    """Flags the pairs with a shared variable that both rows bind."""
    meet = np.zeros(len(i), bool)
    for a, b in fills:
        meet |= r.bind(left, a)[i] & r.bind(right, b)[j]
    return meet


def _pairs(
    node: PlanNode[s.ReportJoin], left: Frame, key: r.Key, right: Right, limits: QueryLimits
) -> tuple[Longs, Longs]:  # fmt: skip
    """Row numbers of compatible pairs. Raises ``ExcessError``."""
    step = node.step
    if not isinstance(right, Run):
        key = r.with_report(key, left)
        right = run_of(right, r.with_report(r.key_of(right, step.right), right))
    most = most_rows(node, limits)
    instants = np.zeros(left.n, np.int64), np.ones(left.n, np.int64)
    left_rows, at = right.find_pairs(*key, *instants, most)
    if len(left_rows) > most:
        raise too_many(node, left["op"][left_rows], limits)
    i, j = right.keep_counting_pairs(left_rows.astype(np.intp), right.rows_at(at))
    if step.fills:
        keep = compatible(left, i, right.rows, j, step.fills)
        i, j = i[keep], j[keep]
    return i, j


def run_of(rows: Frame, key: r.Key) -> Run:
    """Builds a run that rows with its key can probe."""
    order, buckets = arrange(*key, np.zeros(rows.n, np.int64), np.ones(rows.n, np.int64))
    return Run(rows, buckets, order.astype(np.int32), None)


def _rows(right: Right) -> Frame:
    return right.rows if isinstance(right, Run) else right


def _row_columns(left: Frame, i: npt.NDArray[np.integer[Any]]) -> dict[str, Column]:
    """Returns the columns of rows other than slots: member, and report or event times and
    weight.
    """
    return {n: c[i] for n, c in left.columns.items() if not col.is_slot(n)}


def _satisfies_condition(
    node: PlanNode, step: s.ReportJoin, left: Frame, i: Longs, *, right: Frame, j: Longs, pool:
    TermLookup
) -> npt.NDArray[np.bool_]:  # fmt: skip
    """The condition over the pairs: left slots, then right slots; a shared variable has the value
    of the joined row.
    """
    width = len(node.input_layouts[0].slots)
    columns = _row_columns(left, i)
    for at, facets in enumerate(node.input_layouts[0].slots):
        columns.update(r.gather(left, i, at, at, facets))
    for at, facets in enumerate(node.input_layouts[1].slots):
        columns.update(r.gather(right, j, at, width + at, facets))
    filled = dict(step.fills)
    for at in filled:
        _take_right(
            columns, at, slot_columns(at, node.input_layouts[0].slots[at]), width + filled[at]
        )
    assert step.condition is not None, "a condition"
    pairs = Frame(columns, len(i))
    return truth(step.condition, scope(node, pairs, pool, width + len(node.input_layouts[1].slots)))


def _take_right(columns: dict[str, Column], at: int, names: Sequence[str], other: int) -> None:
    missing = (columns[col.x(at)] == 0) & (columns[col.y(at)] == 0)
    for name in names:
        if f"{name[0]}{other}" in columns:
            columns[name] = np.where(missing, columns[f"{name[0]}{other}"], columns[name])


def _pair(
    node: PlanNode, left: Frame, i: Longs, right: Frame, *, j: Longs, out: Origins, fills: Origins
) -> Frame:  # fmt: skip
    columns = _row_columns(left, i)
    filled = dict(fills)
    for n, (side, at) in enumerate(out):
        facets = node.layout.slots[n]
        columns.update(r.gather((left, right)[side], (i, j)[side], at, n, facets))
        if side == 0 and at in filled:
            missing = (left[col.x(at)][i] == 0) & (left[col.y(at)][i] == 0)
            for name in slot_columns(n, facets):
                columns[name] = np.where(missing, right[f"{name[0]}{filled[at]}"][j], columns[name])
    return Frame(columns, len(i))


def _pad_left_rows(
    node: PlanNode, left: Frame, rest: Longs, out: tuple[tuple[int, int], ...]
) -> Frame:
    """Left rows alone: the right side's slots are unbound."""
    columns = _row_columns(left, rest)
    blank = r.empty(node.layout)
    for n, (side, at) in enumerate(out):
        facets = node.layout.slots[n]
        if side == 0:
            columns.update(r.gather(left, rest, at, n, facets))
        else:
            columns.update(
                {name: np.zeros(len(rest), blank[name].dtype) for name in slot_columns(n, facets)}
            )
    return Frame(columns, len(rest))
