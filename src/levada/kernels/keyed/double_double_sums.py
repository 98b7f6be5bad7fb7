"""Sums of doubles as double-double pairs, so that neither the order nor the cut into epochs shows
(docs/architecture.md#a-triples-way).

A pair ``hi + lo`` with |lo| <= ulp(hi) / 2 carries about 106 bits. Each addition uses Knuth's
error-free sum (TwoSum) and renormalises; a product with a weight uses Dekker's error-free product.
The error of a fold of n rows is below n * 2**-103 times the sum of magnitudes, so that rounding
once at the report gives the same double for any order (unless the exact sum lies within that error
of a midpoint between two doubles).

NaN and the infinities do not enter the pair: they are counted by weight, and retracting them works.
A finite sum beyond the range of doubles counts as the infinity of its sign from there on (as
xsd:double's own addition would have it).

Cost: about 5 ns a row, a partial sum about the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from levada.core.array_types import Doubles, Ints, Longs
from levada.kernels import F64, FLAG, I8, I32, I64, INT, fuse, kernel
from levada.kernels.keyed.group_sums import Weights

_SPLIT = 134217729.0  # 2**27 + 1: halves a double's bits
_SPLITTABLE = 2.0**995  # above it, splitting overflows
_GREATEST = float(np.finfo(np.float64).max)


class Sums(NamedTuple):
    """Sums of doubles per group: the pair, and the weights of NaN, +INF and -INF."""

    hi: Doubles
    lo: Doubles
    nan: Longs
    pinf: Longs
    ninf: Longs

    @classmethod
    def zero(cls, g: int) -> Sums:
        """The sums of g groups without rows."""
        return cls(np.zeros(g), np.zeros(g), *(np.zeros(g, np.int64) for _ in range(3)))


@fuse
def two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b as rounded sum and its exact error."""
    s = a + b
    part = s - a
    return s, (a - (s - part)) + (b - part)


@fuse
def _split_double(a: float) -> tuple[float, float]:
    big = _SPLIT * a
    high = big - (big - a)
    return high, a - high


@fuse
def two_product(a: float, b: float) -> tuple[float, float]:
    """a * b as rounded product and its exact error (0 where a half leaves the doubles' range)."""
    p = a * b
    if b == 1.0 or b == -1.0 or abs(a) > _SPLITTABLE or abs(p) > _SPLITTABLE:
        return p, 0.0
    a_high, a_low = _split_double(a)
    b_high, b_low = _split_double(b)
    return p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low


@fuse
def _put(
    c: int, high: float, low: float, hi: Doubles, lo: Doubles, pinf: Longs, ninf: Longs
) -> None:
    """Adds a pair to group c; a sum out of range counts as an infinity and leaves the group's pair
    as it was.
    """
    s, error = two_sum(hi[c], high)
    error += lo[c] + low
    total = s + error
    if abs(total) <= _GREATEST:
        hi[c] = total
        lo[c] = error - (total - s)
    elif hi[c] + high > 0.0:
        pinf[c] += 1
    else:
        ninf[c] += 1


@kernel((I32, F64, I8, INT), (I32, F64, I64, INT))
def _sum_dd(
    codes: Ints, values: Doubles, weights: Weights, g: int
) -> tuple[Doubles, Doubles, Longs, Longs, Longs]:
    hi, lo = np.zeros(g), np.zeros(g)
    nan, pinf, ninf = np.zeros(g, np.int64), np.zeros(g, np.int64), np.zeros(g, np.int64)
    for i in range(codes.size):
        c, v = codes[i], values[i]
        if c < 0 or weights[i] == 0:
            continue
        if abs(v) <= _GREATEST:
            high, low = two_product(v, float(weights[i]))
            _put(c, high, low, hi, lo, pinf, ninf)
        elif v > 0.0:
            pinf[c] += weights[i]
        elif v < 0.0:
            ninf[c] += weights[i]
        else:
            nan[c] += weights[i]
    return hi, lo, nan, pinf, ninf


@kernel((I32, F64, F64, I64, I64, I64, FLAG, INT))
def _merge_dd(
    codes: Ints,
    in_hi: Doubles,
    in_lo: Doubles,
    in_nan: Longs,
    in_pinf: Longs,
    in_ninf: Longs,
    special: bool,
    g: int,
) -> tuple[Doubles, Doubles, Longs, Longs, Longs]:
    hi, lo = np.zeros(g), np.zeros(g)
    nan, pinf, ninf = np.zeros(g, np.int64), np.zeros(g, np.int64), np.zeros(g, np.int64)
    for i in range(codes.size):
        c = codes[i]
        if c < 0:
            continue
        if special:
            nan[c] += in_nan[i]
            pinf[c] += in_pinf[i]
            ninf[c] += in_ninf[i]
        _put(c, in_hi[i], in_lo[i], hi, lo, pinf, ninf)
    return hi, lo, nan, pinf, ninf


def sum_dd(codes: Ints, values: Doubles, weights: Weights, g: int) -> Sums:
    """The sum of value * weight per group (weights below 2**53); rows of code -1 take no part.

    >>> sums = sum_dd(np.zeros(3, np.int32), np.array([1e16, 1.0, -1e16]), np.ones(3, np.int8), 1)
    >>> round_dd(sums).tolist()
    [1.0]
    """
    return Sums(*_sum_dd(codes, values, weights, g))


def merge_dd(codes: Ints, partial: Sums, g: int) -> Sums:
    """The sums of partial sums (panes, epochs, partitions) per group."""
    special = bool(partial.nan.any() or partial.pinf.any() or partial.ninf.any())
    return Sums(*_merge_dd(codes, *partial, special, g))


def round_dd(sums: Sums) -> Doubles:
    """The sums as doubles: NaN if a NaN or both infinities are in, else the infinity, else
    hi + lo.
    """
    finite = sums.hi + sums.lo
    above, below = sums.pinf > 0, sums.ninf > 0
    infinite = np.where(above, np.inf, np.where(below, -np.inf, finite))
    return np.where((sums.nan > 0) | (above & below), np.nan, infinite)
