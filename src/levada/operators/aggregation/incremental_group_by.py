"""Incremental GROUP BY: at each report that changes a group's rows, its old row is retracted and
its new row is added (docs/architecture.md#a-triples-way).

The previous state of a group and its consecutive runs of changes
(``operators/aggregation/ordered_changes``) determine its aggregates at all reports at once:

    COUNT              cumulative sums
    SUM, AVG           cumulative sums of integers and decimals; doubles exactly
                       (``incremental_group_by``)
    MIN, MAX, SAMPLE   the count of each value, and the best value (``incremental_min_max``)
    DISTINCT           the count of each value, by its rows (``incremental_group_by``)

The state consists of tallies by group: sums, limbs of double sums, counts of values. So the work of
an epoch is its changes. Without keys there is one group with one home; the group exists while some
window is not empty. Counts and sums other than doubles arrive there already added up, a row a
report (``partials``; ``plan/execution``). In tuple streams a value beyond 64 bits, like a missing
value, leaves the aggregate without a value; RDF values follow ``aggregate_functions``.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Longs
from levada.core.expressions import AggregateFunction
from levada.core.frame import Column, Frame
from levada.core.rdf_terms import Kind
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.radix_sort import in_order
from levada.kernels.terms.term_lookup import TermLookup
from levada.kernels.time.running_aggregates import running_counts, running_sums
from levada.operators.aggregation import bignum_sums, decimal_sums
from levada.operators.aggregation.incremental_min_max import best_values
from levada.operators.aggregation.ordered_changes import Runs
from levada.operators.aggregation.panes import finish_groups
from levada.operators.aggregation.slicing.partial_aggregates import group_columns
from levada.operators.expressions.scalar.numbers import EXACT
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.reporting import report_buffer
from levada.operators.rows.route_rows import bind, empty, key_of, value
from levada.operators.rows.term_columns import texts_of
from levada.operators.state import counters
from levada.operators.state.state_parts import State
from levada.operators.windowing.zset import steps
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode

# Incremental SUM and AVG: the contribution of each row, and the exact sum at each point (with the
# columns of ``aggregate_functions``).
#
# Integers use two words, decimals six halves of the limbs of ``decimal_sums``: these sums are exact
# in int64 for any number of rows, and are carried when they are read. Floats and doubles are summed
# without rounding (``kernels.time.running_aggregates``) and rounded at each point. Numbers that do
# not fit in limbs are kept as digits to the base 10^9, by place, and added up one by one. The
# number of rows of each type determines the type of the sum; one row that is not a number leaves
# the group without a value.
#
# Values of tuple streams are only integers and doubles, and their average is a double.


Changes = dict[str, npt.NDArray[Any]]
_FINITE = 0x7FF << 52
_HALVES = tuple(f"l{i}" for i in range(6))
_LIMBS = ("e0", "e1", "e2")
_PLACE = 9  # decimal digits of a kept one


def sum_changes(rows: Frame, slot: int, pool: TermLookup, *, tuples: bool) -> Changes:
    """Returns the contribution of each row to the counts and sums of its group."""
    kind, doubles = rows[col.kind(slot)], value(rows, "d", slot)
    integer, double = kind == Kind.INTEGER, kind == Kind.DOUBLE
    number, out = integer | double, {}
    if not tuples:
        single = kind == Kind.FLOAT
        halves, exact, unknown = _decimal_changes(rows, slot, pool)
        number |= single | ((kind == Kind.DECIMAL) | (kind == Kind.HARD_NUMBER)) & ~unknown
        out = {"nf": single, "nx": exact, **halves}
        floating = double | single
    else:
        floating = double
    whole = np.where(integer, value(rows, "m", slot), 0)
    return {
        "n": np.ones(rows.n, np.int64),
        "err": ~number,
        "ih": whole >> 32,
        "il": whole & 0xFFFFFFFF,
        "nd": double,
        "nan": floating & np.isnan(doubles),
        "pinf": floating & (doubles == np.inf),
        "ninf": floating & (doubles == -np.inf),
        **out,
    }


def _decimal_changes(
    rows: Frame, slot: int, pool: TermLookup
) -> tuple[Changes, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Returns for each row the halves of its decimal or HARD number (0 if it does not fit), whether
    it is not an integer, and whether it is too long to have a value.
    """
    each = np.arange(rows.n, dtype=np.int32)
    folded = decimal_sums.fold(rows, slot, each, rows.n, partial(texts_of, pool))
    kind = rows[col.kind(slot)]
    exact = (kind == Kind.DECIMAL) | (kind == Kind.HARD_NUMBER)
    exact[folded.integers] = False
    return dict(zip(_HALVES, decimal_sums.halves(folded.limbs), strict=True)), exact, folded.unknown


