"""Functions of SQL over whole columns of typed values: numbers, texts and instants (ms).

An argument without a value, or of another type than the function takes, makes the result one
without a value. Where engines of SQL differ, these are Spark's in ANSI mode, except that an error
is a missing value. Texts are one Polars expression over their characters, numbers one call of
numpy. Cost: some tens of nanoseconds a row; ``ROUND`` of a half that a double cannot represent, a
microsecond.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

import numpy as np
import polars as pl

from levada.core.array_types import Bools, Doubles, Longs
from levada.core.expression_budget import Account, unlimited_account
from levada.core.expressions import Function
from levada.core.frozen import frozen
from levada.core.rdf_terms import SPECIAL, Kind, Literal
from levada.operators.expressions.row_blocks import Result
from levada.operators.expressions.scalar.literals import term_of
from levada.operators.expressions.term_values import Column, length

_F = Function
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999
_DIGITS = 300  # a double has no digits beyond
_INTEGER, _NUMBER, _TEXT = Kind.INTEGER, Kind.DOUBLE, Kind.STRING

Texts = Sequence[pl.Expr]
_Sizes = Callable[[Texts], pl.Expr]


@frozen
class _Form:
    """A function over texts, integers and doubles: the kinds of its arguments (the last repeats),
    that of its value, and the bytes of a text that it makes longer.
    """

    takes: tuple[Kind, ...]
    gives: Kind
    of: Callable[[Texts], pl.Expr]
    bytes_of: _Sizes | None = None


def _substring(a: Texts) -> pl.Expr:
    """Counts from 1, from the end if negative; a piece before the beginning is cut off."""
    from_end = a[0].str.len_chars().cast(pl.Int64) + a[1]
    start = pl.when(a[1] > 0).then(a[1] - 1).when(a[1] < 0).then(from_end).otherwise(0)
    first = pl.max_horizontal(start, 0)
    if len(a) == 2:
        return a[0].str.slice(first)
    last = pl.max_horizontal(start + a[2].clip(-(2**31), 2**31), first)
    return a[0].str.slice(first, (last - first).cast(pl.UInt64))


def _position(a: Texts) -> pl.Expr:
    before = a[1].str.splitn(a[0], 2).struct.field("field_0").str.len_chars().cast(pl.Int64)
    is_inside = a[1].str.contains(a[0], literal=True)
    return pl.when(a[0] == "").then(1).when(is_inside).then(before + 1).otherwise(0)


def _replace(a: Texts) -> pl.Expr:
    return pl.when(a[1] == "").then(a[0]).otherwise(a[0].str.split(a[1]).list.join(a[2]))


def _replaced_bytes(a: Texts) -> pl.Expr:
    count = a[0].str.split(a[1]).list.len().cast(pl.Int64)
    return a[0].str.len_bytes() + count * a[2].str.len_bytes()


def _padding(a: Texts) -> pl.Expr:
    lack = (a[1] - a[0].str.len_chars().cast(pl.Int64)).clip(0)
    width = a[2].str.len_chars().cast(pl.Int64).clip(1)
    times = (lack + width - 1) // width
    return a[2].repeat_by(times.cast(pl.UInt32)).list.join("").str.slice(0, lack.cast(pl.UInt64))


def _cut(a: Texts) -> pl.Expr:
    return a[0].str.slice(0, a[1].clip(0).cast(pl.UInt64))


def _padded_bytes(a: Texts) -> pl.Expr:
    return a[0].str.len_bytes() + a[1].clip(0, 2**40) * 4


def _split_part(a: Texts) -> pl.Expr:
    parts = a[0].str.split(a[1])
    index = pl.when(a[2] > 0).then(a[2] - 1).otherwise(a[2])
    part = parts.list.get(index, null_on_oob=True).fill_null("")
    whole = pl.when(a[2].abs() == 1).then(a[0]).otherwise(pl.lit(""))
    chosen = pl.when(a[1] == "").then(whole).otherwise(part)
    return pl.when(a[2] != 0).then(chosen).otherwise(None)


def _instant(ms: pl.Expr) -> pl.Expr:
    """Returns an event time as a date and time, none outside of the years 1 to 9999."""
    inside = pl.when(ms.is_between(_FIRST_MS, _LAST_MS)).then(ms).otherwise(None)
    return inside.cast(pl.Datetime("ms"))


PARTS: dict[str, Callable[[pl.Expr], pl.Expr]] = {
    "year": lambda t: t.dt.year(),
    "quarter": lambda t: t.dt.quarter(),
    "month": lambda t: t.dt.month(),
    "week": lambda t: t.dt.week(),
    "day": lambda t: t.dt.day(),
    "dayofweek": lambda t: t.dt.weekday() % 7 + 1,
    "isodow": lambda t: t.dt.weekday(),
    "doy": lambda t: t.dt.ordinal_day(),
    "hour": lambda t: t.dt.hour(),
    "minute": lambda t: t.dt.minute(),
    "second": lambda t: t.dt.second(),
    "millisecond": lambda t: t.dt.second().cast(pl.Int64) * 1000 + t.dt.millisecond(),
}
"""The parts of an instant by name; the week is that of ISO 8601, dayofweek counts from Sunday 1."""

UNITS: dict[str, str] = {
    "year": "1y", "quarter": "1q", "month": "1mo", "week": "1w", "day": "1d", "hour": "1h",
    "minute": "1m", "second": "1s",
}  # fmt: skip
"""The units to whose beginning an instant can be cut."""


def _part(a: Texts) -> pl.Expr:
    return _by_word(a, {word: part(_instant(a[1])) for word, part in PARTS.items()})


def _truncate(a: Texts) -> pl.Expr:
    cut = {word: _instant(a[1]).dt.truncate(unit) for word, unit in UNITS.items()}
    return _by_word(a, {word: each.dt.epoch("ms") for word, each in cut.items()})


def _by_word(a: Texts, values: dict[str, pl.Expr]) -> pl.Expr:
    value = pl.lit(None, pl.Int64)
    for word, each in values.items():
        value = pl.when(a[0] == word).then(each.cast(pl.Int64)).otherwise(value)
    return value


_FORMS: dict[Function, _Form] = {
    _F.SUBSTRING: _Form((_TEXT, _INTEGER), _TEXT, _substring),
    _F.POSITION: _Form((_TEXT,), _INTEGER, _position),
    _F.REPLACE_TEXT: _Form((_TEXT,), _TEXT, _replace, _replaced_bytes),
    _F.TRIM: _Form((_TEXT,), _TEXT, lambda a: a[0].str.strip_chars(a[1])),
    _F.LTRIM: _Form((_TEXT,), _TEXT, lambda a: a[0].str.strip_chars_start(a[1])),
    _F.RTRIM: _Form((_TEXT,), _TEXT, lambda a: a[0].str.strip_chars_end(a[1])),
    _F.LPAD: _Form(
        (_TEXT, _INTEGER, _TEXT), _TEXT, lambda a: _padding(a) + _cut(a), _padded_bytes
    ),
    _F.RPAD: _Form(
        (_TEXT, _INTEGER, _TEXT), _TEXT, lambda a: _cut(a) + _padding(a), _padded_bytes
    ),
    _F.SPLIT_PART: _Form((_TEXT, _TEXT, _INTEGER), _TEXT, _split_part),
    _F.REVERSE: _Form((_TEXT,), _TEXT, lambda a: a[0].str.reverse()),
    _F.DATE_PART: _Form((_TEXT, _INTEGER), _INTEGER, _part),
    _F.DATE_TRUNC: _Form((_TEXT, _INTEGER), _INTEGER, _truncate),
}  # fmt: skip


def _logarithm(x: Doubles) -> Doubles:
    return np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), np.nan)


_FLOATS: dict[Function, Callable[..., Doubles]] = {
    _F.POWER: np.power,
    _F.SQRT: np.sqrt,
    _F.EXP: np.exp,
    _F.LN: _logarithm,
    _F.SIGN: np.sign,
}


def _square_rest(x: Doubles) -> Doubles:
    """Returns a square less its double: the part that rounding takes (Dekker's product)."""
    high = x * 134_217_729.0
    high = high - (high - x)
    low = x - high
    return np.nan_to_num(((high * high - x * x) + 2.0 * high * low) + low * low)


def _variance(sample: Doubles, n: Doubles, *sums: Doubles) -> Doubles:
    """The variance of n numbers from exact sums: of the numbers and of their squares, each as a
    double and what it lost, and of what the squares lost.

    The difference ``n * squares - sum * sum`` is computed with twice the digits of a double.
    """
    total, total_rest, squares, squares_rest, lost = sums
    squares, squares_rest = _two_sum(squares, squares_rest + lost)
    product = total * total
    rest = _square_rest(total) + 2.0 * total * total_rest
    scaled = n * squares
    scaled_rest = _product_rest(n, squares) + n * squares_rest
    difference = (scaled - product) + (scaled_rest - rest)
    divisor = n * (n - sample)
    return np.where(divisor > 0, np.maximum(difference, 0.0) / np.maximum(divisor, 1.0), np.nan)


def _two_sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _product_rest(n: Doubles, b: Doubles) -> Doubles:
    """Returns the part that rounding takes from ``n * b``, for a whole number n below 2^26."""
    high = b * 134_217_729.0
    high = high - (high - b)
    return np.nan_to_num((n * high - n * b) + n * (b - high))


_FLOATS[_F.SQUARE_REST] = _square_rest
_FLOATS[_F.VARIANCE] = _variance
_NUMERIC = (_F.REMAINDER, _F.ROUND_DIGITS, *_FLOATS)
SQL_FUNCTIONS = frozenset({*_FORMS, *_NUMERIC, _F.NUMBER_TEXT})
"""The functions of this module."""
SQL_TEXTS = frozenset(
    {_F.NUMBER_TEXT, *(n for n, form in _FORMS.items() if _TEXT in (form.gives, *form.takes))}
)
"""Those of them that read or make texts."""


def sql_function(
    function: Function, columns: Sequence[Column], account: Account | None = None
) -> Column:
    """The value of one of ``SQL_FUNCTIONS`` in each row.

    >>> from levada.operators.expressions.term_values import constant
    >>> sql_function(Function.REVERSE, [constant(Literal("abc"))]).texts().to_list()
    ['"cba"']
    """
    if function in _NUMERIC:
        return _numeric(function, columns)
    if function is _F.NUMBER_TEXT:
        return _number_text(columns[0])
    form, n = _FORMS[function], length(columns)
    kinds = [form.takes[min(i, len(form.takes) - 1)] for i in range(len(columns))]
    read = [_series(c, kind, n) for c, kind in zip(columns, kinds, strict=True)]
    read = [series.alias(str(i)) for i, series in enumerate(read)]
    frame = pl.DataFrame(read)
    named = [pl.col(str(i)) for i in range(len(columns))]
    if form.bytes_of is not None:
        sizes = frame.select(form.bytes_of(named).cast(pl.Int64)).to_series().fill_null(0)
        too_long = (account or unlimited_account()).make(sizes.to_numpy())
        if too_long.any():
            frame = frame.with_columns(
                pl.when(pl.lit(pl.Series(~too_long))).then(pl.col("0")).alias("0")
            )
    whole = pl.all_horizontal(each.is_not_null() for each in named)
    values = frame.select(pl.when(whole).then(form.of(named)).alias("v")).to_series()
    return _column(values, form.gives)


def _series(column: Column, kind: Kind, n: int) -> pl.Series:
    """Returns a column as values of one kind; null elsewhere."""
    kinds, _, man, _ = column.values()
    if kind is Kind.STRING:
        series = characters(column.texts())
    elif kind is Kind.INTEGER:
        series = pl.Series(man).set(pl.Series(kinds != Kind.INTEGER), None)
    else:
        series = pl.Series(_doubles(column)[0]).set(pl.Series(kinds == Kind.UNBOUND), None)
    return series if len(series) == n else series.new_from_index(0, n)


def characters(texts: pl.Series) -> pl.Series:
    """Returns the characters of simple literals; null for all others."""
    quoted = texts.str.starts_with('"') & texts.str.ends_with('"')
    inner = texts.set(~quoted.fill_null(False), None).str.slice(1).str.head(-1)
    escaped = inner.str.contains("\\", literal=True).fill_null(False)
    if not escaped.any():
        return inner
    rows = escaped.arg_true()
    read = [_lexical(text) for text in texts.gather(rows).to_list()]
    return inner.scatter(rows, read)


def _lexical(text: str) -> str:
    term = term_of(text)
    assert isinstance(term, Literal), "a text in quotes is a literal"
    return term.lexical


def _column(values: pl.Series, kind: Kind) -> Column:
    result, n = Result(len(values)), len(values)
    rows = np.flatnonzero(values.is_not_null().to_numpy())
    some = values if len(rows) == n else values.gather(rows)
    if kind is Kind.INTEGER:
        man = some.cast(pl.Int64).to_numpy()
        result.put(rows, kind, man=man, scale=np.zeros(len(rows), np.uint8))
        return result.column()
    special = some.str.contains(SPECIAL).fill_null(False)
    written = pl.select(pl.lit('"') + pl.lit(some) + pl.lit('"')).to_series()
    if special.any():
        at = special.arg_true()
        written = written.scatter(at, [str(Literal(text)) for text in some.gather(at).to_list()])
    result.put_texts(rows, kind, written)
    return result.column()


def _doubles(column: Column) -> tuple[Doubles, Bools]:
    """Returns the numbers of a column as doubles, and where there are numbers."""
    kinds, dbl, man, _ = column.values()
    is_number = np.isin(kinds, (Kind.INTEGER, Kind.DOUBLE, Kind.DECIMAL, Kind.HARD_NUMBER))
    return np.where(kinds == Kind.INTEGER, man.astype(np.float64), dbl), is_number


def _numeric(function: Function, columns: Sequence[Column]) -> Column:
    n, result = length(columns), Result(length(columns))
    read = [_doubles(column) for column in columns]
    bound = np.broadcast_to(np.logical_and.reduce(np.broadcast_arrays(*(b for _, b in read))), n)
    integers = np.broadcast_to(
        np.logical_and.reduce(
            np.broadcast_arrays(*(c.kinds() == Kind.INTEGER for c in columns))
        ), n
    )  # fmt: skip
    values = [np.broadcast_to(value, n) for value, _ in read]
    mantissas = [np.broadcast_to(column.values()[2], n) for column in columns]
    if function in _FLOATS:
        with np.errstate(all="ignore"):
            results = _FLOATS[function](*values)
        if function is _F.LN:
            bound = bound & (~np.isnan(results) | (values[0] > 0))
        elif function is _F.VARIANCE:  # of no number, or of one in a sample, there is none
            bound = bound & (values[1] > values[0])
        _put_floats(result, bound, results)
        return result.column()
    whole = np.flatnonzero(bound & integers)
    if len(whole):
        _put_integers(function, [m[whole] for m in mantissas], whole, result)
    rest = np.flatnonzero(bound & ~integers)
    if len(rest):
        some = [v[rest] for v in values]
        with np.errstate(all="ignore"):
            results = np.fmod(*some) if function is _F.REMAINDER else _round_half_up(*some)
        fits = some[1] != 0 if function is _F.REMAINDER else np.ones(len(rest), np.bool_)
        result.put(rest[fits], Kind.DOUBLE, dbl=results[fits] + 0.0)
    return result.column()


def _number_text(column: Column) -> Column:
    """Writes doubles as Spark does: ``1.0``, ``1.0E10``, ``Infinity``."""
    values, bound = _doubles(column)
    distinct, codes = np.unique(values, return_inverse=True)
    texts = pl.Series([_shown(value) for value in distinct.tolist()], dtype=pl.String)
    written = texts.gather(codes).set(pl.Series(~bound), None)
    return _column(written, Kind.STRING)


def _shown(value: float) -> str:
    if not np.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        shown = format(Decimal(repr(value)), "f")
        return shown if "." in shown else shown + ".0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int), "a finite number has an exponent"
    rest = "".join(map(str, digits[1:])) or "0"
    return f"{'-' * sign}{digits[0]}.{rest}E{exponent + len(digits) - 1}"


def _put_floats(result: Result, rows: Bools, values: Doubles) -> None:
    at = np.flatnonzero(rows)
    result.put(at, Kind.DOUBLE, dbl=np.asarray(values[at], np.float64) + 0.0)


def _put_integers(function: Function, args: Sequence[Longs], rows: Longs, result: Result) -> None:
    a, b = args
    if function is _F.REMAINDER:
        fits = b != 0
        values = np.fmod(a[fits], b[fits])
    else:
        exact = [_rounded_integer(int(x), int(d)) for x, d in zip(a, b, strict=True) if d < 0]
        values, fits = a.copy(), np.ones(len(a), np.bool_)
        fits[b < 0] = [-(2**63) <= value < 2**63 for value in exact]
        values[(b < 0) & fits] = [value for value in exact if -(2**63) <= value < 2**63]
        values = values[fits]
    at = rows[fits]
    result.put(at, Kind.INTEGER, man=values, scale=np.zeros(len(at), np.uint8))


def _rounded_integer(value: int, digits: int) -> int:
    """Rounds to tens, hundreds ..; a half away from zero."""
    unit: int = 10 ** min(-digits, 20)
    size = (abs(value) + unit // 2) // unit * unit
    return size if value >= 0 else -size


def _round_half_up(values: Doubles, digits: Doubles) -> Doubles:
    """Rounds the shortest decimal form of each double, a half away from zero, as Spark does."""
    places = np.clip(digits, -_DIGITS, _DIGITS)
    power = 10.0 ** np.abs(places)
    scaled = np.where(places >= 0, values * power, values / power)
    size = np.abs(scaled)
    near = np.floor(size + 0.5)
    results = np.copysign(np.where(places >= 0, near / power, near * power), values)
    # beyond 2^52 a double has no half, and near a half its product is not exact
    odd = np.abs(size - np.floor(size) - 0.5) < 1e-6 * np.maximum(size, 1.0)
    odd = (odd | (size >= 2.0**52) | ~np.isfinite(size) | (power > 1e22)) & np.isfinite(values)
    for i in np.flatnonzero(odd):
        results[i] = _round_exactly(float(values[i]), int(places[i]))
    return np.where(np.isfinite(values), results, values)


def _round_exactly(value: float, digits: int) -> float:
    context = Context(prec=1200, rounding=ROUND_HALF_UP)
    return float(Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), context=context))
