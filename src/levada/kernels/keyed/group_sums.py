"""Folds of weighted rows by group: net weights, exact sums of integers, winners for MIN and MAX.

``codes`` are the group numbers of ``hash_groups.group`` (0 to g - 1); a row of code -1 is skipped.
Weights are int8 (rows) or int64 (netted rows). All folds are independent of the order of rows and
of the division into partial folds.

A sum of integers is a pair ``(high, low)`` with the value high * 2**32 + low with 0 <= low < 2**32:
it is exact for any 2**31 rows' worth of weights and adds up over partial folds; the final value
shows whether it fits in 64 bits (SPARQL's integers have no bound). Sums of doubles are in
``double_double_sums``.

Cost: 1 to 3 ns a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Ints, Longs, Words
from levada.kernels import F64, FLAG, I8, I32, I64, INT, U64, fuse, kernel

Weights = npt.NDArray[np.int8] | npt.NDArray[np.int64]

_LOW = 0xFFFFFFFF


@kernel((I32, I8, INT), (I32, I64, INT))
def sum_weights(codes: Ints, weights: Weights, g: int) -> Longs:
    """Returns the sum of weights per group: COUNT, and the net multiplicity of equal rows (0: they
    cancel).
    """
    out = np.zeros(g, np.int64)
    for i in range(codes.size):
        if codes[i] >= 0:
            out[codes[i]] += weights[i]
    return out


@fuse
def _carry(high: Longs, low: Longs) -> None:
    """Brings the low parts back to 0 <= low < 2**32."""
    for c in range(high.size):
        high[c] += low[c] >> 32
        low[c] &= _LOW


@kernel((I32, I64, I8, INT), (I32, I64, I64, INT))
def sum_int(codes: Ints, values: Longs, weights: Weights, g: int) -> tuple[Longs, Longs]:
    """The exact sum of value * weight per group, as (high, low); the weights of a group add up to
    less than 2**31.
    """
    high = np.zeros(g, np.int64)
    low = np.zeros(g, np.int64)
    for i in range(codes.size):
        if codes[i] >= 0:
            high[codes[i]] += (values[i] >> 32) * weights[i]
            low[codes[i]] += (values[i] & _LOW) * weights[i]
    _carry(high, low)
    return high, low


@kernel((I32, I64, I64, INT))
def merge_int(codes: Ints, high: Longs, low: Longs, g: int) -> tuple[Longs, Longs]:
    """The sums of partial sums per group, as (high, low)."""
    out_high = np.zeros(g, np.int64)
    out_low = np.zeros(g, np.int64)
    for i in range(codes.size):
        if codes[i] >= 0:
            out_high[codes[i]] += high[i]
            out_low[codes[i]] += low[i]
    _carry(out_high, out_low)
    return out_high, out_low


def round_int(high: Longs, low: Longs) -> tuple[Longs, npt.NDArray[np.bool_]]:
    """The sums as int64, and where they do not fit (no value there; the pair is still exact).

    >>> members, twice = np.zeros(2, np.int32), np.full(2, 2**62)
    >>> total, overflow = round_int(*sum_int(members, twice, np.ones(2, np.int8), 1))
    >>> bool(overflow[0])
    True
    """
    overflow = (high < -(2**31)) | (high >= 2**31)
    fits = np.where(overflow, 0, high)
    return (fits << 32) | low, overflow


@fuse
def _ranks_below(a: Any, b: Any) -> bool:
    """Whether rank a is below rank b; NaN is above all numbers."""
    return bool(a < b or (b != b and a == a))


@kernel((I32, F64, U64, U64, INT, FLAG), (I32, I64, U64, U64, INT, FLAG))
def winners(
    codes: Ints, rank: npt.NDArray[Any], tie_x: Words, tie_y: Words, g: int, greatest: bool
) -> Longs:
    """Returns the row of the least (or greatest) rank per group, -1 for a group without rows.

    Among equal ranks the row with the smaller identity ``(tie_y, tie_x)`` wins, and among equal
    identities the first row. NaN ranks above all numbers, -0.0 equals 0.0.
    """
    out = np.full(g, -1, np.int64)
    for i in range(codes.size):
        c = codes[i]
        if c < 0:
            continue
        j = out[c]
        if j < 0:
            out[c] = i
            continue
        ahead = _ranks_below(rank[j], rank[i]) if greatest else _ranks_below(rank[i], rank[j])
        behind = _ranks_below(rank[i], rank[j]) if greatest else _ranks_below(rank[j], rank[i])
        closer = tie_y[i] < tie_y[j] or (tie_y[i] == tie_y[j] and tie_x[i] < tie_x[j])
        if ahead or (not behind and closer):
            out[c] = i
    return out
