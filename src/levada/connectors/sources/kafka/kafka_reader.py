"""Reads a topic in a task: the messages of a range of offsets as one text.

The fetcher of a partition stays open in its process
(``connectors.sources.kafka.partition_fetcher``) and keeps the part of the last answer after its
range.

Cost: no Python object a message (docs/decisions/0044-fetch.md).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from ctypes import string_at
from dataclasses import replace

import numpy as np
import polars as pl

from levada.connectors.config.input_formats import TABLES
from levada.connectors.config.kafka_config import KafkaConfig
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.kafka.fetched_batches import Records
from levada.connectors.sources.kafka.partition_fetcher import (
    PATIENCE,
    RETRY_PAUSE,
    GoneError,
    Partition,
)
from levada.connectors.sources.message_headers import (
    Header,
    MessageHeaders,
    header_columns,
    read_headers,
)
from levada.connectors.sources.message_texts import Loss, Messages
from levada.connectors.sources.splits import OffsetSplit
from levada.core.array_types import Bytes, Longs
from levada.errors import AwayError, LostError

# Reads the keys and headers of records (``connectors.sources.message_headers``).
#
# Cost: Python for each record with headers (equal ones are parsed once) and, if a column of the
# stream is the key, for each record; nothing for others.


Headers = tuple[Header, ...]


def said_beside(
    records: Records, partition: int, config: StreamConfig
) -> tuple[MessageHeaders, dict[str, pl.Series]]:
    """Returns the metadata in the headers of records, and the columns of the records with a
    value.
    """
    headers = _headers(records)
    there = np.flatnonzero(records.length >= 0)
    offsets = records.offset[there].tolist()
    rdf = config.mapping is None and config.format not in TABLES
    said = read_headers(
        [(int(records.offset[k]), all_) for k, all_ in headers.items()], offsets, rdf=rdf
    )
    names = config.beside_columns
    columns = header_columns(names, [headers.get(k) for k in there.tolist()] if names else [])
    assert config.kafka is not None, "the stream is a topic"
    asked: dict[str, Callable[[], Sequence[str | None]]] = {
        "message_key": lambda: _keys(records, there),
        "message_topic": lambda: [config.kafka.topic if config.kafka else ""] * len(there),
        "message_partition": lambda: [str(partition)] * len(there),
        "message_offset": lambda: list(map(str, offsets)),
        "message_time": lambda: list(map(str, records.time[there].tolist())),
    }
    for name in names:
        if name in asked:
            columns[name] = pl.Series(name, asked[name](), pl.String)
    return said, columns


def _keys(records: Records, there: Longs) -> list[str | None]:
    places = records.more.reshape(-1, 4)[there, :2].tolist()
    return [
        None if size < 0 else string_at(place, size).decode("utf-8", "replace")
        for place, size in places
    ]


def _headers(records: Records) -> dict[int, Headers]:
    """Returns the headers of the records that have some, by their numbers."""
    more = records.more.reshape(-1, 4)
    some = np.flatnonzero(more[:, 3] > 1)  # a count of one byte is 0
    read: dict[bytes, Headers] = {}
    headers = {}
    for k, (place, size) in zip(some.tolist(), more[some, 2:].tolist(), strict=True):
        raw = string_at(place, size)
        if raw not in read:
            read[raw] = _taken_apart(raw)
        headers[k] = read[raw]
    return headers


def _taken_apart(raw: bytes) -> Headers:
    """Parses names and values. A damaged header ends them, since the checksum is intact."""
    headers: list[Header] = []
    count, at = _number(raw, 0)
    for _ in range(min(count, len(raw))):
        size, at = _number(raw, at)
        name, at = raw[at : at + size].decode("utf-8", "replace"), at + size
        size, at = _number(raw, at)
        value = None if size < 0 else raw[at : at + size]
        at += max(size, 0)
        headers.append((name, value))
    return tuple(headers)


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """Parses a zigzag varint; returns it with the place after it."""
    bits = shift = 0
    while at < len(raw):
        c = raw[at]
        at += 1
        bits |= (c & 127) << shift
        shift += 7
        if c < 128:
            break
    return (bits >> 1) ^ -(bits & 1), at


MAX_CONNECTIONS = 64  # connections of a process


class KafkaReader:
    """The reader of the ranges of one stream in this process; made by ``from_config``."""

    def __init__(self, config: StreamConfig) -> None:
        assert config.kafka is not None, "the stream is a topic"
        self._kafka = config.kafka
        self._name = config.name
        self._config = config
        self._timed = config.time_kind == "timestamp"

    @classmethod
    def from_config(cls, config: StreamConfig) -> KafkaReader:
        """Returns the reader of a stream."""
        return cls(config)

    def read(self, reference: OffsetSplit) -> tuple[Bytes, Messages]:
        """Reads the messages of a range, each followed by a newline. Raises ``AwayError``,
        ``LostError``.
        """
        partition = _take_partition(self._kafka, reference.number)
        try:
            records, lost = self._records(partition, reference)
        except BaseException:
            partition.close()
            raise
        data, messages = records.join(timed=self._timed, lost=lost)
        said, columns = said_beside(records, reference.number, self._config)
        read = data, replace(messages, beside=said, columns=columns)
        _return_partition(self._kafka, reference.number, partition)
        return read

    def _records(
        self, partition: Partition, reference: OffsetSplit
    ) -> tuple[Records, tuple[Loss, ...]]:
        """Returns the records, and the missing offsets."""
        start = reference.start
        lost: tuple[Loss, ...] = ()
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return partition.records(start, reference.stop, more=True), lost
            except GoneError as gone:
                if gone.first <= start <= gone.behind:  # the offset exists: the leader lags behind
                    if time.monotonic() > until:
                        raise AwayError(f"The broker does not answer: {gone}.") from None
                    time.sleep(RETRY_PAUSE)
                    continue
                first = min(gone.first, reference.stop)
                if first <= start:
                    raise self._lost_error(reference, start, reference.stop) from None
                if self._kafka.lost == "stop":
                    raise self._lost_error(reference, start, first) from None
                why = f"the offsets {start} to {first - 1} are gone before they were read"
                lost += ((start, why),)
                start = first

    def _lost_error(self, reference: OffsetSplit, start: int, stop: int) -> LostError:
        return LostError(
            f"The stream {self._name} of the topic {reference.topic}: the offsets {start} to "
            f"{stop - 1} of the partition {reference.number} are gone before they were read.",
            hint="Say lost=skip to go on without them, or start on a new checkpoint.",
        )


_partitions: OrderedDict[tuple[KafkaConfig, int], Partition] = OrderedDict()


def _take_partition(kafka: KafkaConfig, number: int) -> Partition:
    """Takes the fetcher of a partition in this process for exclusive use."""
    return _partitions.pop((kafka, number), None) or Partition(kafka, number)


def _return_partition(kafka: KafkaConfig, number: int, partition: Partition) -> None:
    """Keeps the fetcher for the next range; closes the least recently used one."""
    if (other := _partitions.pop((kafka, number), None)) is not None:
        other.close()
    _partitions[kafka, number] = partition
    if len(_partitions) > MAX_CONNECTIONS:
        _partitions.popitem(last=False)[1].close()
