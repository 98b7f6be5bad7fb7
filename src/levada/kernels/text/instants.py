"""Event times out of text: integers and xsd:dateTime in byte ranges, as integer milliseconds.

A dateTime may have a space for its T, as many programs write it, and a date is its beginning. A
dateTime without zone is UTC; what is finer than a millisecond is cut off (towards the past);
``24:00:00`` is the next day's beginning; a zone reaches to 14 hours (XML Schema 1.1 part 2, 3.3.7).
A text that is neither, or a time outside (MIN, MAX) of ``model.time``, gives MIN: "no time".
Integers are times ``unit`` (1 for ms, 1000 for s).

Two questions: ``instants`` takes each whole text (a field, the lexical form of a literal),
``last_instants`` the last integer or dateTime inside it (a graph IRI). Inside a text a ``-`` is a
separator, not a sign. Cost: a few ns a byte.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from levada.kernels import I64, INT, U8, inlined, kernel
from levada.model.arrays import Bytes
from levada.model.time import MAX, MIN

_DAY = 86_400_000
_MOST_DIGITS = 18

Times = npt.NDArray[np.int64]


@inlined
def _digit(buf: Bytes, at: int, end: int) -> bool:
    return at < end and 48 <= buf[at] <= 57


@inlined
def _number(buf: Bytes, at: int, end: int) -> tuple[int, int]:
    """The digits from ``at`` on: (value, end); the value is -1 if there is none or more than 18
    (leading zeros apart).
    """
    begin = at
    while at < end and buf[at] == 48:
        at += 1
    first = at
    value = 0
    while _digit(buf, at, end):
        if at - first < _MOST_DIGITS:
            value = value * 10 + int(buf[at]) - 48
        at += 1
    return (value if begin < at and at - first <= _MOST_DIGITS else -1), at


@inlined
def _pair(buf: Bytes, at: int, end: int) -> int:
    """The two-digit number at ``at``, or -1."""
    if _digit(buf, at, end) and _digit(buf, at + 1, end):
        return (int(buf[at]) - 48) * 10 + int(buf[at + 1]) - 48
    return -1


@inlined
def _is(buf: Bytes, at: int, end: int, c: int) -> bool:
    return at < end and buf[at] == c


@inlined
def _days(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 in the Gregorian calendar; years begin in March, a leap day ends one."""
    y = year - 1 if month <= 2 else year
    m = month + 9 if month <= 2 else month - 3
    return 365 * y + y // 4 - y // 100 + y // 400 + (153 * m + 2) // 5 + day - 1 - 719_468


@inlined
def _month_length(year: int, month: int) -> int:
    if month == 2:
        return 29 if (year % 4 == 0 and year % 100 != 0) or year % 400 == 0 else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


@inlined
def _fraction(buf: Bytes, at: int, end: int) -> tuple[int, int]:
    """The fraction of a second behind a point: (whole milliseconds, end)."""
    value = 0
    scale = 100
    while _digit(buf, at, end):
        value += (int(buf[at]) - 48) * scale
        scale //= 10
        at += 1
    return value, at


@inlined
def _zone(buf: Bytes, at: int, end: int) -> tuple[int, int]:
    """The zone at ``at``: (its offset in ms, end); nothing is UTC; MIN if it is out of range."""
    if _is(buf, at, end, 90):
        return 0, at + 1
    if _is(buf, at, end, 43) or _is(buf, at, end, 45):
        hours = _pair(buf, at + 1, end)
        minutes = _pair(buf, at + 4, end)
        if hours >= 0 and minutes >= 0 and buf[at + 3] == 58:
            if minutes > 59 or hours * 60 + minutes > 840:
                return MIN, at + 6
            offset = (hours * 60 + minutes) * 60_000
            return (-offset if buf[at] == 45 else offset), at + 6
    return 0, at


