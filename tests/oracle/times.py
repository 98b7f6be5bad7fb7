"""Dates and dateTimes, and how they are compared (XML Schema 1.1 part 2, D.2 and 3.3.7): with a
zone by their instants, without one as they are written; one with and one without only where they
are more than 14 hours apart.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import NamedTuple

DAY = r"(\d{4}-\d\d-\d\d)"
CLOCK = r"T(\d\d):(\d\d):(\d\d)(\.\d+)?"
ZONE = r"(Z|[+-]\d\d:\d\d)?"
SHAPES = {"date": re.compile(DAY + ZONE), "dateTime": re.compile(DAY + CLOCK + ZONE)}
APART = 14 * 3600


class Time(NamedTuple):
    """Seconds since 1970, of a time without a zone as if it were UTC."""

    of: Fraction
    zoned: bool


def time(kind: str, text: str) -> Time | None:
    """The value of a text, if it has one."""
    found = SHAPES[kind].fullmatch(text)
    if found is None:
        return None
    day, *clock, zone = found.groups()
    try:
        start = datetime.fromisoformat(day).replace(tzinfo=UTC)
    except ValueError:
        return None
    seconds = Fraction(int(start.timestamp()))
    if clock:
        hour, minute, second = map(int, clock[:3])
        fraction = Fraction(clock[3] or "0")
        midnight = hour == 24 and not (minute or second or fraction)
        if (hour > 23 and not midnight) or minute > 59 or second > 59:
            return None
        seconds += hour * 3600 + minute * 60 + second + fraction
    return Time(seconds - _offset(zone or "Z"), zone is not None)


def _offset(zone: str) -> int:
    """How many seconds a zone is before UTC."""
    if zone == "Z":
        return 0
    found = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:]))
    return int(found.total_seconds()) * (-1 if zone[0] == "-" else 1)


def compared(one: Time, two: Time) -> int | None:
    """Below 0: one is before two; None: who knows."""
    apart = one.of - two.of
    if one.zoned != two.zoned and abs(apart) <= APART:
        return None
    return (apart > 0) - (apart < 0)
