"""Exact sums of decimals: 18 digits behind the point, in three signed limbs of 48 bits.

xsd:decimal as Levada (like its judge) takes it has 18 fraction digits and 127 bits. Mantissas
become limbs by schoolbook multiplication of 24-bit digits; limbs are added up by halves, so that no
number of rows overflows an int64. HARD numbers (more than 18 digits) are read from their texts by
``hard``; those that 127 bits do not hold are no operands, and a sum that they do not hold has no
value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from levada.kernels.keyed.sums import net
from levada.model import columns as col
from levada.model.arrays import Ints, Longs
from levada.model.frame import Column, Frame
from levada.model.term import XSD, Kind
from levada.operators.rows.edges import value

SCALE = 18
UNIT = 10**SCALE
LIMB = 48
MASK = (1 << LIMB) - 1
HALF = 24
HALF_MASK = (1 << HALF) - 1
GREATEST = 2**127  # of the judge's 128-bit decimals

Hard = Callable[[Frame, int, npt.NDArray[np.int64]], list[str]]
_POWERS = np.array([10 ** (SCALE - scale) for scale in range(SCALE + 1)], np.int64)


def fold(
    rows: Frame, i: int, codes: Ints, g: int, hard: Hard
) -> tuple[list[Longs], Longs, npt.NDArray[np.bool_]]:
    """Of the decimals and HARD numbers of slot ``i``: the limbs of the groups' sums, the rows that
    are HARD integers, and where (of all rows) a number is too great.
    """
    kind = rows[col.kind(i)]
    too_great = np.zeros(rows.n, bool)
    plain, difficult = (
        np.flatnonzero(kind == Kind.DECIMAL),
        np.flatnonzero(kind == Kind.HARD_NUMBER),
    )
    limbs = [np.zeros(g, np.int64) for _ in range(3)]
    if len(plain):
        limbs = _add(
            _limbs(value(rows, "m", i)[plain], value(rows, "c", i)[plain]), codes[plain], g
        )
    if not len(difficult):
        return limbs, difficult, too_great
    texts = hard(rows, i, difficult)
    values = [scaled(t[1 : t.rindex('"')]) for t in texts]
    fits = np.array([abs(v) < GREATEST for v in values], bool)
    too_great[difficult[~fits]] = True
    whole = np.array([not t.endswith("#decimal>") for t in texts], bool)
    own = _split([v if ok else 0 for v, ok in zip(values, fits.tolist(), strict=True)])
    both = [np.concatenate([limb, more]) for limb, more in zip(limbs, own, strict=True)]
    where = np.concatenate([np.arange(g, dtype=np.int32), codes[difficult]])
    return _add(both, where, g), difficult[whole], too_great


def scaled(lexical: str) -> int:
    """A decimal's value times 10**18, digits beyond cut off.

    >>> scaled("-1.5")
    -1500000000000000000
    """
    whole, _, fraction = lexical.strip().partition(".")
    return int(whole + fraction[:SCALE].ljust(SCALE, "0"))


def _limbs(m: Longs, c: npt.NDArray[np.uint8]) -> list[Longs]:
    """m * 10**(18 - c) as three limbs each (m of at most 18 digits)."""
    size, power = np.abs(m), _POWERS[c]
    a, b = ([(x >> HALF * n) & HALF_MASK for n in range(3)] for x in (size, power))
    digits = [np.zeros(len(m), np.int64) for _ in range(6)]
    for n, x in enumerate(a):
        for k, y in enumerate(b):
            digits[n + k] += x * y
    for n in range(5):
        digits[n + 1] += digits[n] >> HALF
        digits[n] &= HALF_MASK
    return [np.sign(m) * (digits[n] | digits[n + 1] << HALF) for n in (0, 2, 4)]


def _split(values: Sequence[int]) -> list[Longs]:
    """Python integers as limbs."""
    shifted = [[(v >> LIMB * n) & MASK for v in values] for n in range(2)] + [
        [v >> 2 * LIMB for v in values]
    ]
    return [np.array(limb, np.int64) for limb in shifted]


def halves(limbs: Sequence[Longs]) -> list[Longs]:
    """Each limb's lower 24 bits and what is above them: sums of these over any number of rows stay
    within int64.
    """
    return [half for limb in limbs for half in (limb & HALF_MASK, limb >> HALF)]


def _add(limbs: Sequence[Longs], codes: Ints, g: int) -> list[Longs]:
    """The limbs of the groups' sums: added up by halves, carried once."""
    return carry([net(codes, half, g) for half in halves(limbs)])


