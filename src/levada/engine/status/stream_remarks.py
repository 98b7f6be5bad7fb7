"""Remarks about streams apart from their counts: unread files, times in another unit, and reasons
of dead letters. The summary of a run and ``levada status`` show them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from levada.core.count_text import count_text

UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


class Counts(Protocol):
    """The counts of a stream that remarks need."""

    @property
    def dead_letters(self) -> int:
        """Returns the number of dead letters."""

    @property
    def late_files(self) -> int:
        """Returns the number of files that came too late to be read."""

    @property
    def deleted_files(self) -> int:
        """Returns the number of files that were deleted before their ends were read."""

    @property
    def replaced_files(self) -> int:
        """Returns the number of files that were read anew."""

    @property
    def null_messages(self) -> int:
        """Returns the number of messages without a value."""

    @property
    def suspected_unit(self) -> str:
        """Returns the unit that most times seem to have, if it differs from the stream's; else
        "".
        """

    @property
    def late_cause(self) -> str:
        """Returns a sentence about the element behind which most others were late."""

    @property
    def dead_letter_reasons(self) -> tuple[str, ...]:
        """Returns some dead letters, with their reasons."""


def remarks(streams: Mapping[str, Counts]) -> Iterator[str]:
    """Yields the sentences, by stream."""
    for name, counts in streams.items():
        for said in _stream_remarks(counts):
            yield f"{name}: {said}"


def _stream_remarks(counts: Counts) -> Iterator[str]:
    if counts.late_files:
        files, it = _files(counts.late_files), "it" if counts.late_files == 1 else "they"
        yield f"{files} not read: {it} came when one with a later name was being read already."
    if counts.deleted_files:
        files, it = _files(counts.deleted_files), "it" if counts.deleted_files == 1 else "they"
        yield f"{files} not read to the end: {it} went, or another took the name."
    if counts.replaced_files:
        yield f"{_files(counts.replaced_files)} replaced by another of the name, and read anew."
    if counts.null_messages:
        messages = count_text(counts.null_messages, "message")
        yield f"{messages} without a value: no element has been read from there."
    if counts.suspected_unit:
        yield (
            f"Warning: its times lie before 1990 or beyond tomorrow; most would not if they were "
            f"{UNIT_NAMES[counts.suspected_unit]}. Say unit={counts.suspected_unit}?"
        )
    if counts.late_cause:
        yield counts.late_cause
    if counts.dead_letters:
        yield from (f"dead letter: {reason}" for reason in counts.dead_letter_reasons)


def _files(n: int) -> str:
    return count_text(n, "file was", "files were")


def unread(name: str, path: str, counts: Counts) -> str:
    """Explains why nothing of a stream was read: all elements are dead letters, or none came."""
    if not counts.dead_letters:
        return f"Nothing of {name} has been read: there is no element at {path}."
    first = f" The first: {counts.dead_letter_reasons[0]}" if counts.dead_letter_reasons else ""
    return f"All that came of {name} are dead letters: {counts.dead_letters:,}.{first}"
