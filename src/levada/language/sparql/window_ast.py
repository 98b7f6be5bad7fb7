"""What stands in a window's brackets, and what a text says of its reports, in every dialect's words
but one meaning.

The builder has put each dialect's spelling into this form (``TUMBLING`` is a step of the range's
length, and so on; the table is in ``language/dialects``), so nothing behind it knows the dialect.
Lengths are milliseconds. ``ast`` shows these names as its own.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from levada.core.durations import shown_duration
from levada.core.frozen import frozen


@frozen
class Range:
    """``[RANGE d STEP d]`` in milliseconds; without STEP the window slides with each element.

    ``[FROM NOW-d TO NOW-e STEP d]`` is a window in the past: ``to`` is e.
    """

    range: int
    step: int | None
    to: int = 0


@frozen
class LastTriples:
    """``[TRIPLES n]``, ``[ELEMENTS n STEP m]``: the last n, after each m-th (m = n: it tumbles)."""

    count: int
    step: int = 1


@frozen
class Session:
    """``[SESSION d]``: elements less than ``gap`` milliseconds apart."""

    gap: int


class Instant(StrEnum):
    """``[NOW]`` and ``[ALL]``."""

    NOW = "NOW"
    ALL = "ALL"


WindowSpec = Range | LastTriples | Session | Instant


def call(stream: str, spec: WindowSpec) -> str:
    """The name of a window that the text does not name: its stream and brackets.

    >>> call("http://e/s", Range(4000, 2000))
    'http://e/s[RANGE PT4S STEP PT2S]'
    """
    match spec:
        case Range(length, step, to):
            inner = f"RANGE {shown_duration(length)}"
            inner += f" TO {shown_duration(to)}" if to else ""
            inner += f" STEP {shown_duration(step)}" if step else ""
        case LastTriples(count, step):
            inner = f"TRIPLES {count}" + f" STEP {step}" * (step > 1)
        case Session(gap):
            inner = f"SESSION {shown_duration(gap)}"
        case Instant():
            inner = spec.value
    return f"{stream}[{inner}]"


@frozen
class Reporting:
    """When a text is evaluated, as far as it or its dialect says; an option goes before.

    ``policy``: on close or on content change. ``every``: COMPUTED EVERY, PERIODIC (ms).
    ``nonempty``: only where a window holds something. ``t0``: where windows start (ms since 1970).
    """

    policy: Literal["close", "change"] | None = None
    every: int | None = None
    nonempty: bool = False
    t0: int | None = None
