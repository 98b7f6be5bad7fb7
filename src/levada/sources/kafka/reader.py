"""A topic, seen from a task: the messages of a range of offsets as one text.

By assign and seek, without a consumer group. A consumer for each partition stays open in its
process, since a new one needs 50 to 190 ms for its first message; one that goes on where it stopped
does not even seek. Transactions and compaction leave gaps, so a range ends with its last offset,
with a later message (which is kept for the next range), or with the end of the partition.

Cost: 1 us a message, nearly all of it librdkafka's and the Python object that it makes of each
(docs/decisions/0024-kafka-in.md).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from levada.errors import AwayError, LostError, SourceError
from levada.kernels.text.bytes_ import parsing_room
from levada.model.arrays import Bytes, Longs
from levada.sources.kafka.client import library, said, settings
from levada.sources.messages.beside import beside, header_columns
from levada.sources.messages.texts import Messages
from levada.sources.reference import KafkaReference
from levada.streams.formats import TABLES
from levada.streams.kafka import KafkaConfig
from levada.streams.stream_config import StreamConfig

PATIENCE = 10.0  # s without a message
AT_ONCE = 10_000  # messages of a call, which waits for as many
WAIT = 0.05  # s
OPEN = 64  # consumers of a process
_SETTINGS = {
    "group.id": "levada",  # which librdkafka wants; nothing is committed to it
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "fetch.wait.max.ms": 50,
    "fetch.message.max.bytes": 4 << 20,
    "fetch.error.backoff.ms": 50,
    "fetch.queue.backoff.ms": 2,
    "queued.min.messages": 50_000,
    "queued.max.messages.kbytes": 64 << 10,
}


class KafkaReader:
    """What reads the ranges of one stream in this process; made by ``of``."""

    def __init__(self, config: StreamConfig) -> None:
        assert config.kafka is not None, "the stream is a topic"
        self._kafka = config.kafka
        self._name = config.name
        self._config = config

    @classmethod
    def of(cls, config: StreamConfig) -> KafkaReader:
        """The reader of a stream."""
        return cls(config)

    def read(self, reference: KafkaReference) -> tuple[Bytes, Messages]:
        """The messages of a range, a newline behind each. Raises ``AwayError``, ``LostError``."""
        start, lost = reference.start, []
        until = time.monotonic() + PATIENCE
        while True:
            partition = _open(self._kafka, reference.number)
            try:
                found = partition.fetch(start, reference.stop)
                break
            except _Gone as gone:
                _close(self._kafka, reference.number)
                if gone.first <= start <= gone.behind:  # it is there: librdkafka gave up too early
                    if time.monotonic() > until:
                        raise AwayError(f"The broker does not answer: {gone}.") from None
                    continue
                first = min(gone.first, reference.stop)
                if first <= start:
                    raise self._lost(reference, start, reference.stop) from None
                if self._kafka.lost == "stop":
                    raise self._lost(reference, start, first) from None
                lost.append((start, first))
                start = first
            except Exception:
                _close(self._kafka, reference.number)
                raise
        return _joined(found, self._config, lost=tuple(lost))

    def _lost(self, reference: KafkaReference, start: int, stop: int) -> LostError:
        return LostError(
            f"The stream {self._name} of the topic {reference.topic}: the offsets {start} to "
            f"{stop - 1} of the partition {reference.number} are gone before they were read.",
            hint="Say lost=skip to go on without them, or start on a new checkpoint.",
        )


class _Gone(Exception):  # noqa: N818  # an answer, not an error: it never leaves this file
    """librdkafka says that an offset is not there; ``first`` is the first one that is, and
    ``behind`` the one after the last.
    """

    def __init__(self, said: str, first: int, behind: int) -> None:
        super().__init__(said)
        self.first, self.behind = first, behind


class _Partition:
    """A consumer of one partition; ``at``: the offset from which it goes on."""

    def __init__(self, kafka: KafkaConfig, number: int) -> None:
        self._library = library()
        self._errors = self._library.KafkaError
        self._place = (kafka.topic, number)
        self._where = f"{kafka.servers}, {kafka.topic}/{number}"
        isolation = {"isolation.level": kafka.isolation}
        self._consumer = self._library.Consumer({**settings(kafka), **_SETTINGS, **isolation})
        self._at = -1
        self._kept: list[Any] = []

    def fetch(self, start: int, stop: int) -> list[Any]:
        """The messages of [start, stop), in order."""
        if start != self._at:
            self._consumer.assign([self._library.TopicPartition(*self._place, start)])
            self._kept = []
        self._at = -1  # what fails leaves it unknown
        found: list[Any] = []
        batch, self._kept = self._kept, []
        heard = time.monotonic()
        while True:
            over = self._sort(batch, found, stop)
            if over or (found and found[-1].offset() >= stop - 1):
                self._at = stop
                return found
            left = stop - (found[-1].offset() + 1 if found else start)
            batch = self._consumer.consume(min(left, AT_ONCE), WAIT)
            if batch:
                heard = time.monotonic()
            elif time.monotonic() - heard > PATIENCE:
                raise AwayError(f"The broker does not answer ({self._where}).")

    def _sort(self, batch: Sequence[Any], found: list[Any], stop: int) -> bool:
        """Puts what belongs to the range to what was found; whether the range is over."""
        if all(m.error() is None for m in batch) and (not batch or batch[-1].offset() < stop):
            found += batch
            return False
        for k, message in enumerate(batch):
            if (error := message.error()) is not None:
                if self._ends(error, message, stop):
                    self._kept = list(batch[k + 1 :])
                    return True
            elif message.offset() >= stop:
                self._kept = list(batch[k:])
                return True
            else:
                found.append(message)
        return False

    def _ends(self, error: Any, message: Any, stop: int) -> bool:
        """Whether an event that is no message says that the range is over. Raises what it says."""
        code = error.code()
        if code == self._errors._PARTITION_EOF:
            return bool(message.offset() >= stop)
        if code in (self._errors._AUTO_OFFSET_RESET, self._errors.OFFSET_OUT_OF_RANGE):
            place = self._library.TopicPartition(*self._place)
            raise _Gone(said(error), *self._consumer.get_watermark_offsets(place, PATIENCE))
        if error.fatal() or code in (
            self._errors.TOPIC_AUTHORIZATION_FAILED,
            self._errors._BAD_COMPRESSION,
            self._errors._BAD_MSG,
        ):
            raise SourceError(f"Kafka cannot be read ({self._where}): {said(error)}.")
        return False  # it is tried again

    def close(self) -> None:
        """Ends its threads."""
        self._consumer.close()


_partitions: OrderedDict[tuple[KafkaConfig, int], _Partition] = OrderedDict()


def _open(kafka: KafkaConfig, number: int) -> _Partition:
    """The consumer of a partition in this process; the one that was used least goes."""
    key = kafka, number
    if key not in _partitions:
        _partitions[key] = _Partition(kafka, number)
        if len(_partitions) > OPEN:
            _partitions.popitem(last=False)[1].close()
    _partitions.move_to_end(key)
    return _partitions[key]


def _close(kafka: KafkaConfig, number: int) -> None:
    if (partition := _partitions.pop((kafka, number), None)) is not None:
        partition.close()


def _joined(
    found: Sequence[Any], config: StreamConfig, *, lost: tuple[tuple[int, int], ...]
) -> tuple[Bytes, Messages]:
    """Messages as one text, with room for what parsing adds."""
    values = [message.value() for message in found]
    kept = found
    if None in values:
        kept = [m for m, value in zip(found, values, strict=True) if value is not None]
        values = [value for value in values if value is not None]
    n = len(values)
    starts: Longs = np.zeros(n + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, n) + 1, out=starts[1:])
    values.append(b"")
    joined = np.frombuffer(b"\n".join(values), np.uint8)
    size = joined.size
    data: Bytes = np.empty(size + parsing_room(size), np.uint8)[:size]
    data[:] = joined
    offsets = np.fromiter((m.offset() for m in kept), np.int64, n)
    times = np.zeros(n, np.int64)
    if config.time_kind == "timestamp":
        times = np.fromiter((m.timestamp()[1] for m in kept), np.int64, n)
    headers = [(m.offset(), all_) for m in found if (all_ := m.headers())]
    rdf = config.mapping is None and config.format not in TABLES
    said = beside(headers, offsets.tolist() if headers else (), rdf=rdf)
    columns = _columns(config.beside_columns, kept)
    return data, Messages(
        starts, offsets, times, len(found) - n, lost, beside=said, columns=columns
    )


def _columns(names: Sequence[str], found: Sequence[Any]) -> dict[str, pl.Series]:
    """What is said beside the texts of messages, as texts."""
    said = header_columns(names, [m.headers() for m in found] if names else [])
    asked: dict[str, Callable[[Any], str | None]] = {
        "message_key": _key,
        "message_topic": lambda m: str(m.topic()),
        "message_partition": lambda m: str(m.partition()),
        "message_offset": lambda m: str(m.offset()),
        "message_time": lambda m: str(m.timestamp()[1]),
    }
    for name in names:
        if name in asked:
            said[name] = pl.Series(name, [asked[name](m) for m in found], pl.String)
    return said


def _key(message: Any) -> str | None:
    key = message.key()
    return None if key is None else key.decode("utf-8", "replace")
