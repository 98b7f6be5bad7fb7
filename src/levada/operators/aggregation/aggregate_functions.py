"""Decomposable aggregates: partial sums of rows, sums of partials, and the final value (SPARQL 1.1,
18.5.1).

Each aggregate j keeps columns ``a{j}.*``: ``fold`` computes them from rows, ``merge`` from other
partials, and ``finish`` turns them into a slot. Sums are exact and independent of order. Integers
use two words, decimals three limbs at 18 digits behind the point, floats and doubles double-double
pairs with NaN and infinities counted apart; a double sum is rounded once at the end. A number that
does not fit is kept as a literal next to these columns (``large_sums``), if the slot's terms have
identities. A row whose value is unbound or, for SUM and AVG, not a number, is an error: the group's
value is unbound. COUNT ignores such rows, and all aggregates of tuples do (SQL's NULL): a group
without values has an unbound value there.

    COUNT           n              SUM, AVG   n err t ih il e0 e1 e2 fh fl nan pinf ninf (x y k)
    MIN MAX SAMPLE  err + the slot's columns of the row that wins
    USER            n err + the user's state (``user_aggregates``)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Ints, Longs
from levada.core.expressions import AggregateFunction
from levada.core.frame import Column, Frame
from levada.core.frozen import frozen
from levada.core.rdf_terms import Kind
from levada.kernels.keyed.double_double_sums import Sums, merge_dd, round_dd, sum_dd
from levada.kernels.keyed.group_sums import merge_int, round_int, sum_int, sum_weights, winners
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.aggregation import bignum_sums, decimal_sums, user_aggregates
from levada.operators.rows.route_rows import bind, value
from levada.operators.rows.term_columns import texts_of
from levada.plan.execution.steps import Aggregate

Rank = Callable[[Frame, int], npt.NDArray[np.float64] | npt.NDArray[np.int64]]


@frozen
class Lookup:
    """Term functions that aggregates need: the rank of a slot's values, and texts."""

    rank: Rank
    pool: TermLookup


_A = AggregateFunction
_DD = ("fh", "fl", "nan", "pinf", "ninf")
_TYPE = {Kind.INTEGER: 0, Kind.DECIMAL: 1, Kind.HARD_NUMBER: 1, Kind.FLOAT: 2, Kind.DOUBLE: 3}
_RANKS = np.array(
    [_TYPE.get(Kind(k), -1) if k in Kind._value2member_map_ else -1 for k in range(256)], np.int8
)


def fold(
    rows: Frame,
    codes: Ints,
    g: int,
    specs: Sequence[Aggregate],
    terms: Lookup,
) -> dict[str, Column]:
    """The partials of g groups from rows (``codes``: each row's group)."""
    columns: dict[str, Column] = {}
    for j, spec in enumerate(specs):
        match spec.function:
            case _A.COUNT:
                ones = (
                    np.ones(rows.n, np.int64)
                    if spec.slot < 0
                    else bind(rows, spec.slot).astype(np.int64)
                )
                columns[f"a{j}.n"] = sum_weights(codes, ones, g)
            case _A.SUM | _A.AVG | _A.SUM_REST:
                columns.update(_fold_sum(rows, codes, g, spec.slot, f"a{j}.", pool=terms.pool))
            case _A.USER:
                p = f"a{j}."
                columns.update(user_aggregates.fold(rows, codes, g, spec, p, pool=terms.pool))
            case _:
                columns.update(
                    _fold_winner(rows, codes, g, spec, i=spec.slot, p=f"a{j}.", rank=terms.rank)
                )
    return columns


def _fold_sum(
    rows: Frame, codes: Ints, g: int, i: int, p: str, *, pool: TermLookup
) -> dict[str, Column]:
    kind = rows[col.kind(i)]
    exact = decimal_sums.fold(rows, i, codes, g, partial(texts_of, pool))
    types = _RANKS.take(kind)
    types[exact.integers] = 0
    ones = np.ones(rows.n, np.int64)
    error = (types < 0) | exact.unknown
    out: dict[str, Column] = {
        p + "n": sum_weights(codes, ones, g),
        p + "err": _count(codes, error, g),
    }
    out[p + "t"] = _greatest_type(codes, types, g)
    integer = kind == Kind.INTEGER
    out[p + "ih"], out[p + "il"] = np.zeros(g, np.int64), np.zeros(g, np.int64)
    if integer.any():
        out[p + "ih"], out[p + "il"] = sum_int(
            codes, np.where(integer, value(rows, "m", i), 0), ones, g
        )
    for n in range(3):
        out[f"{p}e{n}"] = exact.limbs[n]
    if col.x(i) in rows:
        out.update({p + n: c for n, c in bignum_sums.columns(exact.large, g, pool).items()})
    floats = _select_codes(types >= 2, codes)
    out.update(zip([p + n for n in _DD], sum_dd(floats, value(rows, "d", i), ones, g), strict=True))
    return out


def _count(codes: Ints, mask: npt.NDArray[np.bool_], g: int) -> npt.NDArray[np.int64]:
    return sum_weights(codes, mask.astype(np.int64), g) if mask.any() else np.zeros(g, np.int64)


