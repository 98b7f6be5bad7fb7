"""Event times in texts, as integer milliseconds: one definition for all sources
(docs/cli/event-times.md has the table).

    number      decimal, with or without exponent, of units of ``10**power`` ms since 1970
    dateTime    ``T`` or a blank between day and time
    date        its beginning; so are a month (gYearMonth) and a year (gYear)

A time without zone is UTC; a zone reaches to 14 hours (XML Schema 1.1 part 2, 3.3.7). Digits beyond
the millisecond are cut off, towards the past, and not by way of a double. ``24:00:00`` is the next
day's beginning. Any other text, or a time outside (MIN, MAX) of ``core.event_time``, gives MIN: "no
time".

``instants`` takes each whole text (a field, a file's name), where a year alone is a number;
``literal_instants`` each canonical literal, which must be well-typed and of a type with an instant;
``last_instants`` the last number, date or dateTime inside a text (a graph IRI), where a ``-`` is a
separator and not a sign. Cost: a few ns a byte. Twin: ``connectors.ingest.parse.literal_values``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Bytes
from levada.core.event_time import MAX, MIN
from levada.core.rdf_terms import MOST_CHARACTERS
from levada.kernels import I64, INT, U8, inline, kernel
from levada.kernels.text.byte_ops import View, byte, routine, view_of
from levada.kernels.text.literals import (
    BOOLEAN_,
    DATATYPES,
    DATETIME_,
    NO_VALUE,
    OTHER_,
    STRING_CODE,
    XSD_SIZE,
    datatype_code,
    in_xsd,
    value_of,
)

NUMBER, DATETIME, DATE, MONTH, YEAR = (1 << k for k in range(5))
TEXT = NUMBER | DATETIME | DATE | MONTH
_DAY = 86_400_000
_LAST_YEAR = 200_000_000  # beyond MAX
_MOST_EXPONENT = 10_000

Times = npt.NDArray[np.int64]


def _form(name: str, kind: int) -> int:
    """The forms that a literal of a datatype may have."""
    special = {"string": TEXT, "date": DATE, "gYearMonth": MONTH, "gYear": YEAR}
    if name == "dateTimeStamp" or kind == DATETIME_:
        return DATETIME
    return special.get(name, 0 if kind in (BOOLEAN_, OTHER_) else NUMBER)


# a datatype of somebody's own may be one of instants, such as DateTime of NGSI-LD
_FORMS = np.array([*(_form(d[0], d[1]) for d in DATATYPES), DATETIME], np.int64)


@inline
def _is_byte(view: View, at: int, end: int, c: int) -> bool:
    return at < end and byte(view, at) == c


@inline
def _digit(view: View, at: int, end: int) -> bool:
    return at < end and 48 <= byte(view, at) <= 57


@inline
def _digits_end(view: View, at: int, end: int) -> int:
    """Where the digits from ``at`` on end."""
    while _digit(view, at, end):
        at += 1
    return at


@inline
def _pair(view: View, at: int, end: int) -> int:
    """The two-digit number at ``at``, or -1."""
    if _digit(view, at, end) and _digit(view, at + 1, end):
        return (byte(view, at) - 48) * 10 + byte(view, at + 1) - 48
    return -1


@inline
def _exponent(view: View, at: int, end: int) -> tuple[int, int]:
    """The exponent at ``at``: (value, end); without one (0, at). Large ones saturate."""
    if not (_is_byte(view, at, end, 101) or _is_byte(view, at, end, 69)):
        return 0, at
    minus = _is_byte(view, at + 1, end, 45)
    first = at + 1 + int(minus or _is_byte(view, at + 1, end, 43))
    stop = _digits_end(view, first, end)
    if stop == first:
        return 0, at
    value = 0
    for i in range(first, stop):
        value = min(value * 10 + byte(view, i) - 48, _MOST_EXPONENT)
    return -value if minus else value, stop


@routine
def _number(view: View, at: int, end: int, power: int, signed: bool) -> tuple[int, int]:
    """Reads the number that begins at ``at``, of units of 10**power ms: (ms or MIN, its end), an
    end of -1 if no number begins here. ``signed``: it may have a sign and an exponent. A point is
    part of it if a digit follows, or nothing.
    """
    minus = signed and _is_byte(view, at, end, 45)
    if minus or (signed and _is_byte(view, at, end, 43)):
        at += 1
    point = _digits_end(view, at, end)
    stop = point
    if _is_byte(view, point, end, 46) and (_digit(view, point + 1, end) or point + 1 == end):
        stop = _digits_end(view, point + 1, end)
    if stop - at - int(stop > point) < 1:
        return MIN, -1
    exponent, behind = _exponent(view, stop, end) if signed else (0, stop)
    left = point - at + exponent + power  # digits that are whole milliseconds
    value, exact = 0, True
    for i in range(at, stop):
        if i == point:
            continue
        if left > 0:
            if value > MAX // 10:
                return MIN, behind
            value = value * 10 + byte(view, i) - 48
            left -= 1
        else:
            exact = exact and byte(view, i) == 48
    while value > 0 and left > 0:
        if value > MAX // 10:
            return MIN, behind
        value *= 10
        left -= 1
    if minus:
        value = -value - int(not exact)
    return (value if MIN < value < MAX else MIN), behind


@inline
def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 in the Gregorian calendar; years begin in March, a leap day ends one."""
    y = year - 1 if month <= 2 else year
    m = month + 9 if month <= 2 else month - 3
    return 365 * y + y // 4 - y // 100 + y // 400 + (153 * m + 2) // 5 + day - 1 - 719_468


