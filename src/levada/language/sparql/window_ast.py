"""The content of a window's brackets, and the report clauses of a text, in one form for all
dialects.

The builder translates each dialect's spelling into this form (``TUMBLING`` is a step of the range's
length, and so on; the table is in ``language/dialects``), so later stages do not depend on the
dialect. Lengths are milliseconds. ``ast`` exports these names.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from levada.core.event_time import shown_duration
from levada.core.frozen import frozen
from levada.errors import Span


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
    """Returns the name of a window that the text does not name: its stream and brackets.

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
class ReportClause:
    """A clause on reports as the text has it: the words, ``kind`` (``policy``, ``t0`` or ``tick``),
    and its place.
    """

    words: str
    kind: Literal["policy", "t0", "tick"]
    span: Span


@frozen
class Reporting:
    """The report policy of a text, from the text or its dialect; an option has precedence.

    ``policy``: on close or on content change. ``every``: COMPUTED EVERY, PERIODIC (ms).
    ``nonempty``: only if a window is not empty. ``t0``: the start of windows (ms since 1970).
    """

    policy: Literal["close", "change"] | None = None
    every: int | None = None
    nonempty: bool = False
    t0: int | None = None