def _select_codes(mask: npt.NDArray[np.bool_], codes: Ints) -> Ints:
    """The codes of the rows that take part; -1 elsewhere."""
    if mask.all():
        return codes
    return np.where(mask, codes, np.int32(-1)).astype(np.int32, copy=False)


def _greatest_type(codes: Ints, types: npt.NDArray[np.int8], g: int) -> npt.NDArray[np.int8]:
    """Returns the greatest type of each group, at least 0. Either every group has rows, or there
    are no groups.
    """
    if len(types) and types.min() == types.max() >= 0:
        return np.full(g, types[0])
    out = np.zeros(g, np.int8)
    np.maximum.at(out, codes, types)
    return out


def _fold_winner(
    rows: Frame,
    codes: Ints,
    g: int,
    spec: Aggregate,
    *,
    i: int,
    p: str,
    rank: Rank,
    chosen: Longs | None = None,
) -> dict[str, Column]:
    """Selects the row with the least or greatest value of each group. All rows of SAMPLE have equal
    ranks, so the least identity wins.

    ``chosen``: the rows that ``codes`` describes (None: all).
    """
    there = bind(rows, i)
    ranks = np.zeros(rows.n, np.int64) if spec.function is _A.SAMPLE else rank(rows, i)
    x, y = _identity(rows, i)
    if chosen is not None:
        there, ranks, x, y = there.take(chosen), ranks.take(chosen), x.take(chosen), y.take(chosen)
    best = winners(_select_codes(there, codes), ranks, x, y, g, spec.function is _A.MAX)
    out: dict[str, Column] = {p + "err": _count(codes, ~there, g)}
    at = np.maximum(best, 0) if chosen is None or not len(chosen) else chosen[np.maximum(best, 0)]
    lost = (best < 0).nonzero()[0]
    for name in ("x", "y", "k", "d", "m", "c"):
        if f"{name}{i}" in rows:
            column = rows[f"{name}{i}"]
            out[p + name] = values = column.take(at) if rows.n else np.zeros(g, column.dtype)
            values[lost] = 0
    return out


