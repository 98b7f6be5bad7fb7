"""Values of literals from their bytes: XSD integers, decimals, floats, doubles, booleans and
dateTimes (XSD 1.1, part 2).

Each function takes the lexical form as bytes start to stop of a view and returns a kind and the
value facets of ``core.rdf_terms``: an exact value, ``OTHER`` for an ill-typed literal, or
``PENDING`` where only arbitrary precision decides (more than 18 digits, doubles beyond the exact
fast path, unusual years): the caller then uses ``connectors.ingest.parse.literal_values``, which is
also the twin.

Doubles are correctly rounded: a mantissa of at most 2**53 times or over a power of ten of at most
10**22 is one rounding of exact operands (Clinger 1990). A float is that double rounded again,
unless it lies halfway between two floats. Cost: 5 to 20 ns a literal.
"""

from __future__ import annotations

import numpy as np

from levada.core.rdf_terms import MOST_CHARACTERS, XSD, Kind
from levada.kernels import fuse, part
from levada.kernels.text.byte_ops import DIGIT, View, W, byte, first_bytes, is_in, routine, word

PENDING = 255  # a kind that never leaves intake

INTEGER_, DECIMAL_, FLOAT_, DOUBLE_ = (
    int(Kind.INTEGER),
    int(Kind.DECIMAL),
    int(Kind.FLOAT),
    int(Kind.DOUBLE),
)
BOOLEAN_, DATETIME_, HARD_TIME_, OTHER_ = (
    int(Kind.BOOLEAN),
    int(Kind.DATETIME),
    int(Kind.HARD_TIME),
    int(Kind.OTHER),
)
STRING_ = int(Kind.STRING)

# The datatypes with a value: local name, kind, least and greatest value of the integer types.
# Frequent ones first.
_MIN_INT64, _MAX_INT64 = -(2**63), 2**63 - 1
DATATYPES: tuple[tuple[str, int, int, int], ...] = (
    ("integer", INTEGER_, _MIN_INT64, _MAX_INT64),
    ("double", DOUBLE_, 0, 0),
    ("decimal", DECIMAL_, 0, 0),
    ("dateTime", DATETIME_, 0, 0),
    ("float", FLOAT_, 0, 0),
    ("string", STRING_, 0, 0),
    ("boolean", BOOLEAN_, 0, 0),
    ("int", INTEGER_, -(2**31), 2**31 - 1),
    ("long", INTEGER_, _MIN_INT64, _MAX_INT64),
    ("short", INTEGER_, -(2**15), 2**15 - 1),
    ("byte", INTEGER_, -(2**7), 2**7 - 1),
    ("nonNegativeInteger", INTEGER_, 0, _MAX_INT64),
    ("positiveInteger", INTEGER_, 1, _MAX_INT64),
    ("nonPositiveInteger", INTEGER_, _MIN_INT64, 0),
    ("negativeInteger", INTEGER_, _MIN_INT64, -1),
    # up to 2**64 - 1: beyond 18 digits it is pending anyway
    ("unsignedLong", INTEGER_, 0, _MAX_INT64),
    ("unsignedInt", INTEGER_, 0, 2**32 - 1),
    ("unsignedShort", INTEGER_, 0, 2**16 - 1),
    ("unsignedByte", INTEGER_, 0, 2**8 - 1),
    # no value here, but an event time
    ("dateTimeStamp", OTHER_, 0, 0),
    ("date", OTHER_, 0, 0),
    ("gYearMonth", OTHER_, 0, 0),
    ("gYear", OTHER_, 0, 0),
)
NO_VALUE = len(DATATYPES)  # the code of every other datatype
STRING_CODE = next(code for code, datatype in enumerate(DATATYPES) if datatype[0] == "string")


def _name_words(text: str) -> list[int]:
    raw = text.encode().ljust(24, b"\0")
    return [int.from_bytes(raw[i : i + 8], "little") for i in (0, 8, 16)]


_NAME_SIZE = np.array([len(d[0]) for d in DATATYPES], np.int64)
_NAME_WORDS = np.array([_name_words(d[0]) for d in DATATYPES], np.uint64)
KINDS = np.array([*(d[1] for d in DATATYPES), OTHER_], np.int64)
_LOWEST = np.array([d[2] for d in DATATYPES], np.int64)
_HIGHEST = np.array([d[3] for d in DATATYPES], np.int64)
_XSD_WORDS = np.array(
    [int.from_bytes(XSD[i : i + 8].encode(), "little") for i in range(0, 32, 8)], np.uint64
)
XSD_SIZE = len(XSD)  # four words and "#"

_POWERS = np.array([10.0**k for k in range(23)])  # exact doubles
_EXACT = 2**53
_DIGITS = 18

Facets = tuple[int, float, int, int]  # kind, double, mantissa or milliseconds, scale


@fuse
def in_xsd(view: View, i: int) -> bool:
    """Whether the bytes from i are the XML Schema namespace."""
    if word(view, i) != _XSD_WORDS[0] or word(view, i + 8) != _XSD_WORDS[1]:
        return False
    return bool(
        word(view, i + 16) == _XSD_WORDS[2]
        and word(view, i + 24) == _XSD_WORDS[3]
        and byte(view, i + 32) == 35
    )