@inline
def _month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if (year % 4 == 0 and year % 100 != 0) or year % 400 == 0 else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


@inline
def _zone(view: View, at: int, end: int) -> tuple[int, int]:
    """The zone at ``at``: (its offset in ms, end); nothing is UTC; MIN if it is out of range."""
    if _is_byte(view, at, end, 90):
        return 0, at + 1
    if _is_byte(view, at, end, 43) or _is_byte(view, at, end, 45):
        hours = _pair(view, at + 1, end)
        minutes = _pair(view, at + 4, end)
        if hours >= 0 and minutes >= 0 and byte(view, at + 3) == 58:
            if minutes > 59 or hours * 60 + minutes > 840:
                return MIN, at + 6
            offset = (hours * 60 + minutes) * 60_000
            return (-offset if byte(view, at) == 45 else offset), at + 6
    return 0, at


@inline
def _part_of_date(view: View, at: int, end: int) -> int:
    """The month or day behind the ``-`` at ``at``, or -1; a ``-05:00`` there is a zone."""
    if _is_byte(view, at, end, 45) and not _is_byte(view, at + 3, end, 58):
        return _pair(view, at + 1, end)
    return -1


@inline
def _year(view: View, at: int, end: int) -> tuple[int, int]:
    """The year at ``at``: (value, its end), an end of -1 if none is there."""
    first = at + int(_is_byte(view, at, end, 45))
    stop = _digits_end(view, first, end)
    if stop - first < 4 or stop - first > 9 or (stop - first > 4 and byte(view, first) == 48):
        return 0, -1
    year = 0
    for i in range(first, stop):
        year = year * 10 + byte(view, i) - 48
    return (-year if first > at else year), stop


@inline
def _clock(view: View, at: int, end: int) -> tuple[int, int]:
    """The time of day behind the ``T`` or blank at ``at``: (ms, its end), ms of -1 if it is out of
    range, and an end of -1 if none is there.
    """
    hour = _pair(view, at + 1, end)
    minute = _pair(view, at + 4, end)
    second = _pair(view, at + 7, end)
    if min(hour, minute, second) < 0 or byte(view, at + 3) != 58 or byte(view, at + 6) != 58:
        return 0, -1
    at += 9
    ms, scale, exact = 0, 100, True
    if _is_byte(view, at, end, 46) and _digit(view, at + 1, end):
        at += 1
        while _digit(view, at, end):
            exact = exact and byte(view, at) == 48
            ms += (byte(view, at) - 48) * scale
            scale //= 10
            at += 1
    midnight = hour == 24 and minute == 0 and second == 0 and exact
    if minute > 59 or second > 59 or (hour > 23 and not midnight):
        return -1, at
    return ((hour * 60 + minute) * 60 + second) * 1000 + ms, at


@routine
def _parse_date(view: View, at: int, end: int, forms: int) -> tuple[int, int]:
    """Reads the dateTime, date, month or year that begins at ``at``: (ms or MIN, its end), an end
    of -1 if nothing of these ``forms`` begins here.
    """
    year, at = _year(view, at, end)
    if at < 0:
        return MIN, -1
    form, month, day, clock = YEAR, 1, 1, 0
    part = _part_of_date(view, at, end)
    if part >= 0:
        form, month, at = MONTH, part, at + 3
        part = _part_of_date(view, at, end)
        if part >= 0:
            form, day, at = DATE, part, at + 3
            if _is_byte(view, at, end, 84) or _is_byte(view, at, end, 32):
                ms, stop = _clock(view, at, end)
                if stop >= 0:
                    form, clock, at = DATETIME, ms, stop
    if form & forms == 0:
        return MIN, -1
    offset, at = _zone(view, at, end)
    if month < 1 or month > 12 or day < 1 or day > _month_length(year, month):
        return MIN, at
    if clock < 0 or offset == MIN or abs(year) > _LAST_YEAR:
        return MIN, at
    value = _days(year, month, day) * _DAY + clock - offset
    return (value if MIN < value < MAX else MIN), at


