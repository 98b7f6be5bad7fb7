"""Durations and times as users write them, in integer milliseconds."""

from __future__ import annotations

import datetime
import re

from levada.core.integer_options import MAX_INTEGER
from levada.errors import UsageError

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?")
_ISO_DURATION = re.compile(
    r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
)
UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_ISO_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:\d\d)?)?"
)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def parse_duration(text: str | int) -> int:
    """Milliseconds of ``100ms``, ``1s``, ``1.5m``, ``2h``, ``1d``, ``PT1S`` or a bare number (ms);
    not negative.

    >>> parse_duration("10s"), parse_duration("PT1M30S"), parse_duration(250)
    (10000, 90000, 250)
    """
    word = str(text).strip()
    if match := _DURATION.fullmatch(word):
        return _to_whole_ms(float(match[1]) * UNITS[match[2] or "ms"], word)
    if word.startswith("P") and (match := _ISO_DURATION.fullmatch(word)) and any(match.groups()):
        weeks, days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return _to_whole_ms(
            ((weeks * 7 + days) * 24 + hours) * 3_600_000 + minutes * 60_000 + seconds * 1000, word
        )
    if re.match(r"-?P.*[YM]", word.split("T")[0]):
        raise UsageError(f"The duration {word} has years or months, which have no fixed length.")
    raise UsageError(
        f"{word or 'An empty text'} is not a duration.",
        hint="Say for example 100ms, 10s, 5m, 2h or PT10S.",
    )


def shown_duration(ms: int) -> str:
    """A duration of so many milliseconds as ISO 8601 writes it, in days and below.

    >>> [shown_duration(ms) for ms in (10_800_000, 93_600_000, 86_400_000, 90_500, 250, 0)]
    ['PT3H', 'P1DT2H', 'P1D', 'PT1M30.5S', 'PT0.25S', 'PT0S']
    """
    days, rest = divmod(ms, UNITS["d"])
    hours, rest = divmod(rest, UNITS["h"])
    minutes, rest = divmod(rest, UNITS["m"])
    seconds = f"{rest // 1000}.{rest % 1000:03d}".rstrip("0").rstrip(".")
    named = ((hours, f"{hours}H"), (minutes, f"{minutes}M"), (rest, f"{seconds}S"))
    time = "".join(word for count, word in named if count)
    day = f"{days}D" if days else ""
    return f"P{day}T{time}" if time else f"P{day}" if day else "PT0S"


def _to_whole_ms(milliseconds: float, word: str) -> int:
    if not milliseconds < MAX_INTEGER:
        raise UsageError(
            f"The duration {word} is longer than any stream: {MAX_INTEGER:.0e} ms and more."
        )
    if abs(milliseconds - round(milliseconds)) > 1e-6:
        raise UsageError(f"The duration {word} is finer than a millisecond.")
    return round(milliseconds)


def parse_time(text: str | int | datetime.date) -> int:
    """Milliseconds since 1970-01-01T00:00Z of an ISO date or dateTime (without zone: UTC) or of an
    integer (ms).

    >>> parse_time("1970-01-01T00:00:01.500Z"), parse_time("1970-01-02"), parse_time(7)
    (1500, 86400000, 7)
    """
    word = text.isoformat() if isinstance(text, datetime.date) else str(text).strip()
    if re.fullmatch(r"[+-]?\d{1,18}", word):
        return int(word)
    if _ISO_TIME.fullmatch(word):
        try:
            moment = datetime.datetime.fromisoformat(word)
        except ValueError as error:
            raise UsageError(f"{word} is not a time: {error}.") from error
        moment = moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)
        return (moment - _EPOCH) // datetime.timedelta(milliseconds=1)
    hint = "Say for example 2013-01-01T05:00:00Z or an integer of milliseconds."
    raise UsageError(f"{word or 'An empty text'} is not a time.", hint=hint)
