"""Exact sums of decimals: 18 digits behind the point, in three signed limbs of 48 bits.

Mantissas become limbs by schoolbook multiplication of 24-bit digits. Limbs are added up by halves,
so no number of rows overflows an int64. HARD numbers (more than 18 digits) are read from their
texts by ``hard``. Numbers with more than 18 fraction digits, or beyond 127 bits, are added up one
by one (``large_sums``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Ints, Longs
from levada.core.frame import Column, Frame
from levada.core.frozen import frozen
from levada.core.rdf_terms import Kind
from levada.kernels.keyed.group_sums import sum_weights
from levada.operators.aggregation import bignum_sums
from levada.operators.expressions.scalar.numbers import EXACT, cut, double
from levada.operators.rows.route_rows import value

SCALE = 18
UNIT = 10**SCALE
LIMB = 48
MASK = (1 << LIMB) - 1
HALF = 24
HALF_MASK = (1 << HALF) - 1
GREATEST = 2**127  # so that the sum of 2^31 of them fits

Hard = Callable[[Frame, int, npt.NDArray[np.int64]], list[str]]
_POWERS = np.array([10 ** (SCALE - scale) for scale in range(SCALE + 1)], np.int64)


@frozen
class Folded:
    """Decimals and HARD numbers by group: the limbs of the sums, the sums that do not fit in limbs,
    the rows of HARD integers, and a flag for each row whose number is too long to have a value.
    """

    limbs: list[Longs]
    large: bignum_sums.Sums
    integers: Longs
    unknown: npt.NDArray[np.bool_]


def fold(rows: Frame, i: int, codes: Ints, g: int, hard: Hard) -> Folded:
    """The sums of the decimals and HARD numbers of slot ``i``."""
    kind = rows[col.kind(i)]
    unknown = np.zeros(rows.n, bool)
    plain, difficult = (
        (kind == Kind.DECIMAL).nonzero()[0],
        (kind == Kind.HARD_NUMBER).nonzero()[0],
    )
    limbs = [np.zeros(g, np.int64) for _ in range(3)]
    if len(plain):
        limbs = _add(
            _limbs(value(rows, "m", i)[plain], value(rows, "c", i)[plain]), codes[plain], g
        )
    if not len(difficult):
        return Folded(limbs, {}, difficult, unknown)
    texts = hard(rows, i, difficult)
    whole = np.array([not t.endswith("#decimal>") for t in texts], bool)
    large: bignum_sums.Sums = {}
    fitting = []
    for row, text in zip(difficult.tolist(), texts, strict=True):
        number = bignum_sums.number(text)
        unknown[row] = number is None
        fitting.append(0 if number is None else _scale_to_limbs(number, int(codes[row]), large))
    difficult_limbs = _split(fitting)
    both = [np.concatenate([limb, more]) for limb, more in zip(limbs, difficult_limbs, strict=True)]
    where = np.concatenate([np.arange(g, dtype=np.int32), codes[difficult]])
    return Folded(_add(both, where, g), large, difficult[whole], unknown)


def _scale_to_limbs(number: Decimal, group: int, large: bignum_sums.Sums) -> int:
    """A number at the common scale; 0 if that is not it, or limbs do not hold it: then it is added
    to the ``large`` ones of its group.
    """
    scaled = number.scaleb(SCALE, EXACT)
    if scaled == scaled.to_integral_value() and abs(scaled) < GREATEST:
        return int(scaled)
    if group >= 0:
        bignum_sums.add_number(large, group, number)
    return 0


def large(rows: Frame, i: int, hard: Hard) -> bignum_sums.Sums:
    """The numbers of slot ``i`` that limbs do not hold, by row."""
    difficult = (rows[col.kind(i)] == Kind.HARD_NUMBER).nonzero()[0]
    sums: bignum_sums.Sums = {}
    for row, text in zip(
        difficult.tolist(), hard(rows, i, difficult) if len(difficult) else (), strict=True
    ):
        number = bignum_sums.number(text)
        if number is not None:
            _scale_to_limbs(number, row, sums)
    return sums


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
    """Splits each limb into its lower 24 bits and the bits above. Sums of the halves over any
    number of rows stay within int64.
    """
    return [half for limb in limbs for half in (limb & HALF_MASK, limb >> HALF)]


def _add(limbs: Sequence[Longs], codes: Ints, g: int) -> list[Longs]:
    """The limbs of the groups' sums: added up by halves, carried once."""
    return carry([sum_weights(codes, half, g) for half in halves(limbs)])


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


