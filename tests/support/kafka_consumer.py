"""What is in a topic, as its readers see it: committed, or written at all."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, TopicPartition

from support.kafka_broker import Broker
from support.polling import PATIENCE


def consumed(broker: Broker, topic: str, isolation: str = "read_committed") -> list[Any]:
    """The messages of a topic of one partition, as a consumer sees them. A transaction is over a
    moment before readers may have it, so one waits until they have come to the end of the topic.
    """
    options = {
        "bootstrap.servers": broker.server, "group.id": "judge", "enable.auto.commit": False,
        "enable.partition.eof": True, "log_level": 0,
    }  # fmt: skip
    partition = TopicPartition(topic, 0, 0)
    looking = Consumer(options | {"isolation.level": "read_uncommitted"})
    _, end = looking.get_watermark_offsets(partition, timeout=PATIENCE)
    looking.close()
    consumer = Consumer(options | {"isolation.level": isolation})
    consumer.assign([partition])
    found: list[Any] = []
    try:
        while True:
            message = consumer.poll(PATIENCE)
            assert message is not None, "the topic does not end"
            if message.error() is None:
                found.append(message)
            elif (message.offset() or 0) >= end:
                return found
    finally:
        consumer.close()


def is_settled(server: str, topic: str) -> bool:
    """Whether every transaction has its markers, in the topic and in the groups' offsets. Of a
    broker that is killed before, some stay without (Kafka 4, one broker), and nobody reads on.
    """
    ends = []
    for isolation in ("read_committed", "read_uncommitted"):
        looking = Consumer({
            "bootstrap.servers": server, "group.id": "judge", "isolation.level": isolation,
            "log_level": 0,
        })  # fmt: skip
        names = (topic, "__consumer_offsets")
        ends += [looking.get_watermark_offsets(TopicPartition(n, 0), PATIENCE) for n in names]
        looking.close()
    return ends[:2] == ends[2:]


def own(messages: list[Any]) -> list[str]:
    """What Levada has written, as texts."""
    return [m.value().decode() for m in messages if m.key() is not None]
