"""GROUP BY by changes: at each report at which a group's rows change, its row before out and its
row after in (docs/architecture.md#a-triples-way).

The changes of an epoch are put in order of (group, report); each report of a group is a *run* of
changes. What a group stood at before, and the sums of its runs one after the other, give its
aggregates at every report at once:

    COUNT, SUM, AVG   integers and counts by cumulative sums; doubles exactly, by ``kernels.time.running``
    MIN, MAX          how often each value of the group stands, and the best one that does
    DISTINCT          the same of values, which come and go with their rows (``operators/group/distinct_by_changes``)

The state are tallies by group: sums, limbs of double sums, counts of values. So the work of an
epoch is its changes. Without keys there is one group, which is there as long as some window holds
something. Values are those of tuple streams: a value beyond 64 bits, like none, leaves the
aggregate without a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from levada.kernels.keyed.groups import group
from levada.kernels.time.running import running_sums
from levada.model import columns as col
from levada.model.expression import AggregateFunction
from levada.model.frame import Column, Frame, concat
from levada.model.term import Kind
from levada.operators.border import report_buffer as live
from levada.operators.env import Env, Inputs
from levada.operators.group.best_by_changes import best_values
from levada.operators.group.distinct_by_changes import distinct_weights
from levada.operators.group.panes import finished, group_columns
from levada.operators.rows.edges import bind, empty, key_of, value
from levada.plan.sealed import steps as s
from levada.plan.sealed.plan import PlanNode
from levada.terms.term_pool import Pool
from levada.windows.state import tallies
from levada.windows.state.pieces import State

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
_A = AggregateFunction
_FINITE = 0x7FF << 52


@dataclass(frozen=True, slots=True)
class Runs:
    """The changes in order of (group, report).

    ``rows`` of the input frame (-1: a witness), ``w`` their weights, ``run`` of each; per run its
    group ``of`` and report ``r``; ``starts`` of each group's changes; the groups' keys ``k, h`` and
    a change of each, ``first``.
    """

    rows: Longs
    w: npt.NDArray[np.int8]
    run: Longs
    of: Longs
    r: Longs
    starts: Longs
    k: Words
    h: Words
    first: Longs

    @property
    def groups(self) -> int:
        """How many groups change."""
        return len(self.k)

    @property
    def before(self) -> Longs:
        """The point of each group before its first run; the points of its runs follow."""
        return np.searchsorted(self.of, np.arange(self.groups)) + np.arange(self.groups)

    @property
    def after(self) -> Longs:
        """The point after each run."""
        return np.arange(len(self.of)) + self.of + 1

    def at_points(self, base: Longs, changes: Longs) -> Longs:
        """The value at each point, from that before and the change of each run."""
        out = np.zeros(self.groups + len(self.of), np.int64)
        out[self.before], out[self.after] = base, changes
        sums = np.cumsum(out)
        earlier = sums[self.before] - base
        sums[self.before] -= earlier
        sums[self.after] -= earlier[self.of]
        return sums

    def placed(self, base: Column, values: Column) -> Column:
        """Values at each point, those before and those after each run."""
        out = np.empty(self.groups + len(self.of), values.dtype)
        out[self.before], out[self.after] = base, values
        return out


def running(node: PlanNode[s.Running], inputs: Inputs, env: Env) -> Frame | None:
    """The changes of the groups' rows, from the changes of the input and, without keys, of the
    witnesses.
    """
    step, state, pool = node.step, env.state, env.pool
    rows = inputs[0] if inputs[0] is not None else empty(node.input_layouts[0])
    witnesses = [f for f in inputs[1:] if f is not None and f.n]
    if not rows.n and not witnesses:
        return None
    runs = _runs(step, rows, witnesses)
    weights = _weights(node, step, state, rows, runs)
    sums = _sums(step, rows, runs, weights, witnessed=len(inputs) > 1)
    key = f"{node.id}.groups"
    names = tuple(sums)
    kept = tallies.find(state, key, runs.k, runs.h)
    points: dict[str, Column] = {}
    totals: dict[str, Column] = {col.KEY: runs.k, col.CHECK: runs.h}
    for name, changes in sums.items():
        base = np.zeros(runs.groups, np.int64)
        if kept is not None:
            np.add.at(base, kept[0], kept[1][name])
        points[name] = runs.at_points(base, changes)
        totals[name] = np.zeros(runs.groups, np.int64)
        np.add.at(totals[name], runs.of, changes)
    tallies.insert(
        state,
        key,
        tallies.add(Frame(totals, runs.groups), (), names),
        partial(tallies.add, by=(), sums=names),
    )
    merged = _merge(node, step, state, rows, runs=runs, weights=weights, points=points, pool=pool)
    return _changed(finished(node, step, merged, pool), runs, points[col.STANDING] > 0)


def _runs(step: s.Running, rows: Frame, witnesses: Sequence[Frame]) -> Runs:
    """The changes in order; of the one group without keys the witnesses are changes, too."""
    parts = [rows, *witnesses]
    keys = [key_of(rows, step.keys), *(key_of(f, ()) for f in witnesses)]
    k, h = (np.concatenate([pair[i] for pair in keys]) for i in (0, 1))
    r, w = (np.concatenate([f[name] for f in parts]) for name in ("r", "w"))
    op = np.concatenate([f["op"] for f in parts])
    at = np.concatenate([np.arange(rows.n), np.full(len(k) - rows.n, -1, np.int64)])
    codes, first = group(k, h)
    order = np.lexsort((r, codes))
    codes_, r_ = codes[order].astype(np.int64), r[order]
    new = np.ones(len(order), bool)
    new[1:] = (codes_[1:] != codes_[:-1]) | (r_[1:] != r_[:-1])
    starts = np.searchsorted(codes_, np.arange(len(first) + 1))
    member = first if step.keys else op[first].astype(np.int64)
    return Runs(
        at[order],
        w[order].astype(np.int8),
        np.cumsum(new) - 1,
        codes_[new],
        r_[new],
        starts,
        k[first],
        h[first],
        member,
    )


def _weights(
    node: PlanNode, step: s.Running, state: State, rows: Frame, runs: Runs
) -> list[npt.NDArray[np.int8]]:
    """Of each aggregate the weight of each change; of DISTINCT ones by the values. The best of
    distinct ones is the best of all.
    """
    adds = [a.distinct and a.function not in (_A.MIN, _A.MAX) for a in step.aggregates]
    of = np.repeat(np.arange(runs.groups), np.diff(runs.starts))
    return [
        distinct_weights(
            state,
            f"{node.id}.distinct{j}",
            rows,
            a.slot,
            at=runs.rows,
            w=runs.w,
            of=(runs.k[of], runs.h[of]),
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
    *,
    witnessed: bool,
) -> dict[str, Longs]:
    """Per run, by how much each count and sum of integers changes. ``#rows``: what keeps the group
    there.
    """
    n = len(runs.of)
    there = runs.rows >= 0
    at, w, run = runs.rows[there], runs.w[there].astype(np.int64), runs.run[there]

    def total(values: Longs, where: npt.NDArray[np.bool_] | slice = slice(None)) -> Longs:
        out = np.zeros(n, np.int64)
        np.add.at(out, run[where], values)
        return out

    out = {col.STANDING: total(w)}
    if witnessed:
        out[col.STANDING] = np.zeros(n, np.int64)
        np.add.at(out[col.STANDING], runs.run[~there], runs.w[~there])
    for j, spec in enumerate(step.aggregates):
        p = f"a{j}."
        w = weights[j][there].astype(np.int64)
        if spec.function is _A.COUNT:
            out[p + "n"] = total(w) if spec.slot < 0 else total(w * bind(rows, spec.slot)[at])
            continue
        if spec.function in (_A.MIN, _A.MAX):
            out[p + "err"] = total(w * ~bind(rows, spec.slot)[at])
            continue
        kind, integers = rows[col.kind(spec.slot)][at], value(rows, "m", spec.slot)[at]
        doubles = value(rows, "d", spec.slot)[at]
        integer, double = kind == Kind.INTEGER, kind == Kind.DOUBLE
        out[p + "n"] = total(w)
        out[p + "err"] = total(w * ~(integer | double))
        whole = np.where(integer, integers, 0)
        out[p + "ih"], out[p + "il"] = total(w * (whole >> 32)), total(w * (whole & 0xFFFFFFFF))
        out[p + "nd"] = total(w * double)
        out[p + "nan"] = total(w * (double & np.isnan(doubles)))
        out[p + "pinf"] = total(w * (double & (doubles == np.inf)))
        out[p + "ninf"] = total(w * (double & (doubles == -np.inf)))
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
    pool: Pool,
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
        columns = {"op": runs.first[point_of].astype(np.int32)}
    columns["r"] = np.zeros(n, np.int64)
    for j, spec in enumerate(step.aggregates):
        p = f"a{j}."
        match spec.function:
            case _A.COUNT:
                columns[p + "n"] = points[p + "n"]
            case _A.SUM | _A.AVG:
                columns.update(
                    _sum_columns(
                        node, state, rows, runs, weights=weights[j], points=points, j=j, spec=spec
                    )
                )
            case _:
                columns[p + "err"] = points[p + "err"]
                own = (
                    "" if step.keys else live.OWN
                )  # without keys the changes come from another stage
                columns.update(
                    best_values(
                        f"{node.id}.values{j}{own}",
                        state,
                        rows,
                        runs,
                        spec=spec,
                        prefix=p,
                        pool=pool,
                    )
                )
    return Frame(columns, n)


def _sum_columns(
    node: PlanNode,
    state: State,
    rows: Frame,
    runs: Runs,
    *,
    weights: npt.NDArray[np.int8],
    points: dict[str, Column],
    j: int,
    spec: s.Aggregate,
) -> dict[str, Column]:
    """SUM and AVG at every point; an average is a double, also one of integers."""
    p = f"a{j}."
    none = np.zeros(len(points[p + "n"]), np.int64)
    out = {p + name: points[p + name] for name in ("n", "err", "nan", "pinf", "ninf")}
    out[p + "ih"], out[p + "il"] = (
        points[p + "ih"] + (points[p + "il"] >> 32),
        points[p + "il"] & 0xFFFFFFFF,
    )
    out.update({f"{p}e{i}": none for i in range(3)})
    as_double = (points[p + "nd"] > 0) | ((points[p + "n"] > 0) & (spec.function is _A.AVG))
    out[p + "t"] = np.where(as_double, 3, 0).astype(np.int8)
    out[p + "fh"], out[p + "fl"] = (
        _double_sums(f"{node.id}.limbs{j}", state, rows, runs, weights, slot=spec.slot),
        np.zeros(len(none)),
    )
    return out


def _double_sums(
    key: str, state: State, rows: Frame, runs: Runs, weights: npt.NDArray[np.int8], *, slot: int
) -> npt.NDArray[np.float64]:
    """The exact sums of the finite doubles of a slot at every point, rounded."""
    there = np.maximum(runs.rows, 0)
    bits, w = np.zeros(len(there), np.int64), np.zeros(len(there), np.int8)
    if rows.n:
        bits = np.ascontiguousarray(value(rows, "d", slot)[there]).view(np.int64)
        finite = (
            (rows[col.kind(slot)][there] == Kind.DOUBLE)
            & ((bits & _FINITE) != _FINITE)
            & (runs.rows >= 0)
        )
        bits, w = np.where(finite, bits, 0), np.where(finite, weights, 0).astype(np.int8)
    kept = tallies.find(state, key, runs.k, runs.h)
    nothing = np.empty(0, np.int64)
    of, limb, base = (
        (nothing, nothing, nothing)
        if kept is None
        else (kept[0], kept[1][col.SUM], kept[1][col.COUNT])
    )
    order = np.argsort(of, kind="stable")
    base_starts = np.searchsorted(of[order], np.arange(runs.groups + 1))
    before, after, changed, place, change = running_sums(
        runs.starts, runs.run, bits, w, base_starts, limb[order], base[order], len(runs.of)
    )
    rest = Frame(
        {col.KEY: runs.k[changed], col.CHECK: runs.h[changed], col.SUM: place, col.COUNT: change},
        len(changed),
    )
    tallies.insert(state, key, rest, partial(tallies.add, by=(col.SUM,), sums=(col.COUNT,)))
    return runs.placed(before, after)


def _changed(values: Frame, runs: Runs, there: npt.NDArray[np.bool_]) -> Frame | None:
    """The row before each run out, the row after it in, where the group is there."""
    after = runs.after
    before = after - 1
    parts = []
    for at, weight in ((before, -1), (after, 1)):
        real = np.flatnonzero(there[at])
        if len(real):
            rows = values.take(at[real])
            parts.append(rows.with_(r=runs.r[real], w=np.full(len(real), weight, np.int8)))
    return concat(parts) if parts else None
