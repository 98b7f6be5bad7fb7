"""Commits the position of a stream to a consumer group, so that tools of Kafka show its lag, and
reads the time of single messages.

The engine never reads a committed offset: its checkpoint alone says where it continues. A failed
commit is a warning, once for each reason, and the next call tries again. Cost: a request when the
position has changed, and one every ``LOOK_EVERY`` for a message whose time is wanted.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

from levada.connectors.config.kafka_config import KafkaConfig
from levada.connectors.sources.kafka.librdkafka import error_text, library, settings

PATIENCE = 2.0  # s
LOOK_EVERY = 5.0  # s between looks for the time of a message of a partition
SMALL_FETCH = {"fetch.message.max.bytes": 65536, "queued.min.messages": 1}


class ConsumerGroup:
    """The requests of one topic. Only one thread may use it."""

    def __init__(self, config: KafkaConfig) -> None:
        self._config, self._library = config, library()
        self._admin: Any = None
        self._committed: dict[int, int] = {}
        self._failure = ""  # of the last commit
        self._times: dict[int, tuple[float, int, int | None]] = {}

    def commit(self, group: str, offsets: Mapping[int, int]) -> bool:
        """Commits the offsets of partitions to a group, if they have changed; returns whether the
        group has them.
        """
        if offsets == self._committed or not offsets:
            return True
        kafka = self._library
        self._admin = self._admin or kafka.admin.AdminClient(settings(self._config))
        topic = self._config.topic
        partitions = [kafka.TopicPartition(topic, p, at) for p, at in offsets.items()]
        request = [kafka.ConsumerGroupTopicPartitions(group, partitions)]
        reason = ""
        try:
            answers = self._admin.alter_consumer_group_offsets(request, request_timeout=PATIENCE)
            for each in answers[group].result(PATIENCE).topic_partitions:
                reason = reason or (error_text(each.error) if each.error else "")
        except kafka.KafkaException as error:
            reason = error_text(error.args[0])
        except TimeoutError:
            reason = "the broker does not answer"
        if reason and reason != self._failure:
            message = f"The group {group} does not take the offsets of {topic}: {reason}."
            warnings.warn(f"{message} Levada tries again.", stacklevel=2)
        self._committed, self._failure = ({} if reason else dict(offsets)), reason
        return not reason

    def time_of(self, partition: int, offset: int) -> int | None:
        """Returns the time (ms) of the message at an offset, or of an earlier one that was the
        oldest some seconds ago; None if it cannot be read.
        """
        looked, at, ms = self._times.get(partition, (-LOOK_EVERY, -1, None))
        now = time.monotonic()
        if at != offset and now - looked >= LOOK_EVERY:
            ms = self._read_time(partition, offset)
            self._times[partition] = now, offset, ms
        return ms

    def _read_time(self, partition: int, offset: int) -> int | None:
        kafka = self._library
        options = settings(self._config) | SMALL_FETCH
        options |= {"group.id": "levada-time", "enable.auto.commit": False}
        options["isolation.level"] = self._config.isolation
        consumer = kafka.Consumer(options)
        try:
            consumer.assign([kafka.TopicPartition(self._config.topic, partition, offset)])
            message = consumer.poll(PATIENCE)
            if message is None or message.error():
                return None
            kind, ms = message.timestamp()
            return None if kind == kafka.TIMESTAMP_NOT_AVAILABLE else int(ms)
        except kafka.KafkaException:
            return None
        finally:
            consumer.close()
