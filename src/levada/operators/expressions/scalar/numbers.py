"""The numeric tower of SPARQL on Python numbers (SPARQL 1.1, 17.3 and 17.1; XPath functions 6.2 to
6.4).

    xsd:integer   int          no bound
    xsd:decimal   Decimal      no bound; quotients have 18 fractional digits, cut towards zero
    xsd:float     Single       a float that holds a value of single precision
    xsd:double    float

Operands are promoted to the wider of their two types; two integers divide to a decimal. Sums,
differences and products are exact. The one limit is that of literals: a number that cannot be
written in 1,000 characters is an error (XPath FOAR0002).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Context, Decimal
from typing import Any

import numpy as np

from levada.core.rdf_terms import MOST_CHARACTERS

FRACTION_DIGITS = 18
EXACT = Context(prec=4000, rounding=ROUND_DOWN, Emax=10**6, Emin=-(10**6))
"""A context in which sums, differences and products of such long numbers lose no digit."""

_UNIT = Decimal(1).scaleb(-FRACTION_DIGITS)


class ExpressionError(Exception):
    """A type error in the sense of SPARQL 1.1, 17.2: no value for these arguments."""


class Single(float):
    """A value of xsd:float: a float that is exactly representable in single precision."""

    __slots__ = ()


Number = int | Decimal | Single | float


def single(value: Any) -> Single:
    """The xsd:float nearest to a number; beyond the range it is infinite. Rounded once, not by way
    of a double.

    >>> single(Decimal("16777217.0000000000000001"))
    16777218.0
    """
    wide = double(value)
    with np.errstate(over="ignore", invalid="ignore"):
        near = float(np.float32(wide))
        other = wide + (wide - near)
        if isinstance(value, int | Decimal) and near != wide and float(np.float32(other)) == other:
            # The double lies halfway between two floats: the exact value tells on which side of it.
            exact = Decimal(value)
            if exact != Decimal(wide):
                wide = float(np.nextafter(wide, np.inf if exact > Decimal(wide) else -np.inf))
        return Single(np.float32(wide))


def double(value: Any) -> float:
    """The xsd:double nearest to a number; beyond the range it is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def check_length(value: Number) -> Number:
    """The value as a result: an error if an integer or decimal is too long to be written.

    >>> check_length(10**900) == 10**900
    True
    """
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        characters = len(str(value)) if value.bit_length() > 3300 else 0
    else:
        value = value.normalize(EXACT)
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int), "an infinite decimal does not come about"
        characters = max(value.adjusted(), 0) + max(-exponent, 0) + 3
    if characters > MOST_CHARACTERS:
        raise ExpressionError("a number of too many digits")
    return value


def cut(value: Decimal) -> Decimal:
    """The value with 18 fractional digits at most.

    >>> cut(Decimal("0.3333333333333333333333"))
    Decimal('0.333333333333333333')
    """
    return value.quantize(_UNIT, context=EXACT)


def promote(a: Number, b: Number) -> tuple[Number, Number]:
    """Both numbers in the wider of their types."""
    if isinstance(a, float) or isinstance(b, float):
        wide = any(isinstance(v, float) and not isinstance(v, Single) for v in (a, b))
        return (double(a), double(b)) if wide else (single(a), single(b))
    if isinstance(a, Decimal) or isinstance(b, Decimal):
        return Decimal(a), Decimal(b)
    return a, b


def _add(a: Any, b: Any) -> Any:
    return EXACT.add(a, b) if isinstance(a, Decimal) else a + b


def _subtract(a: Any, b: Any) -> Any:
    return EXACT.subtract(a, b) if isinstance(a, Decimal) else a - b


def _multiply(a: Any, b: Any) -> Any:
    return EXACT.multiply(a, b) if isinstance(a, Decimal) else a * b


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, float):
        with np.errstate(all="ignore"):
            return float(np.float64(a) / np.float64(b))
    if b == 0:
        raise ExpressionError("division by zero")
    return cut(EXACT.divide(Decimal(a), Decimal(b)))


_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
}


def calculate(operator: str, a: Number, b: Number) -> Number:
    """``a operator b`` for ``+ - * /``.

    >>> calculate("/", 1, 3)
    Decimal('0.333333333333333333')
    """
    a, b = promote(a, b)
    value = _OPERATIONS[operator](a, b)
    return single(value) if isinstance(a, Single) else check_length(value)


def order(a: Number, b: Number) -> int | None:
    """-1, 0 or 1 as a is less than, equal to or greater than b; None if one is NaN."""
    x, y = promote(a, b)
    if x != x or y != y:
        return None
    return int(x > y) - int(x < y)


def negate(a: Number) -> Number:
    """Unary minus."""
    return _number_like(a, -a if not isinstance(a, Decimal) else a.copy_negate())


def absolute(a: Number) -> Number:
    """``ABS``."""
    return _number_like(a, abs(a) if not isinstance(a, Decimal) else a.copy_abs())


def floor(a: Number) -> Number:
    """``FLOOR``: the largest whole number that is not greater."""
    if isinstance(a, float):
        return _number_like(a, math.copysign(np.floor(a), a))
    return (
        check_length(a.to_integral_value(ROUND_FLOOR, EXACT))
        if isinstance(a, Decimal)
        else check_length(a)
    )


def ceiling(a: Number) -> Number:
    """``CEIL``: the smallest whole number that is not less."""
    if isinstance(a, float):
        return _number_like(a, math.copysign(np.ceil(a), a))
    return (
        check_length(a.to_integral_value(ROUND_CEILING, EXACT))
        if isinstance(a, Decimal)
        else check_length(a)
    )


def round_half_up(a: Number) -> Number:
    """``ROUND``: the nearest whole number, the greater of two (-2.5 is rounded to -2).

    >>> round_half_up(-2.5)
    -2.0
    """
    if isinstance(a, float):
        whole = float(np.floor(a))
        return _number_like(a, math.copysign(whole + (a - whole >= 0.5), a))
    if isinstance(a, Decimal):
        return check_length(EXACT.add(a, Decimal("0.5")).to_integral_value(ROUND_FLOOR, EXACT))
    return check_length(a)


def _number_like(a: Number, value: Number) -> Number:
    return Single(value) if isinstance(a, Single) else check_length(value)
