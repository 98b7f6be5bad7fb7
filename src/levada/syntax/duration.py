"""ISO 8601 durations of windows, exactly, in milliseconds.

Weeks, days, hours, minutes and seconds have one length. Years and months have none, so they are refused, as is what is not
positive or finer than a millisecond: event times are whole milliseconds.
"""

from __future__ import annotations

import re
from fractions import Fraction

from levada.model.time import MAX

_NUMBER = r"(\d+(?:\.\d+)?)"
_DURATION = re.compile(
    rf"([-+]?)P(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}W)?(?:{_NUMBER}D)?"
    rf"(?:T(?=\d)(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?"
)
_LENGTHS = {4: 604_800_000, 5: 86_400_000, 6: 3_600_000, 7: 60_000, 8: 1_000}


def milliseconds(text: str) -> int:
    """The length of a duration in ms; ValueError with a sentence for people if a window cannot have it.

    >>> milliseconds("P1DT2H"), milliseconds("PT0.5S")
    (93600000, 500)
    """
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.group(i) for i in range(2, 9)):
        raise ValueError(f"{text} is not an ISO 8601 duration such as PT10S or P1DT2H.")
    if match.group(2) or match.group(3):
        raise ValueError(f"{text} has years or months, whose length is not fixed; use days.")
    length = sum((Fraction(match.group(i)) * ms for i, ms in _LENGTHS.items() if match.group(i)), Fraction(0))
    if length <= 0 or match.group(1) == "-":
        raise ValueError(f"{text} is not positive.")
    if length.denominator != 1:
        raise ValueError(f"{text} is finer than a millisecond.")
    if length >= MAX:
        raise ValueError(f"{text} is longer than event times reach; use ALL.")
    return int(length)