def sums_at(points: dict[str, Column], *, average: bool, tuples: bool) -> dict[str, Column]:
    """Returns the partial sums at every point, without doubles, from the sums of the rows."""
    n = points["n"]
    out = {name: points[name] for name in ("n", "err", "nan", "pinf", "ninf")}
    out["ih"], out["il"] = points["ih"] + (points["il"] >> 32), points["il"] & 0xFFFFFFFF
    out["fl"] = np.zeros(len(n))
    double = points["nd"] > 0
    if tuples:
        out.update({name: np.zeros(len(n), np.int64) for name in _LIMBS})
        out["t"] = np.where(double | ((n > 0) & average), 3, 0).astype(np.int8)
        return out
    out.update(zip(_LIMBS, decimal_sums.carry([points[name] for name in _HALVES]), strict=True))
    out["t"] = np.select([double, points["nf"] > 0, points["nx"] > 0], [3, 2, 1], 0).astype(np.int8)
    return out


def double_sums(
    key: str,
    state: State,
    rows: Frame,
    runs: Runs,
    weights: npt.NDArray[np.int8],
    *,
    slot: int,
    lost: bool,
) -> npt.NDArray[np.float64]:
    """The exact sums of the finite floats and doubles of a slot at every point, rounded; ``lost``:
    what their rounding took from them.
    """
    there = np.maximum(runs.rows, 0)
    bits, w = np.zeros(len(there), np.int64), np.zeros(len(there), np.int8)
    if rows.n:
        bits = np.ascontiguousarray(value(rows, "d", slot)[there]).view(np.int64)
        kind = rows[col.kind(slot)][there]
        floating = (kind == Kind.DOUBLE) | (kind == Kind.FLOAT)
        finite = floating & ((bits & _FINITE) != _FINITE) & (runs.rows >= 0)
        bits, w = np.where(finite, bits, 0), np.where(finite, weights, 0).astype(np.int8)
    stored = counters.find(state, key, runs.k, runs.h)
    nothing = np.empty(0, np.int64)
    of, limb, base = (
        (nothing, nothing, nothing)
        if stored is None
        else (stored[0], stored[1][col.SUM], stored[1][col.COUNT])
    )
    order = in_order(of)
    base_starts = np.searchsorted(of[order], np.arange(runs.groups + 1))
    before, after, changed, place, change = running_sums(
        runs.starts, runs.run, bits, w, base_starts, limb[order], base[order], len(runs.of),
        lost,
    )  # fmt: skip
    rest = Frame(
        {**runs.columns(changed), col.SUM: place, col.COUNT: change},
        len(changed),
    )
    counters.insert(state, key, rest, partial(counters.add, by=(col.SUM,), sums=(col.COUNT,)))
    return runs.put_values(before, after)


def large_at(
    key: str,
    state: State,
    rows: Frame,
    runs: Runs,
    weights: npt.NDArray[np.int8],
    *,
    slot: int,
    pool: TermLookup,
) -> dict[str, Column]:
    """The columns of the sums of numbers that limbs do not hold, at every point."""
    n = runs.groups + len(runs.of)
    large_numbers = decimal_sums.large(rows, slot, partial(texts_of, pool)) if rows.n else {}
    stored = counters.find(state, key, runs.k, runs.h)
    if not large_numbers and stored is None:
        return bignum_sums.columns({}, n, pool)
    base: bignum_sums.Sums = {}
    if stored is not None:
        places, digits = (stored[1][name].tolist() for name in (col.SUM, col.COUNT))
        for g, place, digit in zip(stored[0].tolist(), places, digits, strict=True):
            bignum_sums.add_number(base, g, Decimal(digit).scaleb(place * _PLACE, EXACT))
    changes: bignum_sums.Sums = {}
    for i in np.flatnonzero(np.isin(runs.rows, list(large_numbers))).tolist():
        weighted = EXACT.multiply(large_numbers[int(runs.rows[i])], Decimal(int(weights[i])))
        bignum_sums.add_number(changes, int(runs.run[i]), weighted)
    rest = _digits(changes, runs)
    counters.insert(state, key, rest, partial(counters.add, by=(col.SUM,), sums=(col.COUNT,)))
    return bignum_sums.columns(_sums_at_points(base, changes, runs), n, pool)