@routine
def datatype_code(view: View, i: int, size: int) -> int:
    """The place in DATATYPES of the local name of ``size`` bytes at i, or NO_VALUE; 24 bytes can be
    read at i.
    """
    first = first_bytes(word(view, i), size)
    for code in range(NO_VALUE):
        if _NAME_WORDS[code, 0] == first and _NAME_SIZE[code] == size:
            second, third = (
                first_bytes(word(view, i + 8), size - 8),
                first_bytes(word(view, i + 16), size - 16),
            )
            if _NAME_WORDS[code, 1] == second and _NAME_WORDS[code, 2] == third:
                return code
    return NO_VALUE


@part
def digits(view: View, i: int, mantissa: int, significant: int) -> tuple[int, int, int]:
    """Reads digits from i on: (end, mantissa, number of significant digits); the mantissa has at
    most 18 of them.
    """
    while is_in(byte(view, i), DIGIT):
        d = byte(view, i) - 48
        if significant > 0 or d > 0:
            significant += 1
        if significant <= _DIGITS:
            mantissa = mantissa * 10 + d
        i += 1
    return i, mantissa, significant


@part
def sign(view: View, i: int) -> tuple[int, bool]:
    """Skips a sign: (end, whether it was a minus)."""
    c = byte(view, i)
    return i + (1 if c == 43 or c == 45 else 0), c == 45


@routine
def integer(view: View, start: int, stop: int, code: int) -> Facets:
    """xsd:integer and derived types: exact up to 18 digits; out of its range is ill-typed."""
    first, minus = sign(view, start)
    end, m, significant = digits(view, first, 0, 0)
    if end != stop or end == first:
        return OTHER_, 0.0, 0, 0
    if significant > _DIGITS:
        return PENDING, 0.0, 0, 0
    if minus:
        m = -m
    if m < _LOWEST[code] or m > _HIGHEST[code]:
        return OTHER_, 0.0, 0, 0
    return INTEGER_, float(m), m, 0


@routine
def mantissa(view: View, start: int) -> tuple[int, bool, int, int, int, int]:
    """Sign, digits, point, digits: (end, minus, mantissa, scale, significant digits, digits)."""
    first, minus = sign(view, start)
    end, m, significant = digits(view, first, 0, 0)
    count, scale = end - first, 0
    if byte(view, end) == 46:
        point = end + 1
        end, m, significant = digits(view, point, m, significant)
        scale = end - point
        count += scale
    return end, minus, m, scale, significant, count


@routine
def decimal(view: View, start: int, stop: int) -> Facets:
    """xsd:decimal: mantissa and scale exact up to 18 digits each."""
    end, minus, m, scale, significant, count = mantissa(view, start)
    if end != stop or count == 0:
        return OTHER_, 0.0, 0, 0
    if significant > _DIGITS or scale > _DIGITS or m > _EXACT:
        return PENDING, 0.0, 0, 0
    if minus:
        m = -m
    return DECIMAL_, float(m) / _POWERS[scale], m, scale


@fuse
def _exponent(view: View, i: int) -> tuple[int, int]:
    """The exponent after E: (end, value), end 0 without a digit; four or more digits saturate."""
    first, minus = sign(view, i)
    end, value, significant = digits(view, first, 0, 0)
    if end == first:
        return 0, 0
    if significant > 3:
        value = 9999
    return end, -value if minus else value


@routine
def double(view: View, start: int, stop: int) -> tuple[int, float]:
    """xsd:double: (kind, value); INF, NaN and values that it cannot round correctly are pending."""
    end, minus, m, scale, significant, count = mantissa(view, start)
    if count == 0:
        return PENDING, 0.0  # INF, NaN, or nothing
    exponent = 0
    if end < stop and (byte(view, end) | 32) == 101:
        end, exponent = _exponent(view, end + 1)
    if end != stop:
        return OTHER_, 0.0
    power = exponent - scale
    if significant > _DIGITS or m > _EXACT or (m > 0 and (power > 22 or power < -22)):
        return PENDING, 0.0
    value = float(m)
    if m > 0:
        value = value / _POWERS[-power] if power < 0 else value * _POWERS[power]
    return DOUBLE_, -value if minus else value


@routine
def float_(view: View, start: int, stop: int) -> tuple[int, float]:
    """xsd:float: (kind, value rounded to 32 bits); halfway between two floats is pending."""
    kind, value = double(view, start, stop)
    if kind != DOUBLE_:
        return kind, 0.0
    if value != 0.0 and abs(value) < 1.2e-38:
        return PENDING, 0.0  # subnormal
    rounded = float(np.float32(value))
    other = value + (value - rounded)
    if value != rounded and float(np.float32(other)) == other:
        return PENDING, 0.0
    return FLOAT_, rounded


