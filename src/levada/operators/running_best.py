"""MIN and MAX by changes: how often each value of a group stands, and the best of those that do.

The values of the groups that change, those that are kept and those that come, are ranked together; ``kernels.running.running_best``
then follows the changes. Cost: the changes and the distinct values of their groups.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from levada.algebra.expression import AggregateFunction
from levada.kernels.groups import group
from levada.kernels.keyed import combine
from levada.kernels.running import running_best
from levada.model.frame import Column, Frame, concat
from levada.operators.expressions import compare_rank
from levada.operators.pool import Pool
from levada.operators.rows import bound, value
from levada.operators.values import column
from levada.plan import shapes as s
from levada.windows import tallies
from levada.windows.pieces import State

if TYPE_CHECKING:
    from levada.operators.running import Runs

Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
_FACETS = ("x", "y", "k", "d", "m", "c")


def best_values(
    key: str, state: State, rows: Frame, runs: Runs, spec: s.Aggregate, prefix: str, pool: Pool
) -> dict[str, Column]:  # fmt: skip
    """The columns of the least or greatest value of each group at every point; zeros where none stands."""
    there = np.flatnonzero(runs.rows >= 0)
    there = there[bound(rows, spec.slot)[runs.rows[there]]] if rows.n else there[:0]
    group_of = np.repeat(np.arange(runs.groups), np.diff(runs.starts))
    new = (
        _slot(rows, spec.slot)
        .take(runs.rows[there])
        .with_(**{"#g": group_of[there], "#n": np.zeros(len(there), np.int64)})
    )
    kept = tallies.found(state, key, runs.k, runs.h)
    values = new if kept is None else concat([kept[1].with_(**{"#g": kept[0]}).select(new.columns), new])
    codes, first = group(*_identity(values, values["#g"]))
    distinct = values.take(first)
    counts = np.zeros(len(first), np.int64)
    np.add.at(counts, codes, values["#n"])
    order = _ranked(distinct, spec.function is AggregateFunction.MIN, pool)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    at = np.full(len(runs.rows), -1, np.int64)
    at[there] = place[codes[values.n - new.n :]]
    value_starts = np.searchsorted(distinct["#g"][order], np.arange(runs.groups + 1))
    before, after = running_best(runs.starts, runs.run, at, runs.w, value_starts, counts[order], len(runs.of))
    _remember(key, state, distinct.take(order), at, runs)
    best = runs.placed(before, after)
    return {prefix + name: _taken(distinct[f"{name}0"][order], best) for name in _FACETS if f"{name}0" in distinct}


def _slot(rows: Frame, i: int) -> Frame:
    """The columns of slot ``i`` as those of slot 0."""
    return Frame({f"{name}0": rows[f"{name}{i}"] for name in _FACETS if f"{name}{i}" in rows}, rows.n)


def _identity(values: Frame, of: Longs) -> tuple[Words, Words]:
    """A key of group and value."""
    if "x0" in values:
        x, y = values["x0"], values["y0"]
    else:
        x, y = (np.ascontiguousarray(value(values, n, 0)).view(np.uint64) for n in "md")
    return combine(x, y, np.ascontiguousarray(of).view(np.uint64), np.zeros(values.n, np.uint64))


def _ranked(values: Frame, least: bool, pool: Pool) -> Longs:
    """The values by group, each group's from the worst to the best; of equal ones the greatest identity first."""
    if not values.n:
        return np.empty(0, np.int64)
    rank = np.unique(compare_rank(column(values, 0, pool)), return_inverse=True)[1]
    x, y = _identity(values, np.zeros(values.n, np.int64))
    return np.lexsort((~x, ~y, -rank if least else rank, values["#g"]))


def _remember(key: str, state: State, values: Frame, at: Longs, runs: Runs) -> None:
    """Adds what each value's count has changed by."""
    change = np.zeros(values.n, np.int64)
    np.add.at(change, at[at >= 0], runs.w[at >= 0])
    of = values["#g"]
    plain = {n: c for n, c in values.columns.items() if n != "#g"}
    rows = Frame({**plain, "#k": runs.k[of], "#h": runs.h[of], "#n": change}, values.n).where(change != 0)
    tallies.insert(state, key, rows, partial(_added, key))


def _added(key: str, rows: Frame) -> Frame:
    words = [n for n in ("x0", "y0") if n in rows] or [n for n in ("m0", "d0") if n in rows]
    return tallies.added(rows, tuple(words), ("#n",))


def _taken(values: Column, best: Longs) -> Column:
    if not len(values):
        return np.zeros(len(best), values.dtype)
    return np.where(best >= 0, values[np.maximum(best, 0)], np.zeros(1, values.dtype)).astype(values.dtype)
