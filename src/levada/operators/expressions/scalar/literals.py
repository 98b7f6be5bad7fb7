"""Terms and their values: the meaning of lexical forms of the recognised datatypes, and the
canonical form of values.

``value_of(term)`` is a ``Value`` for literals of the recognised datatypes and None for all else
(other datatypes, ill-typed literals, IRIs, blank nodes). ``literal_of(value)`` writes a value in
the canonical form that the project's judge prints: decimals without a trailing point, floats and
doubles in full decimal notation, ``INF``, ``-INF``, ``NaN``.

Derived integer types have the value of an integer and must lie in their range. xsd:dateTimeStamp is
a dateTime.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import lru_cache

import numpy as np

from levada.core.frozen import frozen
from levada.core.rdf_terms import (
    LANG_STRING,
    MOST_CHARACTERS,
    STRING,
    XSD,
    Kind,
    Literal,
    Term,
    parse_term,
)
from levada.operators.expressions.scalar import times
from levada.operators.expressions.scalar.numbers import (
    Number,
    Single,
    double,
    single,
)
from levada.operators.expressions.scalar.times import Duration, Timestamp

INTEGER, DECIMAL, FLOAT, DOUBLE = XSD + "integer", XSD + "decimal", XSD + "float", XSD + "double"
BOOLEAN, DATE_TIME = XSD + "boolean", XSD + "dateTime"
_RANGES: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-128, 127),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 255),
}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_DURATIONS = (times.DURATION, times.YEAR_MONTH, times.DAY_TIME)
EXACT_DIGITS = 10**18


@frozen
class Text:
    """The value of a string literal: its characters and language ("" if none)."""

    lexical: str
    language: str = ""


Value = bool | Number | Text | Timestamp | Duration


def is_number(value: Value | None) -> bool:
    """Whether a value is a number (a boolean is not a number)."""
    return isinstance(value, int | Decimal | float) and not isinstance(value, bool)


@lru_cache(maxsize=65536)
def term_of(text: str) -> Term:
    """The term of a canonical text, remembered."""
    return parse_term(text)


@lru_cache(maxsize=65536)
def value_of(term: Term) -> Value | None:
    """The value of a literal of a recognised datatype, else None.

    >>> value_of(Literal("007", XSD + "byte")), value_of(Literal("300", XSD + "byte"))
    (7, None)
    """
    if not isinstance(term, Literal):
        return None
    if term.datatype == STRING or term.language:
        return Text(term.lexical, term.language)
    if not term.datatype.startswith(XSD):
        return None
    return read(term.lexical, term.datatype[len(XSD) :])


def read(lexical: str, datatype: str) -> Value | None:
    """The value of a lexical form of the XML Schema type with this local name, or None."""
    if len(lexical) > MOST_CHARACTERS:
        return None
    if datatype in _RANGES:
        return _read_integer(lexical, *_RANGES[datatype])
    match datatype:
        case "decimal":
            return Decimal(lexical) if _DECIMAL.fullmatch(lexical) else None
        case "double":
            return float(lexical) if _DOUBLE.fullmatch(lexical) else None
        case "float":
            return _read_single(lexical) if _DOUBLE.fullmatch(lexical) else None
        case "boolean":
            return _BOOLEANS.get(lexical)
        case "dateTimeStamp":
            stamp = times.parse(lexical, "dateTime")
            return stamp if stamp is not None and stamp.offset is not None else None
    if datatype in times.TYPES:
        return times.parse(lexical, datatype)
    return times.parse_duration(lexical, datatype) if datatype in _DURATIONS else None


def _read_single(lexical: str) -> Single:
    value = float(lexical)
    return single(Decimal(lexical) if math.isfinite(value) else value)


def _read_integer(lexical: str, least: int | None, greatest: int | None) -> int | None:
    if not _INTEGER.fullmatch(lexical):
        return None
    value = int(lexical)
    inside = (least is None or least <= value) and (greatest is None or value <= greatest)
    return value if inside else None


def literal_of(value: Value) -> Literal:
    """The canonical literal of a value.

    >>> str(literal_of(Decimal("2.50")))
    '"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    """
    match value:
        case bool():
            return Literal("true" if value else "false", BOOLEAN)
        case int():
            return Literal(str(value), INTEGER)
        case Decimal():
            return Literal(show_decimal(value), DECIMAL)
        case Single():
            return Literal(show_float(np.float32(value)), FLOAT)
        case float():
            return Literal(show_float(np.float64(value)), DOUBLE)
        case Text(lexical, language):
            return Literal(lexical, LANG_STRING if language else STRING, language)
        case _:
            return Literal(value.lexical(), XSD + value.datatype)


def show_decimal(value: Decimal) -> str:
    """The canonical lexical form of a decimal: no exponent, no zeros at the end, no point without a
    fraction.
    """
    text = format(value, "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def show_float(value: np.float32 | np.float64) -> str:
    """The shortest digits that read back as the same float, without an exponent."""
    if not np.isfinite(value):
        return "NaN" if value != value else "INF" if value > 0 else "-INF"
    return np.format_float_positional(value, unique=True, trim="-")


def facets(term: Term | None) -> tuple[int, float, int, int]:
    """The value facets of a term: kind, double, mantissa (or ms), decimal scale (see
    ``core.rdf_terms.Kind``).

    >>> facets(Literal("-1.50", DECIMAL))
    (<Kind.DECIMAL: 11>, -1.5, -15, 1)
    """
    if not isinstance(term, Literal):
        return _node_kind(term), 0.0, 0, 0
    match value_of(term):
        case Text(_, language):
            return Kind.LANG if language else Kind.STRING, 0.0, 0, 0
        case bool(flag):
            return Kind.BOOLEAN, 0.0, int(flag), 0
        case int() | Decimal() as number:
            return _exact_facets(number)
        case float(number):
            kind = Kind.FLOAT if isinstance(number, Single) else Kind.DOUBLE
            return kind, float(number), 0, 0
        case Timestamp() as stamp if term.datatype == DATE_TIME:
            return _time_facets(stamp)
        case _:
            return Kind.OTHER, 0.0, 0, 0


def _node_kind(term: Term | None) -> Kind:
    if term is None:
        return Kind.UNBOUND
    return Kind.BLANK if str(term).startswith("_") else Kind.IRI


def _exact_facets(number: int | Decimal) -> tuple[int, float, int, int]:
    near = double(number)
    if isinstance(number, int):
        exact = abs(number) < EXACT_DIGITS
        return (Kind.INTEGER, near, number, 0) if exact else (Kind.HARD_NUMBER, near, 0, 0)
    text = show_decimal(number)
    scale = len(text) - text.index(".") - 1 if "." in text else 0
    mantissa = int(text.replace(".", ""))
    exact = abs(mantissa) < EXACT_DIGITS and scale <= 18
    return (Kind.DECIMAL, near, mantissa, scale) if exact else (Kind.HARD_NUMBER, near, 0, 0)


def _time_facets(stamp: Timestamp) -> tuple[int, float, int, int]:
    ms, finer = divmod(stamp.instant - _EPOCH, times.SECOND // 1000)
    if finer or stamp.offset is None or not 1 <= (stamp.year or 0) <= 9999:
        return Kind.HARD_TIME, 0.0, 0, 0
    return Kind.DATETIME, 0.0, ms, 0


_EPOCH = times.days_before(1970, 1, 1) * times.DAY
