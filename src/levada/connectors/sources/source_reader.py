"""Reads a reference of any kind in a task: its elements as one text, or as rows.

Only this module knows all kinds of references and their readers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
import pyarrow as pa

from levada.connectors.config.input_formats import LINES, TABLES
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.feed_log import read_log
from levada.connectors.sources.kafka.kafka_reader import KafkaReader
from levada.connectors.sources.message_headers import MessageHeaders, complete_at_end
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.read_split import (
    CsvChunk,
    JsonChunk,
    hashed_as_read,
    read_bytes,
    read_json,
    read_lines,
    read_tuples,
)
from levada.connectors.sources.splits import FileSplit, OffsetSplit
from levada.core.array_types import Bytes
from levada.core.event_time import MIN
from levada.core.frozen import frozen
from levada.errors import FileFault

LARGEST_JSON = 1 << 30
"""The most bytes of a JSON document."""
_R = TypeVar("_R", contravariant=True)


@frozen
class SplitContent:
    """The content of a reference: the text of RDF, or the rows of a table; the reference with the
    task's counts; the messages of the text (None: it is one text); and the line ends of a text, if
    they were counted.
    """

    text: Bytes | None
    rows: CsvChunk | JsonChunk | pa.Table | None
    reference: FileSplit
    messages: Messages | None = None
    line_ends: int | None = None


class SourceReader(Protocol[_R]):
    """Reads references of one kind."""

    def read(self, reference: _R, config: StreamConfig) -> SplitContent:
        """Reads all elements of a reference. Raises ``SourceError``."""


class FileReader:
    """Reads ranges of files."""

    def read(self, reference: FileSplit, config: StreamConfig) -> SplitContent:
        """Reads the bytes or rows of a range."""
        if config.format == "ndjson":
            return SplitContent(None, *read_json(reference, config))
        if config.format == "json":
            if reference.stop - reference.start > LARGEST_JSON:
                raise FileFault(
                    f"The file {reference.name} is a JSON document of more than "
                    f"{LARGEST_JSON >> 20} MB: it is not read.",
                    hint="Write its elements as NDJSON.",
                )
            data = read_bytes(reference, document=True, spooled=config.settled)
            return SplitContent(None, JsonChunk(data), hashed_as_read(reference))
        if config.format in TABLES:
            rows = read_tuples(reference, config)
            return SplitContent(None, rows, hashed_as_read(reference))
        if reference.format not in LINES:
            text = read_bytes(reference, document=config.whole_files, spooled=config.settled)
            return SplitContent(text, None, reference)
        text, counts, reference = read_lines(reference, config)
        return SplitContent(text, None, reference, line_ends=counts.newlines + counts.returns)


class TopicReader:
    """Reads ranges of offsets."""

    def read(self, reference: OffsetSplit, config: StreamConfig) -> SplitContent:
        """Reads the messages of a range that have a value."""
        data, messages = KafkaReader.from_config(config).read(reference)
        return _of_messages(data, messages, reference.text(len(data), config.format), config)


class LogReader:
    """Reads ranges of logged messages."""

    def read(self, reference: FileSplit, config: StreamConfig) -> SplitContent:
        """Reads the messages of a range."""
        data, messages = read_log(reference, config)
        assert config.feed is not None, "the stream is a feed"
        text = msgspec.structs.replace(
            reference, name=config.feed.topic, format=config.format, start=0, stop=len(data)
        )
        return _of_messages(data, messages, text, config)


def _of_messages(
    data: Bytes, messages: Messages, reference: FileSplit, config: StreamConfig
) -> SplitContent:
    rows: CsvChunk | JsonChunk | None = None
    if config.format == "csv":
        rows = CsvChunk(config.header, data, config.separator)
    elif config.format == "ndjson":
        rows = JsonChunk(data)
    return SplitContent(data, rows, reference, messages)


FromOutside = FileSplit | OffsetSplit
"""References to external data; results of queries are read where plans are known."""


def headers_of(
    split: FromOutside, config: StreamConfig, messages: Messages | None
) -> MessageHeaders:
    """Returns the metadata of a reference's elements: from the headers of its messages or, when a
    pushed file is read to its end, from the name of the file.
    """
    if messages is not None:
        return messages.beside
    complete = complete_at_end(split.name) if config.settled else MIN
    if complete == MIN or not isinstance(split, FileSplit):
        return MessageHeaders()
    whole = split.stop >= Path(split.path).stat().st_size
    return MessageHeaders(complete=complete, complete_at=split.start) if whole else MessageHeaders()


_FILES: SourceReader[FileSplit] = FileReader()
_TOPICS: SourceReader[OffsetSplit] = TopicReader()
_LOGS: SourceReader[FileSplit] = LogReader()


def read(reference: FromOutside, config: StreamConfig) -> SplitContent:
    """Reads the elements of a reference. Raises ``SourceError``; ``FileFault`` if the reference
    itself is at fault, and all of it becomes a dead letter.
    """
    if isinstance(reference, OffsetSplit):
        return _TOPICS.read(reference, config)
    if config.feed is not None:
        return _LOGS.read(reference, config)
    return _FILES.read(reference, config)
