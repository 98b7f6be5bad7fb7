"""SUM and AVG by changes: what each row adds, what stands at each point (as
``operators/group/aggregates`` has it), exactly.

Integers are two words, decimals six halves of the limbs of ``operators/group/decimals``: these sums
are exact in int64 for any number of rows, and are carried where they are read. Floats and doubles
are sums without rounding (``kernels.time.running``), rounded at each point. How many rows have each
type says which type the sum has; one row that is no number leaves the group without a value.

Values of tuple streams are integers and doubles alone, and an average of these is a double.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from levada.kernels.time.running import running_sums
from levada.model import columns as col
from levada.model.frame import Column, Frame
from levada.model.term import Kind
from levada.operators.group import decimals
from levada.operators.group.group_changes import Runs
from levada.operators.rows.edges import value
from levada.operators.rows.values import texts_of
from levada.terms.term_pool import Pool
from levada.windows.state import tallies
from levada.windows.state.pieces import State

Changes = dict[str, npt.NDArray[Any]]
_FINITE = 0x7FF << 52
_HALVES = tuple(f"l{i}" for i in range(6))
_LIMBS = ("e0", "e1", "e2")


def sum_changes(rows: Frame, slot: int, pool: Pool, *, tuples: bool) -> Changes:
    """What each row adds to the counts and sums of its group."""
    kind, doubles = rows[col.kind(slot)], value(rows, "d", slot)
    integer, double = kind == Kind.INTEGER, kind == Kind.DOUBLE
    number, out = integer | double, {}
    if not tuples:
        single = kind == Kind.FLOAT
        halves, exact, too_great = _decimal_changes(rows, slot, pool)
        number |= single | ((kind == Kind.DECIMAL) | (kind == Kind.HARD_NUMBER)) & ~too_great
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
    rows: Frame, slot: int, pool: Pool
) -> tuple[Changes, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """The halves of each row's decimal or HARD number, whether it is no integer, and whether it is
    too great.
    """
    each = np.arange(rows.n, dtype=np.int32)
    limbs, integers, too_great = decimals.fold(rows, slot, each, rows.n, partial(texts_of, pool))
    kind = rows[col.kind(slot)]
    exact = (kind == Kind.DECIMAL) | (kind == Kind.HARD_NUMBER)
    exact[integers] = False
    return dict(zip(_HALVES, decimals.halves(limbs), strict=True)), exact, too_great


def sums_at(points: dict[str, Column], *, average: bool, tuples: bool) -> dict[str, Column]:
    """The partial sums at every point but for doubles, from what its rows add up to."""
    n = points["n"]
    out = {name: points[name] for name in ("n", "err", "nan", "pinf", "ninf")}
    out["ih"], out["il"] = points["ih"] + (points["il"] >> 32), points["il"] & 0xFFFFFFFF
    out["fl"] = np.zeros(len(n))
    double = points["nd"] > 0
    if tuples:
        out.update({name: np.zeros(len(n), np.int64) for name in _LIMBS})
        out["t"] = np.where(double | ((n > 0) & average), 3, 0).astype(np.int8)
        return out
    out.update(zip(_LIMBS, decimals.carry([points[name] for name in _HALVES]), strict=True))
    out["t"] = np.select([double, points["nf"] > 0, points["nx"] > 0], [3, 2, 1], 0).astype(np.int8)
    return out


def double_sums(
    key: str, state: State, rows: Frame, runs: Runs, weights: npt.NDArray[np.int8], *, slot: int
) -> npt.NDArray[np.float64]:
    """The exact sums of the finite floats and doubles of a slot at every point, rounded."""
    there = np.maximum(runs.rows, 0)
    bits, w = np.zeros(len(there), np.int64), np.zeros(len(there), np.int8)
    if rows.n:
        bits = np.ascontiguousarray(value(rows, "d", slot)[there]).view(np.int64)
        kind = rows[col.kind(slot)][there]
        floating = (kind == Kind.DOUBLE) | (kind == Kind.FLOAT)
        finite = floating & ((bits & _FINITE) != _FINITE) & (runs.rows >= 0)
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
