"""``+ - * /``, unary ``+ -``, ABS, ROUND, CEIL and FLOOR on columns (SPARQL 1.1, 17.3 and 17.4.4;
XPath functions 6.2, 6.4).

Blocks of exact kinds are computed in int64 and checked: where a mantissa could reach 10^18 the
general path decides, which is exact at any size (``operators.expressions.scalar.numbers``). A
quotient of exact numbers is a decimal by long division: 18 fractional digits, cut towards zero.
Blocks with a float are computed in its precision. Dates, times and durations take the general path.

Cost: 3 to 10 ns a row for sums and products, about 50 for quotients.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from levada.core.array_types import Bools, Longs
from levada.core.expressions import Function
from levada.core.rdf_terms import Kind
from levada.operators.expressions import numeric
from levada.operators.expressions.numeric import (
    EXACT,
    FLOATING,
    MAX_MANTISSA,
    NUMBERS,
    Floats,
    Undecided,
)
from levada.operators.expressions.row_blocks import Block, Result, blocks, general, inner_rows
from levada.operators.expressions.scalar.function_table import SCALAR
from levada.operators.expressions.scalar.literals import DECIMAL, term_of, value_of
from levada.operators.expressions.scalar.numbers import FRACTION_DIGITS
from levada.operators.expressions.term_values import Column, length

BINARY = (Function.ADD, Function.SUBTRACT, Function.MULTIPLY, Function.DIVIDE)
UNARY = (Function.PLUS, Function.MINUS, Function.ABS, Function.ROUND, Function.CEIL, Function.FLOOR)
_MAX_ESTIMATE = 9.0e17  # an estimate below this is a result below 10^18
_DIVISOR = 9 * 10**17  # ten times a remainder below this is an int64
_MIN_INT64 = -(2**63)
_SIGNS = (Function.PLUS, Function.MINUS)  # also of durations
_TEMPORAL = (Kind.DATETIME, Kind.HARD_TIME, Kind.OTHER)
_UFUNC: dict[Function, Callable[..., Floats]] = {
    Function.ADD: np.add,
    Function.SUBTRACT: np.subtract,
    Function.MULTIPLY: np.multiply,
    Function.DIVIDE: np.divide,
}


def calculate(operator: Function, a: Column, b: Column) -> Column:
    """``a operator b``; rows that are errors are unbound."""
    result = Result(length((a, b)))
    for block in blocks(a, b):
        _binary(operator, block, result)
    return result.column()


def _binary(operator: Function, block: Block, result: Result) -> None:
    kinds, (a, b) = block.kinds, block.columns
    if all(k in EXACT for k in kinds):
        exact = _quotient if operator is Function.DIVIDE else _exact
        undecided = exact(operator, block, result)
    elif all(k in NUMBERS for k in kinds):
        target = numeric.wider_kind(*kinds)
        (x, lost), (y, too) = (
            numeric.floats(a, kinds[0], target),
            numeric.floats(b, kinds[1], target),
        )
        with np.errstate(all="ignore"):
            values = _UFUNC[operator](x, y)
        result.put(block.rows, target, dbl=values.astype(np.float64))
        undecided = numeric.either_undecided(lost, too)
    elif _may_have_value(operator, kinds):
        general(SCALAR[operator], block.columns, None, result, block.rows)
        return
    else:
        return
    _decide_later(operator, block, undecided, result)


def _may_have_value(operator: Function, kinds: tuple[int, ...]) -> bool:
    """Whether hard numbers (with numbers), or dates, times and durations (added, subtracted) are
    all there is.
    """
    if all(k in (*NUMBERS, Kind.HARD_NUMBER) for k in kinds):
        return True
    return operator in (Function.ADD, Function.SUBTRACT) and all(k in _TEMPORAL for k in kinds)


def _decide_later(operator: Function, block: Block, undecided: Undecided, result: Result) -> None:
    if undecided is None or not undecided.any():
        return
    rows = np.flatnonzero(np.broadcast_to(undecided, length(block.columns)))
    general(SCALAR[operator], block.columns, rows, result, block.rows)


def _exact(operator: Function, block: Block, result: Result) -> Undecided:
    """Sums, differences and products of integers and decimals."""
    a, b = block.columns
    kind = Kind.INTEGER if block.kinds == (Kind.INTEGER, Kind.INTEGER) else Kind.DECIMAL
    if operator is Function.MULTIPLY:
        (x, xc), (y, yc) = numeric.facets(a), numeric.facets(b)
        scale = xc + yc
        undecided = (np.abs(x.astype(np.float64) * y) >= _MAX_ESTIMATE) | (scale > FRACTION_DIGITS)
        value = x * y
    else:
        x, y, scale, overflow = numeric.align(a, b)
        value = x + y if operator is Function.ADD else x - y
        estimate = _UFUNC[operator](x.astype(np.float64), y)
        undecided = (
            np.abs(estimate) >= _MAX_ESTIMATE
            if overflow is None
            else overflow | (np.abs(estimate) >= _MAX_ESTIMATE)
        )
    result.put(
        block.rows, kind, man=value, scale=np.minimum(scale, FRACTION_DIGITS).astype(np.uint8)
    )
    return undecided


def _quotient(operator: Function, block: Block, result: Result) -> Undecided:
    """Divides decimals by long division; a zero divisor is an error, and its row is unbound."""
    assert operator is Function.DIVIDE, "a quotient is a division"
    x, y, _, overflow = numeric.align(*block.columns)
    x, y = np.broadcast_arrays(x, y)
    large = numeric.is_beyond(y, _DIVISOR) | (x == _MIN_INT64)
    undecided = numeric.either_undecided(overflow, large)
    assert undecided is not None, "of each row it is known"
    zero = y == 0
    whole, fraction = long_division(
        np.where(zero | undecided, 0, np.abs(x)), np.where(zero | undecided, 1, np.abs(y))
    )
    negative = (x < 0) != (y < 0)
    rest, scale = numeric.reduce(fraction, np.full(len(fraction), FRACTION_DIGITS))
    fits = whole < 10 ** (FRACTION_DIGITS - scale)
    man = np.where(fits, whole, 0) * 10**scale + rest
    kinds = np.where(zero, Kind.UNBOUND, Kind.DECIMAL).astype(np.uint8)
    result.put(block.rows, kinds, man=np.where(negative, -man, man), scale=scale.astype(np.uint8))
    long = np.flatnonzero(~fits & ~zero & ~undecided)
    if len(long):
        near = (whole + fraction / 1e18)[long]
        parts = negative[long], whole[long], fraction[long]
        result.put_hard(
            inner_rows(block.rows, long),
            np.where(negative[long], -near, near),
            lambda: _long_decimals(*parts),
        )
    return undecided


def long_division(x: Longs, y: Longs) -> tuple[Longs, Longs]:
    """``x / y`` for x >= 0 and 0 < y < 9 * 10^17: the whole part and 18 fractional digits as an
    integer.

    >>> [v.tolist() for v in long_division(np.array([7]), np.array([2]))]
    [[3], [500000000000000000]]
    """
    whole = x // y
    rest = x - whole * y
    fraction = np.zeros(len(x), np.int64)
    most = int(y.max(initial=1))
    # As many digits a step as keep the remainder an int64.
    digits = next(d for d in (18, 9, 6, 3, 2, 1) if most * 10**d < 2**63)
    for _ in range(FRACTION_DIGITS // digits):
        rest *= 10**digits
        quotient = rest // y
        rest -= quotient * y
        fraction = fraction * 10**digits + quotient
    return whole, fraction


def _long_decimals(negative: Bools, whole: Longs, fraction: Longs) -> pl.Series:
    """The texts of decimals of more than 18 digits."""
    frame = pl.DataFrame({"s": np.where(negative, "-", ""), "w": whole, "f": fraction})
    digits = pl.col("f").cast(pl.String).str.zfill(FRACTION_DIGITS)
    lexical = pl.col("w").cast(pl.String) + pl.lit(".") + digits
    short = lexical.str.strip_chars_end("0").str.strip_chars_end(".")
    text = pl.lit('"') + pl.col("s") + short + pl.lit(f'"^^<{DECIMAL}>')
    return frame.select(text.alias("t"))["t"]


def bound_integers(column: Column) -> Column:
    """Returns CQL's integers: an integer within 64 bits is a plain one, others have no value."""
    hard = np.flatnonzero(column.kinds() == Kind.HARD_NUMBER)
    texts = column.texts().gather(hard).to_list() if len(hard) else []
    numbers = [value_of(term_of(text)) for text in texts]
    whole = np.array([isinstance(value, int) for value in numbers], np.bool_)
    if not whole.any():
        return column
    values = [value for value in numbers if isinstance(value, int)]
    fits = np.array([_MIN_INT64 <= value < -_MIN_INT64 for value in values])
    kind, dbl, man, scale = column.values()
    kind, man = kind.copy(), man.copy()
    kind[hard[whole]] = np.where(fits, Kind.INTEGER, Kind.UNBOUND)
    man[hard[whole][fits]] = [value for value in values if _MIN_INT64 <= value < -_MIN_INT64]
    result, left = Result(column.n), np.flatnonzero(kind != Kind.UNBOUND)
    result.put_texts(left, kind[left], column.texts().gather(left))
    result.put(None, kind, man=man, scale=scale, dbl=dbl)
    return result.column()


