"""Remarks about streams apart from their counts: unread files, times in another unit, and reasons
of dead letters. The summary of a run and ``levada status`` show them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


class Counts(Protocol):
    """The counts of a stream that remarks need."""

    @property
    def dead(self) -> int:
        """Returns the number of dead letters."""

    @property
    def overtaken(self) -> int:
        """Returns the number of files that came too late to be read."""

    @property
    def gone(self) -> int:
        """Returns the number of files that were deleted before their ends were read."""

    @property
    def replaced(self) -> int:
        """Returns the number of files that were read anew."""

    @property
    def nulls(self) -> int:
        """Returns the number of messages without a value."""

    @property
    def unit(self) -> str:
        """Returns the unit that most times seem to have, if it differs from the stream's; else
        "".
        """

    @property
    def behind(self) -> str:
        """Returns a sentence about the element behind which most others were late."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Returns some dead letters, with their reasons."""


def remarks(streams: Mapping[str, Counts]) -> Iterator[str]:
    """Yields the sentences, by stream."""
    for name, counts in streams.items():
        for said in _stream_remarks(counts):
            yield f"{name}: {said}"


def _stream_remarks(counts: Counts) -> Iterator[str]:
    if counts.overtaken:
        files, it = _files(counts.overtaken), "it" if counts.overtaken == 1 else "they"
        yield f"{files} not read: {it} came when one with a later name was being read already."
    if counts.gone:
        it = "it" if counts.gone == 1 else "they"
        yield f"{_files(counts.gone)} not read to the end: {it} went, or another took the name."
    if counts.replaced:
        yield f"{_files(counts.replaced)} replaced by another of the name, and read anew."
    if counts.nulls:
        yield f"{counts.nulls:,} messages without a value, which are no elements."
    if counts.unit:
        yield (
            f"Warning: its times lie before 1990 or beyond tomorrow; most would not if they were "
            f"{UNIT_NAMES[counts.unit]}. Say unit={counts.unit}?"
        )
    if counts.behind:
        yield counts.behind
    if counts.dead:
        yield from (f"dead letter: {reason}" for reason in counts.reasons)


def _files(n: int) -> str:
    return "1 file was" if n == 1 else f"{n:,} files were"


def unread(name: str, path: str, counts: Counts) -> str:
    """Explains why nothing of a stream was read: all elements are dead letters, or none came."""
    if not counts.dead:
        return f"Nothing of {name} has been read: there is no element at {path}."
    first = f" The first: {counts.reasons[0]}" if counts.reasons else ""
    return f"All that came of {name} are dead letters: {counts.dead:,}.{first}"