@part
def boolean(view: View, start: int, stop: int) -> Facets:
    """xsd:boolean: true, false, 1, 0."""
    size = stop - start
    text = first_bytes(word(view, start), size)
    if (size == 4 and text == W(0x65757274)) or (size == 1 and text == W(49)):
        return BOOLEAN_, 0.0, 1, 0
    if (size == 5 and text == W(0x65736C6166)) or (size == 1 and text == W(48)):
        return BOOLEAN_, 0.0, 0, 0
    return OTHER_, 0.0, 0, 0


@part
def _two_digits(view: View, i: int) -> int:
    """The number of two digits, or a large negative one."""
    if not (is_in(byte(view, i), DIGIT) and is_in(byte(view, i + 1), DIGIT)):
        return -1_000_000
    return byte(view, i) * 10 + byte(view, i + 1) - 528


@fuse
def days_in_month(year: int, month: int) -> int:
    """The days of a month of the Gregorian calendar."""
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


@fuse
def days_since_epoch(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 to a Gregorian day, year >= 1; years here begin in March."""
    y = year - 1 if month <= 2 else year
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return y * 365 + y // 4 - y // 100 + y // 400 + of_year - 719468


@fuse
def _fraction(view: View, i: int) -> tuple[int, int, bool]:
    """The digits after a second's point: (end, milliseconds rounded down, whether exact)."""
    ms, count, exact = 0, 0, True
    while is_in(byte(view, i), DIGIT):
        if count < 3:
            ms = ms * 10 + byte(view, i) - 48
        elif byte(view, i) != 48:
            exact = False
        count += 1
        i += 1
    for _ in range(count, 3):
        ms *= 10
    return i, ms, exact


@fuse
def _zone(view: View, i: int, stop: int) -> tuple[int, int]:
    """A time zone at i: (end, minutes east of UTC), end 0 if ill-formed."""
    c = byte(view, i)
    if c == 90:
        return i + 1, 0
    if (c != 43 and c != 45) or stop - i != 6:
        return 0, 0
    hours, minutes = _two_digits(view, i + 1), _two_digits(view, i + 4)
    east = hours * 60 + minutes
    if byte(view, i + 3) != 58 or hours < 0 or minutes < 0 or minutes > 59 or east > 840:
        return 0, 0
    return stop, -east if c == 45 else east


@fuse
def _clock(view: View, i: int) -> int:
    """hh:mm:ss at i in seconds, or negative."""
    h, m, s = _two_digits(view, i), _two_digits(view, i + 3), _two_digits(view, i + 6)
    if byte(view, i + 2) != 58 or byte(view, i + 5) != 58 or h > 23 or m > 59 or s > 59:
        return -1
    return (h * 60 + m) * 60 + s if h >= 0 and m >= 0 and s >= 0 else -1


@routine
def date_time(view: View, start: int, stop: int) -> tuple[int, int]:
    """xsd:dateTime: (DATETIME with zone and exact, or HARD_TIME; UTC milliseconds rounded down),
    years 1 to 9999.

    Other texts are pending: other years and 24:00:00 are valid too.
    """
    if (
        stop - start < 19
        or byte(view, start + 4) != 45
        or byte(view, start + 7) != 45
        or byte(view, start + 10) != 84
    ):
        return PENDING, 0
    year = _two_digits(view, start) * 100 + _two_digits(view, start + 2)
    month, day, seconds = (
        _two_digits(view, start + 5),
        _two_digits(view, start + 8),
        _clock(view, start + 11),
    )
    if (
        year < 1
        or month < 1
        or month > 12
        or day < 1
        or seconds < 0
        or day > days_in_month(year, month)
    ):
        return PENDING, 0
    at, ms, exact, east, zoned = start + 19, 0, True, 0, False
    if at < stop and byte(view, at) == 46:
        at, ms, exact = _fraction(view, at + 1)
        if at == start + 20:
            return OTHER_, 0
    if at < stop:
        at, east = _zone(view, at, stop)
        zoned = True
    if at != stop:
        return PENDING, 0
    ms += ((days_since_epoch(year, month, day) * 86400) + seconds - east * 60) * 1000
    return DATETIME_ if zoned and exact else HARD_TIME_, ms


@routine
def value_of(view: View, start: int, stop: int, code: int) -> Facets:
    """Returns the facets of a literal that is not a string, by the code of its datatype."""
    if stop - start > MOST_CHARACTERS:
        return OTHER_, 0.0, 0, 0
    kind = KINDS[code]
    if kind == INTEGER_:
        return integer(view, start, stop, code)
    if kind == DECIMAL_:
        return decimal(view, start, stop)
    if kind == DOUBLE_:
        kind_, value = double(view, start, stop)
        return kind_, value, 0, 0
    if kind == FLOAT_:
        kind_, value = float_(view, start, stop)
        return kind_, value, 0, 0
    if kind == BOOLEAN_:
        return boolean(view, start, stop)
    if kind == DATETIME_:
        kind_, ms = date_time(view, start, stop)
        return kind_, 0.0, ms if kind_ == DATETIME_ else 0, 0
    return OTHER_, 0.0, 0, 0
