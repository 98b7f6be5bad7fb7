"""Reads a topic in a task: the messages of a range of offsets as one text.

The fetcher of a partition stays open in its process
(``connectors.sources.kafka.partition_fetcher``) and keeps the part of the last answer after its
range.

Cost: no Python object a message (docs/decisions/0044-fetch.md).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import replace

from levada.connectors.config.kafka_config import KafkaConfig
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.kafka.fetched_batches import Records
from levada.connectors.sources.kafka.partition_fetcher import (
    PATIENCE,
    RETRY_PAUSE,
    GoneError,
    Partition,
)
from levada.connectors.sources.kafka.record_headers import said_beside
from levada.connectors.sources.message_texts import Loss, Messages
from levada.connectors.sources.splits import OffsetSplit
from levada.core.array_types import Bytes
from levada.errors import AwayError, LostError

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
