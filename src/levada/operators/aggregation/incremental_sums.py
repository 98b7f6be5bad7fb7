"""Incremental SUM and AVG: the contribution of each row, and the exact sum at each point (with the
columns of ``aggregate_functions``).

Integers use two words, decimals six halves of the limbs of ``decimal_sums``: these sums are exact
in int64 for any number of rows, and are carried when they are read. Floats and doubles are summed
without rounding (``kernels.time.running_aggregates``) and rounded at each point. Numbers that do
not fit in limbs are kept as digits to the base 10^9, by place, and added up one by one. The number
of rows of each type determines the type of the sum; one row that is not a number leaves the group
without a value.

Values of tuple streams are only integers and doubles, and their average is a double.
"""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.frame import Column, Frame
from levada.core.rdf_terms import Kind
from levada.kernels.keyed.radix_sort import in_order
from levada.kernels.terms.term_lookup import TermLookup
from levada.kernels.time.running_aggregates import running_sums
from levada.operators.aggregation import bignum_sums, decimal_sums
from levada.operators.aggregation.ordered_changes import Runs
from levada.operators.expressions.scalar.numbers import EXACT
from levada.operators.rows.route_rows import value
from levada.operators.rows.term_columns import texts_of
from levada.operators.state import counters
from levada.operators.state.state_parts import State

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
    kept = counters.find(state, key, runs.k, runs.h)
    nothing = np.empty(0, np.int64)
    of, limb, base = (
        (nothing, nothing, nothing)
        if kept is None
        else (kept[0], kept[1][col.SUM], kept[1][col.COUNT])
    )
    order = in_order(of)
    base_starts = np.searchsorted(of[order], np.arange(runs.groups + 1))
    before, after, changed, place, change = running_sums(
        runs.starts, runs.run, bits, w, base_starts, limb[order], base[order], len(runs.of)
    )
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
    kept = counters.find(state, key, runs.k, runs.h)
    if not large_numbers and kept is None:
        return bignum_sums.columns({}, n, pool)
    base: bignum_sums.Sums = {}
    if kept is not None:
        places, digits = (kept[1][name].tolist() for name in (col.SUM, col.COUNT))
        for g, place, digit in zip(kept[0].tolist(), places, digits, strict=True):
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
