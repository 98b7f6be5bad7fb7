"""The results of a run, during it (``Progress``) and at its end (``Summary``): for the terminal, as
JSON, as a Rich table.

Counts are of this run; ``ever`` has those since the beginning of its checkpoint. ``results`` counts
solutions (of ASK and CONSTRUCT: reports). A stream holds the queries back if its watermark is the
lowest of those that a query waits for. Rates are per second of wall clock, or of CPU of all
processes.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, field
from functools import lru_cache
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from levada.checkpoint.leadership.heartbeat import StreamBacklog
from levada.checkpoint.manifest import Manifest
from levada.core.count_text import count_text
from levada.core.event_time import MAX, MIN, instant, shown_duration
from levada.core.frozen import frozen
from levada.core.names import display_name
from levada.errors import EngineError

NOTHING_READ = 3
MAX_SHOWN = 5  # columns
UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}


@frozen
class StreamCounts:
    """The counts of one stream. ``watermark``: ms (``MIN`` before any element, ``MAX`` after the
    end).

    ``late_files`` and ``deleted_files``: files that came too late, or were deleted before their
    ends were read; both are among the ``dead_letters``. ``replaced_files``: files whose name
    another one took. ``suspected_unit``: the apparent unit of its times. ``dead_letter_reasons``:
    of some dead letters. ``null_messages``: messages without a value. ``late_cause``: the element
    behind which most others were late, and how many. ``missing_values``: the columns that no row
    has a value in, and the names that the rows have. ``backlog``: the unread input as last
    measured; None of a derived stream, or before an engine has measured it.
    """

    elements: int = 0
    triples: int = 0
    late: int = 0
    dead_letters: int = 0
    watermark: int = MIN
    late_files: int = 0
    deleted_files: int = 0
    replaced_files: int = 0
    suspected_unit: str = ""
    dead_letter_reasons: tuple[str, ...] = ()
    null_messages: int = 0
    late_cause: str = ""
    missing_values: str = ""
    backlog: StreamBacklog | None = None


@frozen
class AllRunsTotals:
    """The totals of all runs on a checkpoint."""

    epochs: int = 0
    elements: int = 0
    results: int = 0


@frozen
class Progress:
    """A moment of a run: its counts so far, the streams' watermarks, and the stream that holds
    queries back. ``waiting_for``: the condition for which everything waits, or "". ``all_runs``:
    totals with earlier runs; None without them. ``unread_elements`` wait, and are read in
    ``catch_up_seconds`` (None: unknown).
    """

    epochs: int
    elements: int
    results: int
    seconds: float
    watermarks: Mapping[str, int] = field(default_factory=dict)
    blocking_stream: str | None = None
    waiting_for: str = ""
    all_runs: AllRunsTotals | None = None
    unread_elements: int = 0
    catch_up_seconds: float | None = None

    def line(self) -> str:
        """Returns one line for people.

        >>> Progress(3, 12000, 7, 2.0, {"a": 0}, "a").line()
        'epoch 3 · 12,000 elements · 6,000/s · 7 results · at 1970-01-01T00:00:00Z · a holds back'
        >>> Progress(0, 0, 0, 2.0, waiting_for="Spark is starting").line()
        'Spark is starting'
        >>> Progress(1, 4000, 0, 2.0, all_runs=AllRunsTotals(8, 64000, 3)).line()
        'epoch 8 · 4,000 elements (64,000 ever) · 2,000/s · 0 results (3 ever)'
        >>> Progress(1, 4000, 0, 2.0, unread_elements=6000, catch_up_seconds=3.0).line()
        'epoch 1 · 4,000 elements · 2,000/s · 0 results · 6,000 wait (PT3S)'
        """
        if self.waiting_for and not self.epochs:
            return self.waiting_for
        rate = self.elements / self.seconds if self.seconds else 0.0
        ever = self.all_runs or AllRunsTotals(self.epochs)
        elements, results = (
            "" if self.all_runs is None else f" ({n:,} ever)" for n in (ever.elements, ever.results)
        )
        parts = [
            f"epoch {ever.epochs}",
            f"{count_text(self.elements, 'element')}{elements}",
            f"{rate:,.0f}/s",
            f"{count_text(self.results, 'result')}{results}",
        ]
        if self.watermarks:
            parts.append(f"at {instant(min(self.watermarks.values()))}")
        if self.unread_elements:
            left = self.catch_up_seconds
            time = "" if left is None else f" ({shown_duration(1000 * max(round(left), 1))})"
            parts.append(f"{self.unread_elements:,} wait{time}")
        if self.blocking_stream is not None:
            parts.append(f"{self.blocking_stream} holds back")
        if self.waiting_for:
            parts.append(self.waiting_for)
        return " · ".join(parts)


@frozen
class Summary:
    """The summary of a whole run. ``query_results``: the results of each query. ``streams``: the
    counts of each stream.

    ``no_result_reasons``: a sentence for each query without a result since the beginning of its
    checkpoint. ``unread_streams``: a sentence for each stream without elements.
    ``dead_letter_path``: the place of dead letters. ``undelivered_outputs``: sentences about
    outputs that lack results. ``unmatched_patterns``: sentences about patterns of a query that
    nothing has matched, although the query has results. ``open_windows``: a sentence about windows
    that are left open for the next run.
    """

    elements: int = 0
    triples: int = 0
    results: int = 0
    reports: int = 0
    epochs: int = 0
    late: int = 0
    dead_letters: int = 0
    query_results: Mapping[str, int] = field(default_factory=dict)
    streams: Mapping[str, StreamCounts] = field(default_factory=dict)
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    blocking_stream: str | None = None
    note: str = ""
    no_result_reasons: Mapping[str, str] = field(default_factory=dict)
    dead_letter_path: str = ""
    unread_streams: Mapping[str, str] = field(default_factory=dict)
    undelivered_outputs: tuple[str, ...] = ()
    all_runs: AllRunsTotals | None = None
    unmatched_patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    open_windows: str = ""

    @property
    def exit_code(self) -> int:
        """Returns 0, or 3 if nothing of some stream has been read."""
        return NOTHING_READ if self.unread_streams else 0

    @property
    def unmatched(self) -> Iterator[str]:
        """Yields a sentence for each column and each pattern that has matched nothing."""
        for name, counts in self.streams.items():
            if counts.missing_values:
                yield f"{name}: {counts.missing_values}"
        for name, sentences in self.unmatched_patterns.items():
            yield from (f"{name}: {sentence}" for sentence in sentences)

    @property
    def elements_per_second(self) -> float:
        """Returns elements per second of wall clock."""
        return self.elements / self.wall_seconds if self.wall_seconds else 0.0

    @property
    def elements_per_cpu_second(self) -> float:
        """Returns elements per second of CPU of all processes."""
        return self.elements / self.cpu_seconds if self.cpu_seconds else 0.0

    def to_json(self) -> str:
        """Returns the summary as a JSON object. A watermark is ms, null before any element, "end"
        at last.

        >>> json.loads(Summary(elements=4, wall_seconds=2.0).to_json())["elements_per_second"]
        2.0
        """
        content: dict[str, Any] = asdict(self)
        for counts in content["streams"].values():
            counts["watermark"] = {MIN: None, MAX: "end"}.get(
                counts["watermark"], counts["watermark"]
            )
        content["elements_per_second"] = round(self.elements_per_second, 3)
        content["elements_per_cpu_second"] = round(self.elements_per_cpu_second, 3)
        return json.dumps(content, indent=2, ensure_ascii=False)

    def __rich__(self) -> RenderableType:
        """Returns the totals, then a table of streams and one of queries."""
        return Group(*self._parts())

    def _parts(self) -> Iterator[RenderableType]:
        if self.note:
            yield Text(self.note)
        yield Text(
            f"{count_text(self.elements, 'element')} ({count_text(self.triples, 'triple')}) -> "
            f"{count_text(self.results, 'result')} in {count_text(self.reports, 'report')}, "
            f"{count_text(self.epochs, 'epoch')}, {self.wall_seconds:,.1f} s "
            f"({self.cpu_seconds:,.1f} CPU-s)"
        )
        yield Text(
            f"{self.elements_per_second:,.0f} elements/s, "
            f"{self.elements_per_cpu_second:,.0f} per CPU-second; "
            f"late {self.late:,}, dead-lettered {self.dead_letters:,}"
        )
        if self.all_runs is not None:
            yield Text(
                "since the beginning of the checkpoint: "
                f"{count_text(self.all_runs.elements, 'element')} -> "
                f"{count_text(self.all_runs.results, 'result')}, "
                f"{count_text(self.all_runs.epochs, 'epoch')}"
            )
        if self.blocking_stream is not None:
            yield Text(f"{self.blocking_stream} holds the queries back.")
        if self.streams:
            yield self._stream_table()
            yield from map(Text, remarks(self.streams))
        if self.dead_letter_path and self.dead_letters:
            yield Text(f"The dead letters are in {self.dead_letter_path}.")
        if self.query_results:
            yield table(
                ("query", "results"),
                [(name, f"{count:,}") for name, count in self.query_results.items()],
            )
        for name, reason in self.no_result_reasons.items():
            yield Text(f"{name}: {reason}")
        for name, sentences in self.unmatched_patterns.items():
            if name not in self.no_result_reasons:
                yield from (Text(f"{name}: {sentence}") for sentence in sentences)
        for sentence in (*self.unread_streams.values(), *self.undelivered_outputs):
            yield Text(sentence)
        if self.open_windows:
            yield Text(self.open_windows)

    def _stream_table(self) -> Table:
        rows = [
            (
                name,
                f"{c.elements:,}",
                f"{c.triples:,}",
                f"{c.late:,}",
                f"{c.dead_letters:,}",
                instant(c.watermark),
            )
            for name, c in self.streams.items()
        ]
        return table(("stream", "elements", "triples", "late", "dead", "watermark"), rows)


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    """Returns a table without lines, with the first column to the left and the others to the
    right.
    """
    table = Table(box=None, pad_edge=False)
    for i, head in enumerate(heads):
        table.add_column(
            head, justify="left" if i == 0 else "right", overflow="fold", no_wrap=i > 0
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


# The check at the end of a run that each element was counted, late, dead or cut.


def check_accounts(manifest: Manifest) -> None:
    """Raises ``EngineError`` if elements have vanished: neither counted nor late, dead or cut."""
    for name, record in manifest.streams.items():
        if record.unaccounted_elements:
            elements = count_text(record.unaccounted_elements, "element is", "elements are")
            raise EngineError(
                f"Of the stream {display_name(name)} {elements} unaccounted for: the results may "
                "be wrong.",
                hint="This is a fault of Levada; please report it with the stream's data.",
            )


def remarks(streams: Mapping[str, StreamCounts]) -> Iterator[str]:
    """Yields sentences about streams apart from their counts: unread files, times in another unit,
    reasons of dead letters.
    """
    for name, counts in streams.items():
        for sentence in _stream_remarks(counts):
            yield f"{name}: {sentence}"


def _stream_remarks(counts: StreamCounts) -> Iterator[str]:
    if sentence := describe_backlog(counts.backlog):
        yield sentence
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


def describe_backlog(backlog: StreamBacklog | None) -> str:
    """Describes the unread input of a stream; "" without any.

    >>> describe_backlog(StreamBacklog(9000, None, 0, 500.0, 200.0, 30.0))
    '9,000 elements wait, the oldest since 1970-01-01T00:00:00Z. They are read in about PT30S.'
    """
    if backlog is None or not (backlog.size_bytes or backlog.elements):
        return ""
    number = count_text(backlog.size_bytes or 0, "byte")
    if backlog.elements:
        number = count_text(backlog.elements, "element")
    wait = "waits" if number.startswith("1 ") else "wait"
    oldest = "" if backlog.oldest_ms is None else f", the oldest since {instant(backlog.oldest_ms)}"
    seconds, rate = backlog.catch_up_seconds, backlog.arriving_per_second
    after = f" More arrives than is read: {rate:,.0f} elements/s."
    if seconds is not None:
        after = f" They are read in about {shown_duration(1000 * max(round(seconds), 1))}."
    elif rate <= backlog.read_per_second or not rate:
        after = ""
    return f"{number} {wait}{oldest}.{after}"


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


def unread(name: str, path: str, counts: StreamCounts) -> str:
    """Explains why nothing of a stream was read: all elements are dead letters, or none came."""
    if not counts.dead_letters:
        return f"Nothing of {name} has been read: there is no element at {path}."
    first = f" The first: {counts.dead_letter_reasons[0]}" if counts.dead_letter_reasons else ""
    return f"All that came of {name} are dead letters: {counts.dead_letters:,}.{first}"