def _identity(rows: Frame, i: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    if col.x(i) in rows:
        return rows[col.x(i)], rows[col.y(i)]
    m, d = (np.ascontiguousarray(value(rows, n, i)).view(np.uint64) for n in "md")
    return m, d


@frozen
class _Partials:
    """Partials to add up by group code: the ``chosen`` rows of a frame (None: all)."""

    parts: Frame
    chosen: Longs | None
    codes: Ints
    g: int

    def column(self, name: str) -> Column:
        column = self.parts[name]
        return column if self.chosen is None else column.take(self.chosen)

    def net(self, name: str) -> npt.NDArray[np.int64]:
        """The sums of a column; most columns of most sums are zero throughout, and cost nothing."""
        return (
            sum_weights(self.codes, self.column(name), self.g)
            if self.parts[name].any()
            else np.zeros(self.g, np.int64)
        )


def merge(
    parts: Frame,
    codes: Ints,
    g: int,
    specs: Sequence[Aggregate],
    terms: Lookup,
    *,
    chosen: Longs | None = None,
) -> dict[str, Column]:
    """Adds up partials into the partials of g groups. ``chosen`` selects partials (None: all); a
    partial may be in several groups.
    """
    columns: dict[str, Column] = {}
    partials = _Partials(parts, chosen, codes, g)
    for j, spec in enumerate(specs):
        p = f"a{j}."
        match spec.function:
            case _A.COUNT:
                columns[p + "n"] = partials.net(p + "n")
            case _A.SUM | _A.AVG | _A.SUM_REST:
                columns.update(_merge_sum(partials, p, terms.pool))
            case _A.USER:
                columns.update(user_aggregates.merge(parts, codes, g, spec, p, chosen=chosen))
            case _:
                columns.update(_merge_winner(partials, spec, p, terms.rank))
    return columns


def _merge_sum(partials: _Partials, p: str, pool: TermLookup) -> dict[str, Column]:
    parts, codes, g = partials.parts, partials.codes, partials.g
    out: dict[str, Column] = {p + n: partials.net(p + n) for n in ("n", "err")}
    out[p + "t"] = _greatest_type(codes, partials.column(p + "t"), g)
    names = [p + n for n in ("ih", "il", "e0", "e1", "e2")]
    out.update({n: np.zeros(g, np.int64) for n in names})
    if any(parts[n].any() for n in names[:2]):
        out[names[0]], out[names[1]] = merge_int(
            codes, partials.column(names[0]), partials.column(names[1]), g
        )
    if any(parts[n].any() for n in names[2:]):
        limbs = decimal_sums.merge([partials.column(n) for n in names[2:]], codes, g)
        out.update(zip(names[2:], limbs, strict=True))
    doubles = [p + n for n in _DD]
    if any(parts[n].any() for n in doubles):
        out.update(
            zip(
                doubles,
                merge_dd(codes, Sums(*(partials.column(n) for n in doubles)), g),
                strict=True,
            )
        )
    else:
        out.update(zip(doubles, Sums.zero(g), strict=True))
    if p + "x" in parts:
        some = parts[p + "k"].any()
        large_columns = {n: partials.column(p + n) for n in "xyk"} if some else {}
        large = bignum_sums.merge_sums(large_columns, codes, pool)
        out.update({p + n: c for n, c in bignum_sums.columns(large, g, pool).items()})
    return out


def _merge_winner(partials: _Partials, spec: Aggregate, p: str, rank: Rank) -> dict[str, Column]:
    """Selects the winner among the winners of the parts, as ``fold`` does among rows."""
    parts = partials.parts
    names = [n for n in ("x", "y", "k", "d", "m", "c") if p + n in parts]
    rows = Frame({f"{n}0": parts[p + n] for n in names}, parts.n)
    out = _fold_winner(
        rows, partials.codes, partials.g, spec, i=0, p=p, rank=rank, chosen=partials.chosen
    )
    out[p + "err"] = partials.net(p + "err")
    return out


def finish(
    parts: Frame, j: int, spec: Aggregate, pool: TermLookup, *, tuples: bool
) -> tuple[dict[str, Column], dict[int, str]]:
    """The value columns (x, y, k, d, m, c as far as there are) of aggregate j, one row a group;
    texts of HARD values. ``tuples``: integers have 64 bits, and unbound values are ignored.
    """
    p = f"a{j}."
    match spec.function:
        case _A.COUNT:
            return number(Kind.INTEGER, parts[p + "n"]), {}
        case _A.SUM | _A.AVG | _A.SUM_REST:
            large = bignum_sums.read({n: parts[p + n] for n in "xyk" if p + n in parts}, pool)
            if spec.function is _A.SUM_REST:
                return _finish_rest(parts, p), {}
            return _finish_sum(parts, p, large, average=spec.function is _A.AVG, tuples=tuples)
        case _A.USER:
            return user_aggregates.finish(parts, spec, p, tuples=tuples), {}
        case _:
            columns = {n: parts[p + n] for n in ("x", "y", "k", "d", "m", "c") if p + n in parts}
            ignores = tuples or spec.function is _A.SAMPLE
            failed = np.zeros(parts.n, bool) if ignores else parts[p + "err"] > 0
            if not failed.any():
                return columns, {}
            return {
                n: np.where(failed, np.zeros(1, c.dtype), c).astype(c.dtype, copy=False)
                for n, c in columns.items()
            }, {}


def number(kind: Kind, values: npt.NDArray[np.int64]) -> dict[str, Column]:
    """Value columns of integers."""
    n = len(values)
    kinds = np.full(n, kind, np.uint8)
    return {"k": kinds, "d": values.astype(np.float64), "m": values, "c": np.zeros(n, np.uint8)}


def _single(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sums of xsd:float, rounded to its precision; beyond its range they are infinite."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def _finish_rest(parts: Frame, p: str) -> dict[str, Column]:
    """Returns what the rounding of sums of doubles took from them; without a sum it is the low
    part.
    """
    high, low = parts[p + "fh"], parts[p + "fl"]
    columns = number(Kind.DOUBLE, np.zeros(parts.n, np.int64))
    columns["d"] = np.where(high == 0, low, (high - (high + low)) + low)
    return columns


def _finish_sum(
    parts: Frame, p: str, large: bignum_sums.Sums, *, average: bool, tuples: bool
) -> tuple[dict[str, Column], dict[int, str]]:
    """Returns the sum in the greatest type of the group: integer, decimal, float, double. AVG of
    integers is a decimal.
    """
    n, types = parts[p + "n"] - parts[p + "err"] * tuples, parts[p + "t"]
    ints = (parts[p + "ih"], parts[p + "il"])
    totals = decimal_sums.Totals([parts[f"{p}e{i}"] for i in range(3)], ints, large)
    sums, beyond = round_int(*ints)
    columns = number(Kind.INTEGER, sums)
    failed = n <= 0 if tuples else parts[p + "err"] > 0
    by_decimal = ((types == 1) | ((types == 0) & average & (n > 0))) & ~failed
    difficult = (types == 0) & (totals.has_non_integers | beyond) & ~by_decimal & ~failed
    hard = decimal_sums.write_integer_sums(columns, difficult.nonzero()[0], totals, bounded=tuples)
    divisors = n if average else None
    hard |= decimal_sums.finish(columns, by_decimal.nonzero()[0], totals, divisors)
    by_float = ((types >= 2) & ~failed).nonzero()[0]
    if len(by_float):
        floating = round_dd(Sums(*(parts[p + c][by_float] for c in _DD)))
        floating = floating + totals.doubles(by_float)
        value = floating / n[by_float] if average else floating
        single = types[by_float] == 2
        value[single] = _single(value[single])
        columns["k"][by_float] = np.where(single, Kind.FLOAT, Kind.DOUBLE)
        columns["d"][by_float] = value
        columns["m"][by_float] = 0
    columns["k"][failed] = Kind.UNBOUND
    return columns, hard
