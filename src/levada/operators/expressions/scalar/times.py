"""Dates and times of XML Schema as one value (XSD 1.1 part 2, 3.3.7 to 3.3.14 and appendix E).

A ``Timestamp`` has the fields that its type has. Two of one type compare by their instants; if only
one has a time zone, they compare only when they are more than 14 hours apart (XSD's partial order),
and are else not equal. Arithmetic with durations is the extension of SPARQL's operators by XPath's
(functions 8 and 9.7).
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from levada.core.frozen import frozen
from levada.operators.expressions.scalar.numbers import ExpressionError

# Durations as (months, time), in the partial order of XML Schema (XSD 1.1 part 2, 3.3.6 and E.3).
#
# Times are exact: integers in attoseconds (``SECOND`` is the number in a second), so at most 18
# fractional digits. A duration of months and one of seconds are comparable only if all four
# reference dates give the same order.


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


def parse_duration(lexical: str, datatype: str) -> Duration | None:
    """Returns the duration of a lexical form, or None if it is not a duration of this type.

    >>> parse_duration("-PT90M", DAY_TIME).lexical()
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


def make_duration(months: int, time: int, datatype: str) -> Duration:
    """A computed duration: both parts must have one sign."""
    if months * time < 0:
        raise ExpressionError("months and seconds of different sign")
    return Duration(months, time, datatype)


def add_durations(a: Duration, b: Duration, sign: int) -> Duration:
    """``a + b`` or, with ``sign`` -1, ``a - b``; of one type if both are, else an xsd:duration."""
    datatype = a.datatype if a.datatype == b.datatype else DURATION
    return make_duration(a.months + sign * b.months, a.time + sign * b.time, datatype)


def order_durations(a: Duration, b: Duration) -> int | None:
    """-1, 0, 1, or None if the two are not comparable.

    >>> order_durations(Duration(1, 0), Duration(0, 30 * DAY)) is None
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


_FREE = 14 * 3600 * SECOND  # a time without zone may be this far from UTC
_YEAR = r"(?P<year>-?(?:[1-9][0-9]{3,11}|0[0-9]{3}))"
_MONTH = r"(?P<month>0[1-9]|1[0-2])"
_DAY = r"(?P<day>0[1-9]|[12][0-9]|3[01])"
_TIME = (
    r"(?:(?P<hour>[01][0-9]|2[0-3]):(?P<minute>[0-5][0-9]):(?P<second>[0-5][0-9])"
    r"(?:\.(?P<fraction>[0-9]{1,18}))?"
    r"|(?P<midnight>24:00:00(?:\.0+)?))"
)
_ZONE = r"(?P<zone>Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))?"
_SHAPES = {
    "dateTime": f"{_YEAR}-{_MONTH}-{_DAY}T{_TIME}",
    "date": f"{_YEAR}-{_MONTH}-{_DAY}",
    "time": _TIME,
    "gYear": _YEAR,
    "gYearMonth": f"{_YEAR}-{_MONTH}",
    "gMonth": f"--{_MONTH}",
    "gMonthDay": f"--{_MONTH}-{_DAY}",
    "gDay": f"---{_DAY}",
}
TYPES = tuple(_SHAPES)
_PATTERNS = {name: re.compile(shape + _ZONE) for name, shape in _SHAPES.items()}
_HAS_TIME = ("dateTime", "time")


@frozen
class Timestamp:
    """A date or time. ``time`` is attoseconds of the day, ``offset`` the time zone in minutes
    (None: none).
    """

    datatype: str
    year: int | None = None
    month: int | None = None
    day: int | None = None
    time: int | None = None
    offset: int | None = None

    @property
    def local(self) -> int:
        """Attoseconds on the time line without regard to the zone; missing fields are those of
        1972-12-31.
        """
        year = 1972 if self.year is None else self.year
        month = self.month or 12
        day = self.day or month_length(year, month)
        return days_before(year, month, day) * DAY + (self.time or 0)

    @property
    def instant(self) -> int:
        """The same in UTC; without a zone as if it were UTC."""
        return self.local - 60 * SECOND * (self.offset or 0)

    def lexical(self) -> str:
        """The canonical lexical form, in its own zone."""
        match self.datatype:
            case "dateTime":
                text = f"{self._year()}-{self.month:02}-{self.day:02}T{self._clock()}"
            case "date":
                text = f"{self._year()}-{self.month:02}-{self.day:02}"
            case "time":
                text = self._clock()
            case "gYear":
                text = self._year()
            case "gYearMonth":
                text = f"{self._year()}-{self.month:02}"
            case "gMonth":
                text = f"--{self.month:02}"
            case "gMonthDay":
                text = f"--{self.month:02}-{self.day:02}"
            case _:
                text = f"---{self.day:02}"
        return text + self.zone()

    def _year(self) -> str:
        year = self.year or 0
        return f"{'-' if year < 0 else ''}{abs(year):04}"

    def _clock(self) -> str:
        minutes, seconds = divmod(self.time or 0, 60 * SECOND)
        text = show_seconds(seconds)
        return f"{minutes // 60:02}:{minutes % 60:02}:{'0' if seconds < 10 * SECOND else ''}{text}"

    def zone(self) -> str:
        """The zone as SPARQL's TZ shows it: ``""``, ``"Z"`` or ``"+01:00"``."""
        if self.offset is None:
            return ""
        sign, minutes = "-" if self.offset < 0 else "+", abs(self.offset)
        return f"{sign}{minutes // 60:02}:{minutes % 60:02}" if minutes else "Z"


