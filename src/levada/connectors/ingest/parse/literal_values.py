"""Computes values of literals in arbitrary precision, which the kernels cannot; the twin of
``kernels.text.literals``.

XSD 1.1 part 2: an ill-typed literal has no value (``OTHER``). A valid one that the facets cannot
represent exactly is HARD, and its text decides. Lexical forms are taken unchanged: RDF does not
trim whitespace.

Cost: some microseconds a literal; only literals that the kernel left pending are computed here.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import NamedTuple

import numpy as np

from levada.core.event_time import MAX, MIN
from levada.core.rdf_terms import MOST_CHARACTERS, SPECIAL, XSD, Kind
from levada.kernels.text.literals import DATATYPES


class Facets(NamedTuple):
    """Kind, double, mantissa (or 0/1, or milliseconds), decimal scale: the facets k, d, m, c of
    ``core.frame``.
    """

    kind: int
    dbl: float = 0.0
    man: int = 0
    scale: int = 0


_OTHER = Facets(Kind.OTHER)
_DIGITS = 18  # digits that always fit into an int64 mantissa

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SPECIAL = {"INF": float("inf"), "+INF": float("inf"), "-INF": float("-inf"), "NaN": float("nan")}
_TIME = re.compile(
    r"(-?(?:[1-9][0-9]{3,}|0[0-9]{3}))-([0-9]{2})-([0-9]{2})"
    r"T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?"
)

# Least and greatest value; None is unbounded.
_RANGES: dict[str, tuple[int | None, int | None]] = {
    "integer": (None, None),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-(2**7), 2**7 - 1),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 2**8 - 1),
}


def facets_of(lexical: str, datatype: str) -> Facets:
    """Returns the facets of a literal without language tag, by its lexical form and datatype IRI.

    >>> facets_of("1.50", XSD + "decimal")
    Facets(kind=<Kind.DECIMAL: 11>, dbl=1.5, man=150, scale=2)
    """
    if not datatype.startswith(XSD):
        return _OTHER
    name = datatype.removeprefix(XSD)
    if len(lexical) > MOST_CHARACTERS and name != "string":
        return _OTHER
    if name in _RANGES:
        return _integer(lexical, name)
    match name:
        case "string":
            return Facets(Kind.STRING)
        case "decimal":
            return _decimal(lexical)
        case "double" | "float":
            return _floating(lexical, name == "float")
        case "boolean":
            return (
                Facets(Kind.BOOLEAN, 0.0, int(lexical in ("true", "1")))
                if _is_boolean(lexical)
                else _OTHER
            )
        case "dateTime":
            return _date_time(lexical)
        case _:
            return _OTHER


def _is_boolean(lexical: str) -> bool:
    return lexical in ("true", "false", "1", "0")


def _significant(text: str) -> int:
    """Counts the digits of a number without sign, point and leading zeros."""
    return len(text.lstrip("+-").replace(".", "").lstrip("0"))


def _integer(lexical: str, name: str) -> Facets:
    if not _INTEGER.fullmatch(lexical):
        return _OTHER
    least, greatest = _RANGES[name]
    size = _significant(lexical)
    # Numbers with more than 20 digits exceed every bound; int() never sees texts of any length.
    value = int(lexical) if size <= 20 else (-(10**20) if lexical.startswith("-") else 10**20)
    if (least is not None and value < least) or (greatest is not None and value > greatest):
        return _OTHER
    if size > _DIGITS:
        return Facets(Kind.HARD_NUMBER, float(lexical))
    return Facets(Kind.INTEGER, float(value), value)


def _decimal(lexical: str) -> Facets:
    if not _DECIMAL.fullmatch(lexical):
        return _OTHER
    scale = len(lexical.partition(".")[2])
    if _significant(lexical) > _DIGITS or scale > _DIGITS:
        return Facets(Kind.HARD_NUMBER, float(lexical))
    mantissa = int(lexical.replace(".", ""))
    return Facets(Kind.DECIMAL, float(Fraction(mantissa, 10**scale)), mantissa, scale)


def _floating(lexical: str, single: bool) -> Facets:
    kind = Kind.FLOAT if single else Kind.DOUBLE
    if lexical in _SPECIAL:
        return Facets(kind, _SPECIAL[lexical])
    if not _DOUBLE.fullmatch(lexical):
        return _OTHER
    return Facets(kind, nearest_float(lexical) if single else float(lexical))


def nearest_float(lexical: str) -> float:
    """Returns the float (32 bits) nearest to a decimal text, ties to even: rounded once, not
    through a double.

    >>> nearest_float("16777217.0000000000000001")  # as a double halfway between two floats
    16777218.0
    """
    value = float(lexical)
    with np.errstate(over="ignore", under="ignore"):
        near = float(np.float32(value))
        if near == value or not np.isfinite(value):
            return near
        other = float(
            np.nextafter(np.float32(near), np.float32(np.inf if value > near else -np.inf))
        )
    low, high = (_finite(v) for v in sorted((near, other)))
    exact = Fraction(lexical)
    if value - low != high - value or exact == Fraction(value):
        return near
    chosen = high if exact > Fraction(value) else low
    return chosen if abs(chosen) < 2.0**128 else float(np.copysign(np.inf, chosen))


def _finite(value: float) -> float:
    """Returns a float with infinity as 2**128, for the comparison of distances."""
    return float(np.clip(value, -(2.0**128), 2.0**128))


class Instant(NamedTuple):
    """A valid xsd:dateTime: UTC milliseconds rounded down (no zone: read as UTC), whether that is
    exact, zoned, its year.
    """

    ms: int
    exact: bool
    zoned: bool
    year: int


def instant_of(lexical: str) -> Instant | None:
    """Returns the instant of an xsd:dateTime's lexical form, or None if it is ill-typed.

    >>> instant_of("1970-01-01T01:00:00+01:00").ms
    0
    """
    match = _TIME.fullmatch(lexical)
    if match is None:
        return None
    year = _year(match[1])
    month, day, hour, minute, second = (int(part) for part in match.groups()[1:6])
    fraction, zone = (match[7] or "").rstrip("0"), match[8]
    midnight = hour == 24 and minute == second == 0 and not fraction
    if not (1 <= month <= 12 and 1 <= day <= _month_days(year, month) and (hour < 24 or midnight)):
        return None
    east = _east(zone)
    if minute > 59 or second > 59 or east is None:
        return None
    seconds = (_days(year, month, day) * 24 + hour) * 3600 + (minute - east) * 60 + second
    return Instant(
        seconds * 1000 + int(fraction[:3].ljust(3, "0")), len(fraction) <= 3, zone is not None, year
    )


def _year(text: str) -> int:
    """Returns the year; one of more than 12 digits is cut to one that is out of every range too and
    has the same calendar.
    """
    if len(text) <= 13:
        return int(text)
    return (-1 if text.startswith("-") else 1) * (10**12 + int(text[-4:]))


def _east(zone: str | None) -> int | None:
    """Returns minutes east of UTC; None beyond 14 hours."""
    if zone is None or zone == "Z":
        return 0
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if minutes > 59 or hours * 60 + minutes > 840:
        return None
    return -(hours * 60 + minutes) if zone[0] == "-" else hours * 60 + minutes


def _month_days(year: int, month: int) -> int:
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return (31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]


def _days(year: int, month: int, day: int) -> int:
    """Returns days since 1970-01-01, for any year."""
    years = year - 1970
    leaps = sum(sign * ((year - 1) // n - 1969 // n) for n, sign in ((4, 1), (100, -1), (400, 1)))
    return years * 365 + leaps + sum(_month_days(year, m) for m in range(1, month)) + day - 1


def _date_time(lexical: str) -> Facets:
    instant = instant_of(lexical)
    if instant is None:
        return _OTHER
    if instant.exact and instant.zoned and 1 <= instant.year <= 9999:
        return Facets(Kind.DATETIME, 0.0, instant.ms)
    return Facets(Kind.HARD_TIME)


_DATED = re.compile(
    r"(-?(?:[1-9][0-9]{3,8}|0[0-9]{3}))(?:-([0-9]{2})(?:-([0-9]{2})"
    r"(?:[T ]([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?))?)?)?(Z|[+-][0-9]{2}:[0-9]{2})?"
)
_NUMBERS = (*_RANGES, "decimal", "double", "float")
_FORMS = {"dateTime": {4}, "dateTimeStamp": {4}, "date": {3}, "gYearMonth": {2}, "gYear": {1}}
"""How many parts of a dateTime the literals of a type have."""
_KNOWN = frozenset(XSD + name for name, *_ in DATATYPES)


def event_time(lexical: str, datatype: str, unit_power: int) -> int | None:
    """Returns the event time in ms of a literal, or None: a number of units of ``10**unit_power``
    ms, or a dateTime, date, month or year (no zone: UTC). A literal of a type of somebody's own may
    be a dateTime. The twin of ``kernels.text.timestamps``.

    >>> event_time("12", XSD + "integer", 3), event_time("0.0125", XSD + "string", 3)
    (12000, 12)
    """
    name, text = datatype.removeprefix(XSD), lexical.strip(" \t")
    if len(text) > MOST_CHARACTERS or re.search(SPECIAL, lexical):
        return None
    if name in _NUMBERS and facets_of(text, datatype).kind == Kind.OTHER:
        return None
    value = None
    if name in (*_NUMBERS, "string") and _DOUBLE.fullmatch(text):
        value = _units(Decimal(text), unit_power)
    elif match := _DATED.fullmatch(text):
        parts = [part for part in match.groups()[:4] if part is not None]
        others = {2, 3, 4} if name == "string" else {4} if datatype not in _KNOWN else set[int]()
        if len(parts) in _FORMS.get(name, others):
            year, month, day, clock = parts + ["01", "01", "00:00:00"][len(parts) - 1 :]
            instant = instant_of(f"{year}-{month}-{day}T{clock}{match[5] or ''}")
            value = None if instant is None else instant.ms
    return value if value is not None and MIN < value < MAX else None


def _units(number: Decimal, power: int) -> int | None:
    """Converts units of 10**power ms to ms, rounded down; None beyond all times."""
    places = number.adjusted() + power
    if number and places > 20:
        return None
    return -int(number < 0) if places < -20 else floor(Fraction(number) * Fraction(10) ** power)