@frozen
class Totals:
    """The exact parts of groups' sums: decimals in limbs, integers in two words, and all other
    numbers.
    """

    limbs: Sequence[Longs]
    ints: tuple[Longs, Longs]
    large: bignum_sums.Sums

    @property
    def has_non_integers(self) -> npt.NDArray[np.bool_]:
        """The groups of which the integers are not all."""
        flags = np.asarray((self.limbs[0] != 0) | (self.limbs[1] != 0) | (self.limbs[2] != 0))
        flags[list(self.large)] = True
        return flags

    def exact_sum(self, at: int) -> Decimal:
        """A group's exact sum."""
        exact = Decimal(total(self.limbs, self.ints, at)).scaleb(-SCALE, EXACT)
        return EXACT.add(exact, self.large[at]) if at in self.large else exact

    def doubles(self, at: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Returns the exact part of groups whose sum is a double: whole numbers by columns, others
        one by one.
        """
        high, low = self.ints
        if not self.has_non_integers[at].any():
            return (high[at] * 4294967296.0 + low[at]).astype(np.float64)
        return np.array([double(self.exact_sum(i)) for i in at.tolist()], np.float64)


def finish(
    columns: dict[str, Column], at: npt.NDArray[np.int64], totals: Totals, divisors: Longs | None
) -> dict[int, str]:
    """Writes the decimal results of the groups ``at``, as averages if there are ``divisors``.
    Returns the texts of the results that do not fit in a mantissa.
    """
    hard: dict[int, str] = {}
    for i in at.tolist():
        exact = totals.exact_sum(i)
        if divisors is not None:
            exact = cut(EXACT.divide(exact, Decimal(int(divisors[i]))))
        _write(columns, i, exact, Kind.DECIMAL, hard)
    return hard


def write_integer_sums(
    columns: dict[str, Column], at: npt.NDArray[np.int64], totals: Totals, *, bounded: bool
) -> dict[int, str]:
    """Writes the sums of integers of the groups ``at``. Returns texts as ``finish`` does.
    ``bounded``: a sum beyond 64 bits has no value.
    """
    hard: dict[int, str] = {}
    for i in at.tolist():
        _write(columns, i, totals.exact_sum(i), Kind.INTEGER, hard)
        if bounded and i in hard:
            columns["k"][i] = Kind.UNBOUND
    return {} if bounded else hard


def _write(
    columns: dict[str, Column], at: int, exact: Decimal, kind: Kind, hard: dict[int, str]
) -> None:
    mantissa, scale = _parts(exact)
    least = -(2**63) + (kind is Kind.DECIMAL)  # a decimal is printed by the size of its mantissa
    fits = least <= mantissa < 2**63 and scale <= SCALE
    columns["k"][at] = kind if fits else Kind.HARD_NUMBER
    columns["d"][at] = double(exact)
    columns["m"][at] = mantissa if fits else 0
    columns["c"][at] = scale if fits else 0
    if not fits:
        text = bignum_sums.literal(exact, kind.name.lower())
        columns["k"][at] = Kind.HARD_NUMBER if text else Kind.UNBOUND
        hard.update({at: text} if text else {})


def _parts(exact: Decimal) -> tuple[int, int]:
    """(mantissa, scale) without zeros at the end of the fraction."""
    exact = exact.normalize(EXACT)
    exponent = exact.as_tuple().exponent
    assert isinstance(exponent, int), "a finite number"
    scale = max(-exponent, 0)
    return int(exact.scaleb(scale, EXACT)), scale
