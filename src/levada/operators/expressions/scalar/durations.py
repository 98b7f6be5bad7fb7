"""Durations as (months, time), in the partial order of XML Schema (XSD 1.1 part 2, 3.3.6 and E.3).

Times are exact: integers in attoseconds (``SECOND`` is the number in a second), so at most 18
fractional digits. A duration of months and one of seconds are comparable only if all four reference
dates give the same order.
"""

from __future__ import annotations

import re

from levada.core.frozen import frozen
from levada.operators.expressions.scalar.numbers import ExpressionError

SECOND = 10**18
DAY = 86400 * SECOND
DURATION, YEAR_MONTH, DAY_TIME = "duration", "yearMonthDuration", "dayTimeDuration"
_LEXICAL = re.compile(
    r"(-)?P(?=[0-9T])(?:([0-9]+)Y)?(?:([0-9]+)M)?(?:([0-9]+)D)?"
    r"(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]{1,18}))?S)?)?"
)
# The first days of these (year, month) are XSD's reference dates.
_REFERENCES = ((1696, 9), (1697, 2), (1903, 3), (1903, 7))


@frozen
class Duration:
    """A duration of months and attoseconds; ``datatype`` is the local name of its type."""

    months: int
    time: int
    datatype: str = DURATION

    def lexical(self) -> str:
        """The canonical lexical form."""
        sign = "-" if self.months < 0 or self.time < 0 else ""
        years, months = divmod(abs(self.months), 12)
        days, rest = divmod(abs(self.time), DAY)
        minutes, seconds = divmod(rest, 60 * SECOND)
        date = "".join(f"{v}{u}" for v, u in ((years, "Y"), (months, "M"), (days, "D")) if v)
        clock = ((minutes // 60, "H"), (minutes % 60, "M"), (show_seconds(seconds), "S"))
        time = "".join(f"{v}{u}" for v, u in clock if v not in (0, "0"))
        if not date and not time:
            return "P0M" if self.datatype == YEAR_MONTH else "PT0S"
        return f"{sign}P{date}{'T' + time if time else ''}"


def show_seconds(atto: int) -> str:
    """Attoseconds as seconds in decimal notation.

    >>> show_seconds(1_500_000_000_000_000_000)
    '1.5'
    """
    whole, fraction = divmod(atto, SECOND)
    return f"{whole}.{fraction:018}".rstrip("0").rstrip(".")


def read_seconds(whole: str | None, fraction: str | None) -> int:
    """The attoseconds of the digits before and after the point."""
    return int(whole or 0) * SECOND + int((fraction or "").ljust(18, "0"))


def parse(lexical: str, datatype: str) -> Duration | None:
    """Returns the duration of a lexical form, or None if it is not a duration of this type.

    >>> parse("-PT90M", DAY_TIME).lexical()
    '-PT1H30M'
    """
    match = _LEXICAL.fullmatch(lexical)
    if match is None:
        return None
    sign, years, months, days, hours, minutes, seconds, fraction = match.groups()
    if (datatype == DAY_TIME and (years or months)) or (
        datatype == YEAR_MONTH and (days or "T" in lexical)
    ):
        return None
    factor = -1 if sign else 1
    whole = (int(days or 0) * 24 + int(hours or 0)) * 3600 + int(minutes or 0) * 60
    time = whole * SECOND + read_seconds(seconds, fraction)
    return Duration(factor * (int(years or 0) * 12 + int(months or 0)), factor * time, datatype)


def make(months: int, time: int, datatype: str) -> Duration:
    """A computed duration: both parts must have one sign."""
    if months * time < 0:
        raise ExpressionError("months and seconds of different sign")
    return Duration(months, time, datatype)


def add(a: Duration, b: Duration, sign: int) -> Duration:
    """``a + b`` or, with ``sign`` -1, ``a - b``; of one type if both are, else an xsd:duration."""
    datatype = a.datatype if a.datatype == b.datatype else DURATION
    return make(a.months + sign * b.months, a.time + sign * b.time, datatype)


def order(a: Duration, b: Duration) -> int | None:
    """-1, 0, 1, or None if the two are not comparable.

    >>> order(Duration(1, 0), Duration(0, 30 * DAY)) is None
    True
    """
    signs = set()
    for year, month in _REFERENCES:
        x, y = _milliseconds_from(year, month, a), _milliseconds_from(year, month, b)
        signs.add(int(x > y) - int(x < y))
    return signs.pop() if len(signs) == 1 else None


def _milliseconds_from(year: int, month: int, duration: Duration) -> int:
    total = year * 12 + month - 1 + duration.months
    return days_before(total // 12, total % 12 + 1, 1) * DAY + duration.time


def days_before(year: int, month: int, day: int) -> int:
    """Days from 0000-03-01 to a date of the proleptic Gregorian calendar; any year.

    >>> days_before(1970, 1, 1)
    719468
    """
    y = year - (month < 3)
    return 365 * y + y // 4 - y // 100 + y // 400 + (153 * ((month + 9) % 12) + 2) // 5 + day - 1
