"""What is to be said of streams beside their counts: files that were not read, times in another
unit, and why there are dead letters; for the summary of a run and for ``levada status``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


class Counts(Protocol):
    """What is asked of a stream's counts."""

    @property
    def dead(self) -> int:
        """Dead letters."""

    @property
    def overtaken(self) -> int:
        """Files that came too late to be read."""

    @property
    def gone(self) -> int:
        """Files that were deleted before all of them was read."""

    @property
    def replaced(self) -> int:
        """Files that were read anew."""

    @property
    def nulls(self) -> int:
        """Messages without a value."""

    @property
    def unit(self) -> str:
        """The unit that most times seem to be in, if it is another than the stream's."""

    @property
    def behind(self) -> str:
        """The element that made most others late."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Some dead letters, and why."""


def remarks(streams: Mapping[str, Counts]) -> Iterator[str]:
    """The sentences, by stream."""
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
    """Why nothing of a stream has been read: all is dead, or nothing came."""
    if not counts.dead:
        return f"Nothing of {name} has been read: there is no element at {path}."
    first = f" The first: {counts.reasons[0]}" if counts.reasons else ""
    return f"All that came of {name} are dead letters: {counts.dead:,}.{first}"