def month_length(year: int, month: int) -> int:
    """The number of days of a month."""
    following = (year, month + 1) if month < 12 else (year + 1, 1)
    return days_before(*following, 1) - days_before(year, month, 1)


@lru_cache(maxsize=65536)
def parse(lexical: str, datatype: str) -> Timestamp | None:
    """Returns the value of a lexical form, or None if it is not a value of this type (no such
    day).

    >>> parse("2020-02-29T24:00:00Z", "dateTime").lexical()
    '2020-03-01T00:00:00Z'
    """
    match = _PATTERNS[datatype].fullmatch(lexical)
    if match is None:
        return None
    field = match.groupdict()
    year, month, day = (int(field[k]) if field.get(k) else None for k in ("year", "month", "day"))
    if day and month and day > month_length(1972 if year is None else year, month):
        return None
    time = _time(field) if datatype in _HAS_TIME else None
    value = Timestamp(datatype, year, month, day, time, _offset(field["zone"]))
    if field.get("midnight"):
        return with_local_time(value, value.local + DAY)
    return value


def _time(field: dict[str, str | None]) -> int:
    minutes = int(field["hour"] or 0) * 60 + int(field["minute"] or 0)
    return minutes * 60 * SECOND + read_seconds(field["second"], field["fraction"])


def _offset(zone: str | None) -> int | None:
    if zone is None:
        return None
    if zone == "Z":
        return 0
    return int(zone[0] + "1") * (int(zone[1:3]) * 60 + int(zone[4:6]))


def with_local_time(like: Timestamp, local: int) -> Timestamp:
    """A value of the type and zone of ``like`` at other local attoseconds."""
    days, time = divmod(local, DAY)
    if like.datatype == "time":
        return replace(like, time=time)
    year, month, day = date_of(days)
    return replace(
        like, year=year, month=month, day=day, time=time if like.datatype == "dateTime" else None
    )


def date_of(days: int) -> tuple[int, int, int]:
    """The inverse of ``days_before``.

    >>> date_of(719468)
    (1970, 1, 1)
    """
    era, of_era = divmod(days, 146097)
    years = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * years + years // 4 - years // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + years + (month < 3), month, of_year - (153 * shifted + 2) // 5 + 1


def order(a: Timestamp, b: Timestamp) -> int | None:
    """-1, 0, 1, or None if the two are not comparable."""
    if a.datatype != b.datatype:
        return None
    if (a.offset is None) == (b.offset is None):
        return int(a.instant > b.instant) - int(a.instant < b.instant)
    difference = a.instant - b.instant
    if abs(difference) <= _FREE:
        return None
    return 1 if difference > 0 else -1


def subtract(a: Timestamp, b: Timestamp) -> Duration:
    """The time from b to a; only for two of one type, both with or both without a zone."""
    if a.datatype != b.datatype or a.datatype not in ("dateTime", "date", "time"):
        raise ExpressionError("only two dates or times of one type have a difference")
    if (a.offset is None) != (b.offset is None):
        raise ExpressionError("a difference between times with and without zone")
    return Duration(0, a.instant - b.instant, DAY_TIME)


def shift(a: Timestamp, by: Duration, sign: int) -> Timestamp:
    """``a`` plus (or, with ``sign`` -1, minus) a duration: months first, days cut to the month's
    length, then time.
    """
    if a.datatype not in ("dateTime", "date", "time") or (a.datatype == "time" and by.months):
        raise ExpressionError("a duration that cannot be added to this type")
    moved = a
    if a.year is not None and a.month is not None and a.day is not None:
        total = a.year * 12 + a.month - 1 + sign * by.months
        year, month = total // 12, total % 12 + 1
        moved = replace(a, year=year, month=month, day=min(a.day, month_length(year, month)))
    return with_local_time(moved, moved.local + sign * by.time)