def _sums_at_points(
    base: bignum_sums.Sums, changes: bignum_sums.Sums, runs: Runs
) -> bignum_sums.Sums:
    """Returns the sums at the points of the groups that have any, from the previous sums and those
    of runs.
    """
    sums: bignum_sums.Sums = {}
    before, after = runs.before, runs.after
    first = np.searchsorted(runs.of, np.arange(runs.groups + 1))
    for g in {*base, *(int(runs.of[run]) for run in changes)}:
        standing = sums[int(before[g])] = base.get(g, Decimal(0))
        for run in range(int(first[g]), int(first[g + 1])):
            standing = EXACT.add(standing, changes.get(run, Decimal(0)))
            sums[int(after[run])] = standing
    return sums


def _digits(changes: bignum_sums.Sums, runs: Runs) -> Frame:
    """Returns the change of each run as digits to the base 10^9 of its group."""
    groups: list[int] = []
    places: list[int] = []
    digits: list[int] = []
    for run, change in changes.items():
        exponent = change.as_tuple().exponent
        assert isinstance(exponent, int), "a finite number"
        place = exponent // _PLACE
        left = int(change.scaleb(-place * _PLACE, EXACT))
        sign, left = (-1, -left) if left < 0 else (1, left)
        while left:
            left, digit = divmod(left, 10**_PLACE)
            groups.append(int(runs.of[run]))
            places.append(place)
            digits.append(sign * digit)
            place += 1
    of = np.array(groups, np.int64)
    columns: dict[str, Column] = {
        **runs.columns(of),
        col.SUM: np.array(places, np.int64),
        col.COUNT: np.array(digits, np.int64),
    }
    return counters.add(Frame(columns, len(of)), (col.SUM,), (col.COUNT,))


# Incremental aggregates of distinct values: a value enters with its first row in the group, and
# leaves with its last.
#
# Each change of a row becomes a change of its value: +1 where the count of the value rises from 0,
# -1 where the count falls back to 0, 0 elsewhere. If a count falls and rises at one report, the two
# changes cancel. The state is a count for each group and value. Cost: the changes.


_ADDED = partial(counters.add, by=(), sums=(col.COUNT,))


def distinct_weights(
    state: State,
    key: str,
    rows: Frame,
    slot: int,
    *,
    at: Longs,
    w: npt.NDArray[np.int8],
    groups: Frame,
) -> npt.NDArray[np.int8]:
    """Returns the change of distinct values in ``slot`` for each change of a row. ``at``: rows in
    order of group and report (-1: no row). ``groups``: their groups, as for ``Runs.columns``.

    A row without a value counts for itself.
    """
    there = np.flatnonzero(at >= 0)
    there = there[bind(rows, slot)[at[there]]] if rows.n else there[:0]
    x, y = (rows[f"{name}{slot}"][at[there]] for name in "xy")
    k, h = combine(groups[col.KEY][there], groups[col.CHECK][there], x, y)
    codes, first = group(k, h)
    order = in_order(codes)
    before = counters.sum_column(
        counters.find(state, key, k[first], h[first]), len(first), col.COUNT
    )
    earlier, after = running_counts(codes[order], w[there[order]].astype(np.int64), before, False)
    change = np.zeros(len(first), np.int64)
    np.add.at(change, codes, w[there])
    place = groups[col.PLACE][there[first]]
    stored = Frame(
        {col.KEY: k[first], col.CHECK: h[first], col.PLACE: place, col.COUNT: change}, len(first)
    )
    counters.insert(state, key, stored.where(change != 0), _ADDED)
    out = w.copy()
    out[there[order]] = (after > 0).astype(np.int8) - (earlier > 0).astype(np.int8)
    return out


_A = AggregateFunction


