"""Exact sums of decimals: 18 digits behind the point, in three signed limbs of 48 bits (2**144 in all).

xsd:decimal as Levada (like its judge) takes it has 18 fraction digits. Decimals are folded through Python integers, once
per distinct (group, value); sums of limbs stay int64 and are normalised at every step. HARD numbers (more than 18 digits)
are read from their text by ``hard``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation

import numpy as np
import numpy.typing as npt

from levada.kernels.sums import net
from levada.model.frame import Column, Frame
from levada.model.term import XSD, Kind
from levada.operators.rows import value

SCALE = 18
UNIT = 10**SCALE
LIMB = 48
MASK = (1 << LIMB) - 1
GREATEST = 2**127  # of the judge's 128-bit decimals

Longs = npt.NDArray[np.int64]
Hard = Callable[[Frame, int, npt.NDArray[np.int64]], list[str]]


def fold(
    rows: Frame, i: int, at: npt.NDArray[np.int64], codes: npt.NDArray[np.int32], g: int, hard: Hard
) -> list[Longs]:
    """The limbs of the sums of the decimals of slot ``i`` in the rows ``at``."""
    limbs = [np.zeros(g, np.int64) for _ in range(3)]
    if not len(at):
        return limbs
    difficult = rows[f"k{i}"][at] == Kind.HARD_NUMBER
    values = _values(rows, i, at, difficult, hard)
    for group, scaled_value in zip(codes[at].tolist(), values, strict=True):
        for n in range(3):
            limbs[n][group] += (scaled_value >> (LIMB * n)) & MASK if n < 2 else scaled_value >> (2 * LIMB)
    return _carried(limbs)


def _values(rows: Frame, i: int, at: npt.NDArray[np.int64], difficult: npt.NDArray[np.bool_], hard: Hard) -> list[int]:
    """Each row's value at the common scale."""
    m, c = value(rows, "m", i)[at].tolist(), value(rows, "c", i)[at].tolist()
    values = [mantissa * 10 ** (SCALE - scale) for mantissa, scale in zip(m, c, strict=True)]
    where = np.flatnonzero(difficult)
    for n, text in zip(where.tolist(), hard(rows, i, at[where]) if len(where) else [], strict=True):
        values[n] = scaled(text)
    return values


def scaled(lexical: str) -> int:
    """A decimal's value times 10**18, digits beyond cut off.

    >>> scaled("-1.5")
    -1500000000000000000
    """
    try:
        return int(Decimal(lexical).scaleb(SCALE).to_integral_value(rounding="ROUND_DOWN"))
    except InvalidOperation:
        return 0


def _carried(limbs: Sequence[Longs]) -> list[Longs]:
    out = [limb.copy() for limb in limbs]
    for n in range(2):
        out[n + 1] += out[n] >> LIMB
        out[n] &= MASK
    return out


def merge(limbs: Sequence[Longs], codes: npt.NDArray[np.int32], g: int) -> list[Longs]:
    """The sums of sums per group (fewer than 2**15 parts at a time keep within int64)."""
    if not any(limb.any() for limb in limbs):
        return [np.zeros(g, np.int64) for _ in limbs]
    return _carried([net(codes, limb, g) for limb in limbs])


def total(limbs: Sequence[Longs], ints: tuple[Longs, Longs], at: int) -> int:
    """A group's sum of decimals and integers at the common scale."""
    whole = (int(ints[0][at]) << 32) + int(ints[1][at])
    low, middle, high = (int(limb[at]) for limb in limbs)
    return low + (middle << LIMB) + (high << 2 * LIMB) + whole * UNIT


def as_double(limbs: Sequence[Longs], high: Longs, low: Longs, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The exact part of groups whose sum is a double: whole numbers by columns, decimals one by one."""
    if not any(limb[at].any() for limb in limbs):
        return (high[at] * 4294967296.0 + low[at]).astype(np.float64)
    return np.array([total(limbs, (high, low), i) / UNIT for i in at.tolist()], np.float64)


def finish(
    columns: dict[str, Column], at: npt.NDArray[np.int64], limbs: Sequence[Longs], ints: tuple[Longs, Longs],
    n: Longs, average: bool,
) -> dict[int, str]:  # fmt: skip
    """Writes the decimal results of the groups ``at``; returns the texts of those that no int64 mantissa holds."""
    hard: dict[int, str] = {}
    for i in at.tolist():
        value = total(limbs, ints, i)
        if average:
            value = _divided(value, int(n[i]))
        mantissa, scale = _shortest(value)
        fits = abs(mantissa) < 2**63
        columns["k"][i] = Kind.DECIMAL if fits else Kind.HARD_NUMBER
        columns["d"][i] = value / UNIT
        columns["m"][i] = mantissa if fits else 0
        columns["c"][i] = scale
        if abs(value) >= GREATEST:
            columns["k"][i] = Kind.UNBOUND
        elif not fits:
            hard[i] = f'"{Decimal(mantissa).scaleb(-scale):f}"^^<{XSD}decimal>'
    return hard


def _divided(value: int, n: int) -> int:
    """Towards zero, as XPath's decimals of bounded precision are."""
    quotient: int = abs(value) // n
    return quotient if value >= 0 else -quotient


def _shortest(value: int) -> tuple[int, int]:
    """(mantissa, scale) without trailing zeros."""
    scale = SCALE
    while scale and value % 10 == 0:
        value //= 10
        scale -= 1
    return value, scale
