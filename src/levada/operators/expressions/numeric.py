"""Numbers in columns: integers, decimals as mantissa and scale, floats; alignment, promotion.

Everything here works on one block (one kind per argument) and marks the rows that it cannot do
exactly: these go to the general path. A decimal is turned into a float by one division of two
exactly representable numbers, which is correctly rounded; a mantissa above 2^53 is marked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Bools, Bytes, Doubles, Longs
from levada.core.rdf_terms import Kind
from levada.operators.expressions.term_values import Column

EXACT = (Kind.INTEGER, Kind.DECIMAL)
FLOATING = (Kind.FLOAT, Kind.DOUBLE)
NUMBERS = (*EXACT, *FLOATING)
MAX_MANTISSA = 10**18
"""Results that are exact kinds have less than this mantissa, as in the intake."""
_FLOAT_BITS = 2**53
_POWERS = 10 ** np.arange(19, dtype=np.int64)

_MAX_FACTORS = 2**62 // _POWERS

Floats = npt.NDArray[np.floating[Any]]
Undecided = Bools | None


def facets(column: Column) -> tuple[Longs, Longs]:
    """Mantissa and scale (as int64) of a block of an exact kind."""
    _, _, man, scale = column.values()
    return man, scale.astype(np.int64)


def is_beyond(man: Longs, most: int) -> Bools:
    """Where a mantissa has this size or more; the least int64 has none that is an int64.

    >>> is_beyond(np.array([-(2**63), 5, -7]), 7).tolist()
    [True, False, True]
    """
    return np.asarray((man >= most) | (man <= -most))


def _collapse_equal(scale: Longs) -> Longs:
    return scale[:1] if len(scale) and (scale == scale[0]).all() else scale


def either_undecided(a: Undecided, b: Undecided) -> Undecided:
    """Rows that one of two steps could not decide."""
    return b if a is None else a if b is None else a | b


def scale_mantissa(man: Longs, by: Longs) -> tuple[Longs, Undecided]:
    """``man * 10**by`` (by from 0 to 18), and where that leaves the exact range."""
    if not by.any():
        return man, None
    power, room = _POWERS[np.minimum(by, 18)], _MAX_FACTORS[np.minimum(by, 18)]
    overflow = (man > room) | (man < -room) | (by > 18)
    return man * np.where(overflow, 1, power), overflow if overflow.any() else None


def align(a: Column, b: Column) -> tuple[Longs, Longs, Longs, Undecided]:
    """Two blocks of exact kinds as integers of one scale: both mantissas, the scale, and the rows
    undecided.
    """
    (am, ac), (bm, bc) = facets(a), facets(b)
    # One scale throughout is the rule: then a single number stands for the column.
    ac, bc = _collapse_equal(ac), _collapse_equal(bc)
    scale = np.maximum(ac, bc)
    left, overflow = scale_mantissa(am, scale - ac)
    right, too = scale_mantissa(bm, scale - bc)
    return left, right, scale, either_undecided(overflow, too)


def floats(column: Column, kind: int, target: int) -> tuple[Floats, Undecided]:
    """A block of one numeric kind in the precision of ``target`` (FLOAT or DOUBLE), and the rows
    undecided.
    """
    single = target == Kind.FLOAT
    _, dbl, man, scale = column.values()
    if kind in FLOATING:
        # The value of an xsd:float has single precision whatever the facet holds.
        exact = dbl.astype(np.float32) if kind == Kind.FLOAT else dbl
        return (exact if single else exact.astype(np.float64)), None
    if kind == Kind.INTEGER:
        return man.astype(np.float32 if single else np.float64), None
    overflow = np.abs(man) > _FLOAT_BITS
    value = man / 10.0 ** scale.astype(np.float64)
    return (value.astype(np.float32) if single else value), overflow if overflow.any() else None


def doubles(man: Longs, scale: Longs | Bytes) -> Doubles:
    """The doubles nearest to ``man / 10**scale`` (of mantissas above 2^53 within a unit in the last
    place).
    """
    if not scale.any():
        return man.astype(np.float64)
    return (man.astype(np.longdouble) / _POWERS[scale].astype(np.longdouble)).astype(np.float64)


def nearest_doubles(column: Column) -> tuple[Doubles, Bools]:
    """Returns the nearest doubles of a block of any numeric kind, and where they are unusable: out
    of range, or not shipped.
    """
    kinds, dbl, man, scale = column.values()
    if kinds[0] in EXACT:
        return doubles(man, scale), np.zeros(1, np.bool_)
    return dbl, ~np.isfinite(dbl) | ((dbl == 0) & (kinds == Kind.HARD_NUMBER))


def wider_kind(a: int, b: int) -> Kind:
    """FLOAT or DOUBLE: the type to which two numeric kinds are promoted if one is floating."""
    return Kind.DOUBLE if Kind.DOUBLE in (a, b) else Kind.FLOAT


def reduce(man: Longs, scale: Longs) -> tuple[Longs, Longs]:
    """Decimals without zeros at the end of the fraction.

    >>> [v.tolist() for v in reduce(np.array([2500, 7]), np.array([2, 0]))]
    [[25, 7], [0, 0]]
    """
    man, scale = man.copy(), scale.copy()
    for zeros in (16, 8, 4, 2, 1):
        can = np.flatnonzero((scale >= zeros) & (man % 10**zeros == 0))
        man[can] //= 10**zeros
        scale[can] -= zeros
    return man, scale