def carry(sums: Sequence[Longs]) -> list[Longs]:
    """Sums of halves as limbs, with 0 <= limb < 2**48 but for the last."""
    out: list[Longs] = []
    carry = np.zeros(len(sums[0]), np.int64)
    for n in range(len(sums) // 2):
        low = sums[2 * n] + carry
        high = sums[2 * n + 1] + (low >> HALF)
        carry = high >> HALF
        out.append(((high & HALF_MASK if n < 2 else high) << HALF) | (low & HALF_MASK))
    return out


def merge(limbs: Sequence[Longs], codes: Ints, g: int) -> list[Longs]:
    """The sums of sums per group."""
    if not any(limb.any() for limb in limbs):
        return [np.zeros(g, np.int64) for _ in limbs]
    return _add(limbs, codes, g)


def total(limbs: Sequence[Longs], ints: tuple[Longs, Longs], at: int) -> int:
    """A group's sum of decimals and integers at the common scale."""
    whole = (int(ints[0][at]) << 32) + int(ints[1][at])
    low, middle, high = (int(limb[at]) for limb in limbs)
    exact: int = low + (middle << LIMB) + (high << (2 * LIMB)) + whole * UNIT
    return exact


def as_double(
    limbs: Sequence[Longs], high: Longs, low: Longs, at: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """The exact part of groups whose sum is a double: whole numbers by columns, decimals one by
    one.
    """
    if not any(limb[at].any() for limb in limbs):
        return (high[at] * 4294967296.0 + low[at]).astype(np.float64)
    return np.array([total(limbs, (high, low), i) / UNIT for i in at.tolist()], np.float64)


def finish(
    columns: dict[str, Column],
    at: npt.NDArray[np.int64],
    limbs: Sequence[Longs],
    ints: tuple[Longs, Longs],
    n: Longs,
    *,
    average: bool,
) -> dict[int, str]:
    """Writes the decimal results of the groups ``at``; returns the texts of those that no int64
    mantissa holds.
    """
    hard: dict[int, str] = {}
    for i in at.tolist():
        value = total(limbs, ints, i)
        too_great = abs(value) >= GREATEST
        if average:
            value = _divide(value, int(n[i]))
        mantissa, scale = _shortest(value)
        fits = abs(mantissa) < 2**63
        columns["k"][i] = Kind.DECIMAL if fits else Kind.HARD_NUMBER
        columns["d"][i] = value / UNIT
        columns["m"][i] = mantissa if fits else 0
        columns["c"][i] = scale
        if too_great:
            columns["k"][i] = Kind.UNBOUND
        elif not fits:
            hard[i] = f'"{_show(mantissa, scale)}"^^<{XSD}decimal>'
    return hard


def whole(
    limbs: Sequence[Longs], ints: tuple[Longs, Longs], sums: Longs, at: npt.NDArray[np.int64]
) -> list[int]:
    """Writes the sums of integers of the groups ``at``, HARD ones among them; returns the groups
    whose sum fits no int64.
    """
    beyond = []
    for i in at.tolist():
        found = total(limbs, ints, i) // UNIT
        if -(2**63) <= found < 2**63:
            sums[i] = found
        else:
            beyond.append(i)
    return beyond


def _show(mantissa: int, scale: int) -> str:
    """A decimal's digits, however many.

    >>> _show(-12, 3)
    '-0.012'
    """
    digits = str(abs(mantissa)).rjust(scale + 1, "0")
    point = len(digits) - scale
    fraction = f".{digits[point:]}" if scale else ""
    return "-" * (mantissa < 0) + digits[:point] + fraction


def _divide(value: int, n: int) -> int:
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
