"""Parses durations of windows, exactly, in milliseconds: ISO 8601 (``PT10S``), numbers with units
(``1h30m``, ``10 minutes``), seconds.

Weeks, days, hours, minutes and seconds have a fixed length. Years and months do not, so they are
refused. So are lengths that are not positive or finer than a millisecond: event times are whole
milliseconds. A number alone counts seconds, as in CQL.
"""

from __future__ import annotations

import re
from fractions import Fraction

from levada.core.event_time import MAX
from levada.language.dialects.cql import UNITS

_NUMBER = r"(\d+(?:\.\d+)?)"
_DURATION = re.compile(
    rf"([-+]?)P(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}W)?(?:{_NUMBER}D)?"
    rf"(?:T(?=\d)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?"
)
_SPANS = re.compile(r"(?:\d+(?:\.\d+)?\s*(?:[a-z]+|$))+", re.IGNORECASE)
_SPAN = re.compile(_NUMBER + r"\s*([a-z]*)", re.IGNORECASE)
_UNITS: dict[str, int | Fraction] = {
    **UNITS,
    "": 1_000,
    "us": Fraction(1, 1_000),
    "ns": Fraction(1, 1_000_000),
}
_LENGTHS = {4: 604_800_000, 5: 86_400_000, 6: 3_600_000, 7: 60_000, 8: 1_000}


def milliseconds(text: str, least: int = 1) -> int:
    """Returns the length of a duration in ms.

    Raises ``ValueError`` with a sentence for people if a window cannot have the length, or if it is
    below ``least``.

    >>> [milliseconds(text) for text in ("P1DT2H", "PT0.5S", "1h30m", "10 minutes", "3")]
    [93600000, 500, 5400000, 600000, 3000]
    """
    if _SPANS.fullmatch(text) and text[0] not in "Pp":
        parts = [
            (Fraction(number), _UNITS.get(unit.lower())) for number, unit in _SPAN.findall(text)
        ]
        if all(unit is not None for _, unit in parts):
            return _check(
                text,
                sum((number * unit for number, unit in parts if unit is not None), Fraction(0)),
                least,
            )
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.group(i) for i in range(2, 9)):
        raise ValueError(f"{text} is not an ISO 8601 duration such as PT10S or P1DT2H.")
    if match.group(2) or match.group(3):
        minutes = match.group(3) and text.endswith(f"P{match.group(3)}M")
        hint = f"PT{match.group(3)}M would be minutes" if minutes else "use days"
        raise ValueError(f"{text} has years or months, whose length is not fixed; {hint}.")
    length = sum(
        (Fraction(match.group(i)) * ms for i, ms in _LENGTHS.items() if match.group(i)), Fraction(0)
    )
    return _check(text, -length if match.group(1) == "-" else length, least)


def _check(text: str, length: Fraction, least: int) -> int:
    if length < 0 or length == 0 < least:
        raise ValueError(f"{text} is not positive.")
    if length.denominator != 1:
        raise ValueError(f"{text} is finer than a millisecond.")
    if length >= MAX:
        raise ValueError(f"{text} is longer than event times reach; use ALL.")
    return int(length)
