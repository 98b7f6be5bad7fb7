"""Checks formats of times (``time_format=``) and time zones (``zone=``): a small part of
strptime's.

    %Y %y %m %b %d      year (of two digits: 1970 to 2069), month (a number, or Jan), day
    %H %I %p %M %S      hour (of 12 with %p), minute, second
    .%f                 the fraction of a second, with its dot
    %z                  the zone as +0100 or +01:00

A format has a year, a month and a day, and an hour only with a minute. Other characters are
literal.
"""

from __future__ import annotations

import re
from typing import Any

from levada.errors import UsageError, near

UTC = "UTC"
_KNOWN = "YymbdHIpMSfz"
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)


def check_format(value: Any) -> str:
    """Returns a valid format unchanged. Raises ``UsageError`` for an invalid one.

    >>> check_format("%d.%m.%Y %H:%M")
    '%d.%m.%Y %H:%M'
    """
    text = str(value)
    letters = _DIRECTIVE.findall(text)
    for letter in letters:
        if not letter or letter not in _KNOWN:
            known = ", ".join(f"%{known}" for known in _KNOWN)
            raise UsageError(f"the format {text} has %{letter}.", hint=f"Known: {known}.")
    said = set(letters)
    rules = (
        (len(said) < len(letters), "says a part of the time twice", "Say each once."),
        (len(said & {"Y", "y"}) != 1, "has no year, or two", "Say %Y or %y."),
        (len(said & {"m", "b"}) != 1, "has no month, or two", "Say %m or %b."),
        ("d" not in said, "has no day", "Say %d."),
        (
            bool(said & {"H", "I"}) != ("M" in said) or {"H", "I"} <= said,
            "has no hour, no minute or two hours",
            "Say %H:%M, or %I:%M %p.",
        ),
        (("I" in said) != ("p" in said), "has %I or %p alone", "Say %I:%M %p, or %H:%M."),
        ("S" in said and "M" not in said, "has seconds without minutes", "Say %H:%M:%S."),
        ("f" in said and "%S.%f" not in text, "has %f elsewhere than in %S.%f", "Say %S.%f."),
    )
    for broken, what, hint in rules:
        if broken:
            raise UsageError(f"the format {text} {what}.", hint=hint)
    return text


def check_zone(value: Any) -> str:
    """Returns the name of a time zone. Raises ``UsageError`` for an unknown one.

    >>> check_zone("Europe/Berlin")
    'Europe/Berlin'
    """
    import zoneinfo

    import polars as pl  # imported here: few streams have a zone

    name = str(value)
    try:
        pl.Series([0]).cast(pl.Datetime("ms")).dt.replace_time_zone(name)
    except pl.exceptions.PolarsError as error:
        raise UsageError(
            f"{name} is no time zone.", hint=near(name, zoneinfo.available_timezones())[:300]
        ) from error
    return name