@inlined
def _datetime(buf: Bytes, at: int, end: int) -> tuple[int, int]:
    """The dateTime that begins at ``at``: (ms or MIN, its end); an end of -1: none begins here."""
    year, p = _number(buf, at, end)
    if p - at < 4 or p - at > 6 or (p - at > 4 and buf[at] == 48):
        return MIN, -1
    month = _pair(buf, p + 1, end)
    day = _pair(buf, p + 4, end)
    hour = _pair(buf, p + 7, end)
    minute = _pair(buf, p + 10, end)
    second = _pair(buf, p + 13, end)
    if min(month, day, hour, minute, second) < 0:
        return MIN, -1
    if (
        buf[p] != 45
        or buf[p + 3] != 45
        or (buf[p + 6] != 84 and buf[p + 6] != 32)
        or buf[p + 9] != 58
        or buf[p + 12] != 58
    ):
        return MIN, -1
    p += 15
    milli = 0
    if _is(buf, p, end, 46) and _digit(buf, p + 1, end):
        milli, p = _fraction(buf, p + 1, end)
    offset, p = _zone(buf, p, end)
    midnight = hour == 24 and minute == 0 and second == 0 and milli == 0
    if month < 1 or month > 12 or day < 1 or day > _month_length(year, month) or offset == MIN:
        return MIN, p
    if minute > 59 or second > 59 or (hour > 23 and not midnight):
        return MIN, p
    return _days(
        year, month, day
    ) * _DAY + hour * 3_600_000 + minute * 60_000 + second * 1000 + milli - offset, p


@inlined
def _date(buf: Bytes, at: int, end: int) -> int:
    """The beginning of the day that the whole text is, in ms; MIN if it is none."""
    year, p = _number(buf, at, end)
    month = _pair(buf, p + 1, end)
    day = _pair(buf, p + 4, end)
    if p - at != 4 or p + 6 != end or month < 1 or month > 12:
        return MIN
    if buf[p] != 45 or buf[p + 3] != 45 or day < 1 or day > _month_length(year, month):
        return MIN
    return _days(year, month, day) * _DAY


@inlined
def _scaled(value: int, unit: int) -> int:
    return value * unit if MIN // unit < value < MAX // unit else MIN


@inlined
def _whole_instant(buf: Bytes, at: int, end: int, unit: int) -> int:
    begin = at
    sign = -1 if _is(buf, at, end, 45) else 1
    if sign < 0 or _is(buf, at, end, 43):
        at += 1
    value, stop = _number(buf, at, end)
    if stop == end:
        return _scaled(sign * value, unit) if value >= 0 else MIN
    ms, stop = _datetime(buf, begin, end)
    return ms if stop == end else _date(buf, begin, end)


@kernel((U8, I64, I64, INT))
def instants(buf: Bytes, off: Times, length: Times, unit: int) -> Times:
    """The time that each text ``buf[off:off + length]`` is, MIN if none; of a quoted literal its
    lexical form.
    """
    out = np.empty(len(off), np.int64)
    for i in range(len(off)):
        at = off[i]
        end = at + length[i]
        if _is(buf, at, end, 34):
            at += 1
            stop = at
            while stop < end and buf[stop] != 34:
                stop += 1
            end = stop
        out[i] = _whole_instant(buf, at, end, unit)
    return out


@kernel((U8, I64, I64, INT))
def last_instants(buf: Bytes, off: Times, length: Times, unit: int) -> Times:
    """The last integer or dateTime inside each text ``buf[off:off + length]``, MIN if none (or if
    that is no time).
    """
    out = np.empty(len(off), np.int64)
    for i in range(len(off)):
        at = off[i]
        end = at + length[i]
        found = MIN
        while at < end:
            if not _digit(buf, at, end):
                at += 1
                continue
            ms, stop = _datetime(buf, at, end)
            if stop >= 0:
                found = ms
            else:
                value, stop = _number(buf, at, end)
                found = _scaled(value, unit) if value >= 0 else MIN
            at = stop
        out[i] = found
    return out
