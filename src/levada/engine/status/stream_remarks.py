"""Remarks about streams apart from their counts: unread files, times in another unit, and reasons
of dead letters. The summary of a run and ``levada status`` show them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from levada.core.count_text import count_text

MAX_SHOWN = 5  # columns
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
    def missing_values(self) -> str:
        """Returns a sentence about columns without any value."""

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
    if counts.missing_values:
        yield counts.missing_values
    if counts.late_cause:
        yield counts.late_cause
    if counts.dead_letters:
        yield from (f"dead letter: {reason}" for reason in counts.dead_letter_reasons)


def _files(n: int) -> str:
    return count_text(n, "file was", "files were")


def describe_empty_columns(columns: Sequence[str], rows: int, members: Sequence[str]) -> str:
    """Describes columns that have no value in any of so many rows, with the names that the rows
    have; "" without such columns.

    >>> describe_empty_columns(["temp"], 240, ["device", "tmp"])
    'None of 240 rows has a value in the column temp. Did you mean tmp? Their members: device, tmp.'
    """
    if not columns or not rows:
        return ""
    listed = ", ".join(columns[:MAX_SHOWN])
    more = len(columns) - MAX_SHOWN
    named = f"column{'s' * (len(columns) > 1)} {listed}" + (f" and {more} more" if more > 0 else "")
    number = count_text(rows, "row")
    return f"None of {number} has a value in the {named}.{_hint(columns[0], tuple(members))}"


def describe_pattern(stream: str, pattern: str, predicates: Sequence[str]) -> str:
    """Describes a pattern that no triple of a stream has matched, with the predicates that the
    stream has.

    >>> describe_pattern("obs", "?s <http://e/tmp> ?v", ["<http://e/temp>"])  # doctest: +ELLIPSIS
    'No triple of obs has matched the pattern ?s <http://e/tmp> ?v. Did you mean <http://e/temp>?...'
    """
    terms = pattern.strip("() ").split(" ")
    predicate = terms[1] if len(terms) > 1 and terms[1].startswith("<") else ""
    is_missing = predicate and predicate not in predicates
    known = _hint(predicate, tuple(predicates), "predicates") if is_missing else ""
    return f"No triple of {stream} has matched the pattern {pattern}.{known}"


@lru_cache(maxsize=1024)  # many queries look for the same predicates
def _hint(name: str, members: tuple[str, ...], noun: str = "members") -> str:
    """Returns the members with a similar last word, and all members, as sentences; "" without
    members.
    """
    if not members:
        return ""
    words = [_last_word(member) for member in members]
    close = difflib.get_close_matches(_last_word(name), words, n=3)
    pairs = list(zip(members, words, strict=True))
    similar = [m for word in dict.fromkeys(close) for m, w in pairs if w == word]
    asked = f" Did you mean {' or '.join(similar[:3])}?" if similar and name not in members else ""
    return f"{asked} Their {noun}: {', '.join(members)}."


def _last_word(name: str) -> str:
    """Returns the part of a name that namespaces and paths leave.

    >>> _last_word("<http://e/ns#alarm>"), _last_word("reading.temp")
    ('alarm', 'temp')
    """
    return re.split(r"[/#.:]", name.strip("<>"))[-1]


def unread(name: str, path: str, counts: Counts) -> str:
    """Explains why nothing of a stream was read: all elements are dead letters, or none came."""
    if not counts.dead_letters:
        return f"Nothing of {name} has been read: there is no element at {path}."
    first = f" The first: {counts.dead_letter_reasons[0]}" if counts.dead_letter_reasons else ""
    return f"All that came of {name} are dead letters: {counts.dead_letters:,}.{first}"
