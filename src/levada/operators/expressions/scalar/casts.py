"""Constructor functions: casts between XML Schema types (SPARQL 1.1, 17.5; XPath functions 17.1).

From strings the lexical form is read, white space around it left out. Numbers are cut towards zero
to integers; decimals from floats have the 18 digits that the judge gives (the float times 10^18),
and are exact where the judge has none. xsd:string writes the XPath form of a value: floats and
doubles below a millionth and from a million on with an exponent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from levada.core.rdf_terms import STRING, XSD, Blank, Iri, Literal, Term
from levada.operators.expressions.scalar import times
from levada.operators.expressions.scalar.literals import (
    Text,
    Value,
    is_number,
    literal_of,
    read,
    show_decimal,
    value_of,
)
from levada.operators.expressions.scalar.numbers import (
    ExpressionError,
    Number,
    Single,
    check_length,
    double,
    single,
)
from levada.operators.expressions.scalar.times import Duration, Timestamp

_BLANKS = " \t\r\n"
_FIELDS = {
    "dateTime": ("year", "month", "day", "time"),
    "date": ("year", "month", "day"),
    "time": ("time",),
    "gYear": ("year",),
    "gYearMonth": ("year", "month"),
    "gMonth": ("month",),
    "gMonthDay": ("month", "day"),
    "gDay": ("day",),
}


def cast(target: Term, a: Term) -> Literal:
    """``xsd:integer(?x)`` and its like: ``target`` is the datatype's IRI.

    >>> cast(Iri(XSD + "integer"), Literal("-3.7", XSD + "decimal")).lexical
    '-3'
    """
    assert isinstance(target, Iri), "the target of a cast is an IRI"
    name = target.value.removeprefix(XSD)
    if name == "string":
        return Literal(_string(a))
    if name not in TARGETS or isinstance(a, Iri | Blank):
        raise ExpressionError("no such cast")
    if a.datatype == STRING and not a.language:
        value = read(a.lexical.strip(_BLANKS), name)
    else:
        source = value_of(a)
        value = None if source is None or isinstance(source, Text) else TARGETS[name](source)
    if value is None:
        raise ExpressionError("a value that the target type does not have")
    return literal_of(check_length(value) if is_number(value) else value)  # type: ignore[arg-type]


def _string(a: Term) -> str:
    if isinstance(a, Blank):
        raise ExpressionError("a blank node has no string")
    if isinstance(a, Iri):
        return a.value
    value = value_of(a)
    if isinstance(value, float) and math.isfinite(value) and value and not 1e-6 <= abs(value) < 1e6:
        return _scientific(value)
    return a.lexical if value is None else literal_of(value).lexical


def _scientific(value: float) -> str:
    """XPath's form of large and small floats: ``1.5E10``."""
    digits = Decimal(literal_of(value).lexical)
    exponent = digits.adjusted()
    mantissa = show_decimal(digits.scaleb(-exponent))
    return f"{mantissa}{'' if '.' in mantissa else '.0'}E{exponent}"


def _number(value: Value) -> Number | None:
    if isinstance(value, bool):
        return int(value)
    return value if is_number(value) else None  # type: ignore[return-value]


def _boolean(value: Value) -> bool | None:
    number = _number(value)
    return None if number is None else number == number and number != 0


def _integer(value: Value) -> int | None:
    number = _number(value)
    if number is None or (isinstance(number, float) and not math.isfinite(number)):
        return None
    return int(number)


def _decimal(value: Value) -> Decimal | None:
    number = _number(value)
    if number is None or (isinstance(number, float) and not math.isfinite(number)):
        return None
    if isinstance(number, float):
        scaled = number * 1e18
        return Decimal(int(scaled)).scaleb(-18) if abs(scaled) < 2.0**127 else Decimal(int(number))
    return Decimal(number)


def _double(value: Value) -> float | None:
    number = _number(value)
    return None if number is None else double(number)


def _single(value: Value) -> Single | None:
    number = _number(value)
    return None if number is None else single(number)


def _stamp(name: str) -> Callable[[Value], Timestamp | None]:
    """A date or time from one that has all its fields (a dateTime from a date: at midnight)."""

    def convert(value: Value) -> Timestamp | None:
        if not isinstance(value, Timestamp):
            return None
        fields: dict[str, Any] = {field: getattr(value, field) for field in _FIELDS[name]}
        if name == "dateTime" and value.datatype == "date":
            fields["time"] = 0
        partial = value.datatype not in ("dateTime", "date") and value.datatype != name
        if partial or any(v is None for v in fields.values()):
            return None
        return Timestamp(name, **fields, offset=value.offset)

    return convert


def _duration(name: str) -> Callable[[Value], Duration | None]:
    """A duration of another type: the part that the type does not have is left out."""

    def convert(value: Value) -> Duration | None:
        if not isinstance(value, Duration):
            return None
        months = 0 if name == times.DAY_TIME else value.months
        return Duration(months, 0 if name == times.YEAR_MONTH else value.time, name)

    return convert


TARGETS: dict[str, Callable[[Value], Value | None]] = {
    "boolean": _boolean,
    "integer": _integer,
    "decimal": _decimal,
    "float": _single,
    "double": _double,
    **{name: _stamp(name) for name in times.TYPES},
    **{name: _duration(name) for name in (times.DURATION, times.YEAR_MONTH, times.DAY_TIME)},
}
"""The local names of the datatypes that can be cast to (beside string), with the conversions."""