def running(node: PlanNode[s.Running], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Returns the changes of the groups' rows, from the changes of the input and, without keys, of
    non-empty marks.
    """
    step, state, pool = node.step, env.state, env.pool
    rows = inputs[0] if inputs[0] is not None else empty(node.input_layouts[0])
    marks = [_as_partial(f) for f in (*inputs[1:], *_marks(node, step, env)) if f is not None]
    folded = [f for f in (*marks, *env.partials.get(node.id, ())) if f.n]
    if not rows.n and not folded:
        return None
    runs = _runs(step, rows, folded)
    weights = _weights(node, step, state, rows, runs)
    sums = _sums(step, rows, runs, weights, pool, marked=_is_marked(node))
    _add(sums, folded, runs)
    key = f"{node.id}.groups"
    names = tuple(sums)
    stored = counters.find(state, key, runs.k, runs.h)
    points: dict[str, Column] = {}
    totals: dict[str, Column] = runs.columns(np.arange(runs.groups))
    for name, changes in sums.items():
        base = np.zeros(runs.groups, np.int64)
        if stored is not None:
            np.add.at(base, stored[0], stored[1][name])
        points[name] = runs.at_points(base, changes)
        totals[name] = runs.by_group(changes)
    counters.insert(
        state,
        key,
        counters.add(Frame(totals, runs.groups), (), names),
        partial(counters.add, by=(), sums=names),
    )
    merged = _merge(node, step, state, rows, runs=runs, weights=weights, points=points, pool=pool)
    return _emit_changes(finish_groups(node, step, merged, pool), runs, points[col.STANDING] > 0)


def partials(
    node: PlanNode[s.Running], rows: Frame, pool: TermLookup, most: float
) -> Frame | None:  # fmt: skip
    """Returns the change of each count and sum at each report, from changes of the one group of
    each member. Returns None if the result would be more than ``most`` of the changes, or if some
    sum is not kept as words.

    Sums of words are added up wherever they are computed; doubles are added one by one, without
    rounding.
    """
    step = node.step
    runs = _runs(step, rows, ())
    if len(runs.of) > most * rows.n or not all(
        _is_in_words(rows, a, None if step.tuples else pool) for a in step.aggregates
    ):
        return None
    sums = _sums(step, rows, runs, [runs.w] * len(step.aggregates), pool, marked=_is_marked(node))
    op = runs.first[runs.of].astype(np.int32)
    return Frame({"op": op, "r": runs.r, **sums}, len(runs.of))


def _is_in_words(rows: Frame, spec: s.Aggregate, pool: TermLookup | None) -> bool:
    """Whether the contributions of rows to an aggregate are only counts and sums in words.
    ``pool``: contains numbers of any length (None: tuples do not have such numbers).
    """
    if spec.function is _A.COUNT:
        return True
    kind = rows[col.kind(spec.slot)]
    if np.isin(kind, (Kind.FLOAT, Kind.DOUBLE)).any():
        return False
    return pool is None or not decimal_sums.large(rows, spec.slot, partial(texts_of, pool))


def _is_marked(node: PlanNode[s.Running]) -> bool:
    """Whether the group is there by marks, and not by its rows."""
    return len(node.inputs) > 1 or node.step.enumerated


def _as_partial(marks: Frame) -> Frame:
    """Converts marks to changes of the number of rows that keep the group alive."""
    return marks.drop("w").with_(**{col.STANDING: marks["w"].astype(np.int64)})


def _add(sums: dict[str, Longs], folded: Sequence[Frame], runs: Runs) -> None:
    """Adds partials to the changes of each run."""
    there = runs.rows < 0
    at = -1 - runs.rows[there]
    for name, changes in sums.items():
        partial_changes = [f[name] if name in f else np.zeros(f.n, np.int64) for f in folded]
        if any(change.any() for change in partial_changes):
            changes += runs.total(np.concatenate(partial_changes)[at], there)


def _marks(node: PlanNode, step: s.Running, env: OperatorContext) -> list[Frame]:
    """Returns, for the one group of each local member, when its windows become non-empty and when
    they become empty, if their reports are listed.
    """
    if not step.enumerated:
        return []
    op, r, w = env.calendar(node, step.kinds).content_changes()
    home = env.home(node)
    return [Frame({"op": op, col.PLACE: home.group[op], "r": r, "w": w}).where(home.here[op])]


def _runs(step: s.Running, rows: Frame, folded: Sequence[Frame]) -> Runs:
    """The changes in order; of the one group without keys marks and partials are changes, too."""
    parts = [rows, *folded]
    pairs = [key_of(rows, step.keys), *(key_of(f, ()) for f in folded)]
    k, h = (np.concatenate([pair[i] for pair in pairs]) for i in (0, 1))
    op, place, r = (np.concatenate([f[name] for f in parts]) for name in ("op", col.PLACE, "r"))
    w = np.zeros(len(k), np.int8)
    w[: rows.n] = rows["w"]
    at = np.concatenate([np.arange(rows.n), -1 - np.arange(len(k) - rows.n)])
    codes, first = group(k, h)
    key_steps = steps(codes, r)
    starts = np.searchsorted(codes[key_steps.order], np.arange(len(first) + 1))
    member = first if step.keys else op[first].astype(np.int64)
    of = key_steps.of.astype(np.int64)
    keys = k[first], h[first], place[first]
    return Runs(
        at[key_steps.order],
        w[key_steps.order],
        key_steps.step,
        of,
        key_steps.at,
        starts,
        *keys,
        member,
    )


def _weights(
    node: PlanNode, step: s.Running, state: State, rows: Frame, runs: Runs
) -> list[npt.NDArray[np.int8]]:
    """Returns the weight of each change for each aggregate; for DISTINCT aggregates by the values.
    The best distinct value is the best of all values.
    """
    adds = [a.distinct and a.function not in (_A.MIN, _A.MAX, _A.SAMPLE) for a in step.aggregates]
    of = np.repeat(np.arange(runs.groups), np.diff(runs.starts))
    return [
        distinct_weights(
            state,
            f"{node.id}.distinct{j}",
            rows,
            a.slot,
            at=runs.rows,
            w=runs.w,
            groups=Frame(runs.columns(of)),
        )
        if distinct
        else runs.w
        for j, (a, distinct) in enumerate(zip(step.aggregates, adds, strict=True))
    ]


def _sums(
    step: s.Running,
    rows: Frame,
    runs: Runs,
    weights: Sequence[npt.NDArray[np.int8]],
    pool: TermLookup,
    *,
    marked: bool,
) -> dict[str, Longs]:
    """Returns the change of each count and sum by run. ``STANDING``: the number of rows that keep
    the group alive.
    """
    there = runs.rows >= 0
    at, w = runs.rows[there], runs.w[there].astype(np.int64)
    out = {col.STANDING: runs.total(w * (not marked), there)}
    for j, spec in enumerate(step.aggregates):
        p = f"a{j}."
        w = weights[j][there].astype(np.int64)
        match spec.function:
            case _A.COUNT:
                out[p + "n"] = runs.total(
                    w if spec.slot < 0 else w * bind(rows, spec.slot)[at], there
                )
            case _A.SUM | _A.AVG | _A.SUM_REST:
                changes = sum_changes(rows, spec.slot, pool, tuples=step.tuples)
                out.update(
                    {
                        p + name: runs.total(w * change[at], there)
                        for name, change in changes.items()
                    }
                )
            case _:
                out[p + "err"] = runs.total(w * ~bind(rows, spec.slot)[at], there)
    return out


def _merge(
    node: PlanNode,
    step: s.Running,
    state: State,
    rows: Frame,
    *,
    runs: Runs,
    weights: Sequence[npt.NDArray[np.int8]],
    points: dict[str, Column],
    pool: TermLookup,
) -> Frame:
    """The groups at every point, as partial aggregates."""
    n = runs.groups + len(runs.of)
    point_of = np.empty(n, np.int64)
    point_of[runs.before], point_of[runs.after] = np.arange(runs.groups), runs.of
    if step.keys:
        columns = {
            name: c[point_of] for name, c in group_columns(rows, step.keys, runs.first).items()
        }
    else:
        columns = {"op": runs.first[point_of].astype(np.int32), col.PLACE: runs.place[point_of]}
    columns["r"] = np.zeros(n, np.int64)
    for j, spec in enumerate(step.aggregates):
        p = f"a{j}."
        match spec.function:
            case _A.COUNT:
                columns[p + "n"] = points[p + "n"]
            case _A.SUM | _A.AVG | _A.SUM_REST:
                sum_columns = {
                    name.removeprefix(p): c for name, c in points.items() if name.startswith(p)
                }
                finished_sums = sums_at(
                    sum_columns, average=spec.function is _A.AVG, tuples=step.tuples
                )
                rest = spec.function is _A.SUM_REST
                finished_sums["fh"] = np.zeros(n)
                finished_sums["fl" if rest else "fh"] = double_sums(
                    f"{node.id}.limbs{j}", state, rows, runs, weights[j], slot=spec.slot, lost=rest
                )
                if not step.tuples:
                    key = f"{node.id}.large{j}"
                    w, slot = weights[j], spec.slot
                    finished_sums.update(large_at(key, state, rows, runs, w, slot=slot, pool=pool))
                columns.update({p + name: c for name, c in finished_sums.items()})
            case _:
                columns[p + "err"] = points[p + "err"]
                columns.update(
                    best_values(
                        f"{node.id}.values{j}{report_buffer.OWN}",
                        state,
                        rows,
                        runs,
                        spec=spec,
                        prefix=p,
                        pool=pool,
                    )
                )
    return Frame(columns, n)


def _emit_changes(values: Frame, runs: Runs, there: npt.NDArray[np.bool_]) -> Frame | None:
    """The row before each run out, the row after it in, where the group is there."""
    after = runs.after
    gone, come = np.flatnonzero(there[after - 1]), np.flatnonzero(there[after])
    if not len(gone) and not len(come):
        return None
    rows = values.take(np.concatenate([after[gone] - 1, after[come]]))
    sign = np.repeat(np.array([-1, 1], np.int8), (len(gone), len(come)))
    return rows.with_(r=np.concatenate([runs.r[gone], runs.r[come]]), w=sign)