def unary(operator: Function, a: Column) -> Column:
    """``+a``, ``-a``, ABS, ROUND, CEIL, FLOOR; unbound if the argument is not a number."""
    result = Result(a.n)
    for block in blocks(a):
        (kind,), (column,) = block.kinds, block.columns
        if kind in EXACT:
            _unary_exact(operator, Kind(kind), block, result)
        elif kind in FLOATING:
            values, _ = numeric.floats(column, kind, kind)
            with np.errstate(invalid="ignore"):
                values = _FLOATS[operator](values)
            result.put(block.rows, Kind(kind), dbl=values.astype(np.float64))
        elif kind == Kind.HARD_NUMBER or (kind == Kind.OTHER and operator in _SIGNS):
            general(SCALAR[operator], block.columns, None, result, block.rows)
    return result.column()


def _unary_exact(operator: Function, kind: Kind, block: Block, result: Result) -> None:
    man, scale = numeric.facets(block.columns[0])
    # Sums of other operators may have a little more than 18 digits.
    large = np.flatnonzero(numeric.is_beyond(man, MAX_MANTISSA))
    if len(large):
        man = man.copy()
        man[large] = 0
    man, scale = _EXACT[operator](man, scale)
    result.put(block.rows, kind, man=man, scale=scale.astype(np.uint8))
    if len(large):
        general(SCALAR[operator], block.columns, large, result, block.rows)


def _round(man: Longs, scale: Longs) -> tuple[Longs, Longs]:
    unit = 10**scale
    return (2 * man + unit) // (2 * unit), scale * 0


def _round_half_up(values: Floats) -> Floats:
    down = np.floor(values)
    return np.asarray(np.copysign(down + (values - down >= 0.5), values), values.dtype)


_EXACT: dict[Function, Callable[[Longs, Longs], tuple[Longs, Longs]]] = {
    Function.PLUS: lambda m, c: (m, c),
    Function.MINUS: lambda m, c: (-m, c),
    Function.ABS: lambda m, c: (np.abs(m), c),
    Function.ROUND: lambda m, c: (m, c) if not c.any() else _round(m, c),
    Function.CEIL: lambda m, c: (-(-m // 10**c), c * 0),
    Function.FLOOR: lambda m, c: (m // 10**c, c * 0),
}
_FLOATS: dict[Function, Callable[[Floats], Floats]] = {
    Function.PLUS: lambda v: v,
    Function.MINUS: np.negative,
    Function.ABS: np.abs,
    Function.ROUND: _round_half_up,
    Function.CEIL: lambda v: np.copysign(np.ceil(v), v),
    Function.FLOOR: lambda v: np.copysign(np.floor(v), v),
}
