"""Assigns rows of tables to the messages that contain them, with the faults of whole messages.

No message reaches into the next one: line ends within a message that is one JSON object become
blanks, and one with an open quote (CSV) is dead alone. Messages that are refused before the rows
are read leave line ends in their places.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.lateness import Dead
from levada.connectors.ingest.parse.message_batches import registry_or
from levada.connectors.ingest.tables.csv_rows import RawRows
from levada.connectors.ingest.tables.json_rows import NOT_JSON
from levada.connectors.sources.json_lines import NOT_LINES, spans_lines
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.read_split import CsvChunk, JsonChunk
from levada.core.array_types import Bytes, Longs
from levada.core.frozen import frozen
from levada.kernels.text.csv_records import SOUND, scan_records

UNCLOSED_QUOTE = "a quote that is never closed"
SEVERAL_ROWS = "a message of several rows; say element=line to take them all"
_LINE_ENDS = (10, 13)


@frozen
class Rows:
    """The messages of a chunk of rows; ``dead``: the refused ones."""

    messages: Messages
    dead: list[Dead]
    single: bool

    def settle(self, rows: RawRows, beside: Sequence[str] = ()) -> RawRows:
        """Returns the rows with the places and times of their messages, and with the metadata
        columns among ``beside``.
        """
        messages = self.messages
        number = messages.number(rows.offset)
        if beside:
            rows.table = rows.table.with_columns(_metadata_columns(messages, number, beside))
        rows.offset = rows.number = messages.offsets[number]
        rows.times = messages.times[number]
        dead = messages.number(np.array([d.offset for d in rows.dead], np.int64))
        rows.dead = [
            Dead(int(messages.offsets[k]), d.reason, d.text)
            for k, d in zip(dead.tolist(), rows.dead, strict=True)
        ]
        rows.alone = 0
        held = len(self.dead) + len(np.unique(np.concatenate([number, dead])))
        rows.blank = len(messages) - held
        if self.single and held < len(number) + len(rows.dead) + len(self.dead):
            rows = self._refuse(rows, number, dead)
        rows.dead += self.dead
        return rows

    def _refuse(self, rows: RawRows, number: Longs, dead: Longs) -> RawRows:
        """Returns the rows with one dead letter for each message of several."""
        first_dead = dict(reversed([*zip(dead.tolist(), rows.dead, strict=True)]))
        count = np.bincount(number, minlength=len(self.messages))
        is_dead = np.zeros(len(self.messages), np.bool_)
        is_dead[dead] = True
        is_first = np.ones(len(number), np.bool_)
        is_first[1:] = np.diff(number) > 0
        at = np.flatnonzero(is_first & ~is_dead[number])
        single_rows = rows.take(at)
        single_rows.dead = list(first_dead.values())
        single_rows.wrong = dict.fromkeys(
            np.flatnonzero(count[number[at]] > 1).tolist(), SEVERAL_ROWS
        )
        return single_rows


def _metadata_columns(messages: Messages, number: Longs, names: Sequence[str]) -> list[pl.Series]:
    """Returns the metadata of each row's message."""
    said = [messages.columns[name].gather(number) for name in names if name in messages.columns]
    of_topic = [name for name in names if name not in messages.columns]
    return said + (_of_topic(messages, number, of_topic) if of_topic else [])


def _of_topic(messages: Messages, number: Longs, names: Sequence[str]) -> list[pl.Series]:
    """Returns the topic of each row (``topic``), or one of its levels, from 1 (``topic_2``)."""
    assert messages.topics is not None, "the messages have topics"
    topics = messages.topics.gather(number)
    levels = topics.str.split("/")
    columns = []
    for name in names:
        _, _, level = name.partition("_")
        said = levels.list.get(int(level) - 1, null_on_oob=True) if level else topics
        columns.append(said.alias(name))
    return columns


def messages_apart(chunk: CsvChunk | JsonChunk, messages: Messages, config: StreamConfig) -> Rows:
    """Separates the messages of a chunk, so that none reaches into another, in place."""
    data, single = chunk.data, config.element == "message"
    if isinstance(chunk, JsonChunk):
        if single:
            _one_line(data, messages)
        dead = _refuse_messages(data, messages, _zero_prefixed(data, messages), "")
        if not single:
            dead += _refuse_messages(data, messages, _over_lines(data, messages), NOT_LINES)
        return Rows(messages, dead, single)
    open_ = _open(data, messages, ord(chunk.separator))
    return Rows(messages, _refuse_messages(data, messages, open_, UNCLOSED_QUOTE), single)


def _one_line(data: Bytes, messages: Messages) -> None:
    """Replaces line ends within messages by blanks."""
    ends = (data == _LINE_ENDS[0]) | (data == _LINE_ENDS[1])
    data[ends] = 32
    data[messages.starts[1:] - 1] = 10


def _over_lines(data: Bytes, messages: Messages) -> Longs:
    """Returns the messages that are one JSON value over several lines, except those whose first
    line ends like an object.
    """
    ends = np.flatnonzero(data == 10)
    first = ends[np.searchsorted(ends, messages.starts[:-1])]
    last = data[first - 1 - (data[first - 1] == 13)]
    several = np.flatnonzero((first < messages.starts[1:] - 1) & (last != 125)).tolist()
    at = messages.starts
    numbers = [k for k in several if spans_lines(data[at[k] : at[k + 1]].tobytes())]
    return np.array(numbers, np.int64)


def _zero_prefixed(data: Bytes, messages: Messages) -> Longs:
    """Returns the messages that begin with a zero byte."""
    return np.flatnonzero(data[messages.starts[:-1]] == 0)


def _open(data: Bytes, messages: Messages, separator: int) -> Longs:
    """Returns the messages with open quotes; examines each alone if one of them reaches into the
    next.
    """
    quotes = np.flatnonzero(data == 34)
    if not len(quotes):
        return quotes
    start, stop, _, fault = scan_records(data, separator)
    reach = messages.number(start) != messages.number(np.maximum(stop - 1, start))
    if not reach.any() and (fault == SOUND).all():
        return np.empty(0, np.int64)
    suspects = np.unique(messages.number(quotes)).tolist()
    open_messages = [k for k in suspects if _is_open(data, messages, k, separator)]
    return np.array(open_messages, np.int64)


def _is_open(data: Bytes, messages: Messages, number: int, separator: int) -> bool:
    start, stop = int(messages.starts[number]), int(messages.starts[number + 1])
    # an appended letter is a new record, unless a quote is open
    alone = np.concatenate([data[start:stop], np.frombuffer(b"x\n", np.uint8)])
    first, _, _, _ = scan_records(alone, separator)
    return not len(first) or int(first[-1]) != stop - start


def _refuse_messages(data: Bytes, messages: Messages, numbers: Longs, reason: str) -> list[Dead]:
    """Returns these messages as dead letters, and replaces them by line ends."""
    dead = []
    for k in numbers.tolist():
        start, stop = int(messages.starts[k]), int(messages.starts[k + 1]) - 1
        head = data[start : min(stop, start + 6)].tobytes()
        why = reason or registry_or(head, NOT_JSON)
        dead.append(Dead(int(messages.offsets[k]), why, messages.text(data, k)))
        data[start:stop] = 10
    return dead
