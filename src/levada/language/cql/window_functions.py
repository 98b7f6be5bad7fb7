"""Reads the window table functions of SQL: Tumble, Hop, Cumulate and Session, as Flink writes them.

    Tumble(Table s, Descriptor(ts), size)            [Range size Slide size]
    Hop(Table s, Descriptor(ts), slide, size)        [Range size Slide slide]
    Cumulate(Table s, Descriptor(ts), step, size)    of a window of ``size``, what each step adds
    Session(Table s [Partition By k], Descriptor(ts), gap)

Their windows begin at multiples of the durations from 1970 on, and exclude their end.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from levada.core.count_text import count_text
from levada.errors import Span, near
from levada.language.cql.ast import Column, WindowSpec, WindowWord

_SIZES = {"tumble": 1, "hop": 2, "cumulate": 2, "session": 1}


def window_of_call(
    word: str, times: str, sizes: Sequence[int], by: tuple[Column, ...], span: Span
) -> WindowSpec | str:
    """Returns the window of a call, or the mistake in it, in words; ``sizes`` in ms."""
    name = word.lower()
    if name not in _SIZES:
        return f"There is no window function {word}. {near(name.capitalize(), _words())}"
    if len(sizes) != _SIZES[name]:
        needs = count_text(_SIZES[name], "interval")
        return f"{word} takes {needs} after its times, not {len(sizes)}."
    if by and name != "session":
        return f"{word} has no Partition By: only Session has."
    if name in ("hop", "cumulate"):
        slide, size = sizes
        if name == "cumulate" and size % slide:
            return "The size of Cumulate is a multiple of its step."
    else:
        size, slide = sizes[0], 0 if name == "session" else sizes[0]
    kind = WindowWord(name.capitalize())
    return WindowSpec(kind, size, slide, partition=by, span=span, column=times)


def is_window_function(word: str) -> bool:
    """Whether a word names a window table function."""
    return word.lower() in _SIZES


def _words() -> list[str]:
    return [name.capitalize() for name in _SIZES]


def milliseconds_of(text: str) -> int:
    """Returns the event time of an instant in ms; without a zone it is UTC. Raises ``ValueError``.

    >>> milliseconds_of("1970-01-02 00:00:01")
    86401000
    """
    instant = datetime.fromisoformat(text.strip())
    instant = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    delta = instant - datetime(1970, 1, 1, tzinfo=UTC)
    return (delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000