@inline
def _trim_blanks(view: View, at: int, end: int) -> tuple[int, int]:
    """The text without blanks around it."""
    while _is_byte(view, at, end, 32) or _is_byte(view, at, end, 9):
        at += 1
    while at < end and (byte(view, end - 1) == 32 or byte(view, end - 1) == 9):
        end -= 1
    return at, end


@routine
def _parse_whole(view: View, at: int, end: int, power: int, forms: int) -> int:
    """The time that the whole text is."""
    if end - at > MOST_CHARACTERS:
        return MIN
    if forms & NUMBER:
        ms, stop = _number(view, at, end, power, True)
        if stop == end:
            return ms
    ms, stop = _parse_date(view, at, end, forms)
    return ms if stop == end else MIN


@routine
def bare_instant(view: View, at: int, end: int, power: int) -> tuple[int, int]:
    """The time that a number without quotes says: (ms or MIN, its end), an end of -1 without."""
    first = at + int(_is_byte(view, at, end, 45) or _is_byte(view, at, end, 43))
    return _number(view, at, end, power, True) if _digit(view, first, end) else (MIN, -1)


@routine
def typed_instant(view: View, at: int, end: int, code: int, power: int) -> int:
    """The time that a literal says, by its lexical form and the code of its datatype."""
    forms = _FORMS[code]
    at, end = _trim_blanks(view, at, end)
    if forms == NUMBER and value_of(view, at, end, code)[0] == OTHER_:
        return MIN
    return _parse_whole(view, at, end, power, forms)


@routine
def _literal(view: View, at: int, end: int, power: int) -> int:
    """Returns the time of a canonical term; MIN if it is not a literal."""
    if not _is_byte(view, at, end, 34):
        return MIN
    close = at + 1
    while close < end and byte(view, close) != 34:
        close += 1
    if close + 1 == end:
        return typed_instant(view, at + 1, close, STRING_CODE, power)
    name = close + 4 + XSD_SIZE  # behind "^^<" and the namespace
    if byte(view, close + 1) != 94:
        return MIN  # a language
    if name >= end or not in_xsd(view, close + 4):
        return typed_instant(view, at + 1, close, NO_VALUE, power)
    return typed_instant(view, at + 1, close, datatype_code(view, name, end - 1 - name), power)


@kernel((U8, I64, I64, INT))
def instants(buf: Bytes, off: Times, length: Times, power: int) -> Times:
    """The time that each text ``buf[off:off + length]`` is, MIN if none."""
    out = np.empty(len(off), np.int64)
    view = view_of(buf)
    for i in range(len(off)):
        at, end = _trim_blanks(view, off[i], off[i] + length[i])
        out[i] = _parse_whole(view, at, end, power, TEXT)
    return out


@kernel((U8, I64, I64, INT))
def literal_instants(buf: Bytes, off: Times, length: Times, power: int) -> Times:
    """Returns the time of each term ``buf[off:off + length]``, MIN if it is not a literal of a
    time; 24 bytes can be read behind each.
    """
    out = np.empty(len(off), np.int64)
    view = view_of(buf)
    for i in range(len(off)):
        out[i] = _literal(view, off[i], off[i] + length[i], power)
    return out


@kernel((U8, I64, I64, INT))
def last_instants(buf: Bytes, off: Times, length: Times, power: int) -> Times:
    """Returns the last number, date or dateTime inside each text ``buf[off:off + length]``, MIN if
    there is none or if it is not a time.
    """
    out = np.empty(len(off), np.int64)
    view = view_of(buf)
    for i in range(len(off)):
        at = off[i]
        end = at + length[i]
        instant = MIN
        while at < end:
            if not _digit(view, at, end):
                at += 1
                continue
            ms, stop = _parse_date(view, at, end, DATETIME)
            if stop < 0:
                ms, stop = _parse_date(view, at, end, DATE)
                if stop < 0 or ms == MIN:  # such as a number of three parts
                    ms, stop = _number(view, at, end, power, False)
            instant = ms
            at = stop
        out[i] = instant
    return out
