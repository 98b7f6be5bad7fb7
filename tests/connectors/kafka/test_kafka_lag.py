"""The lag of topics: messages, the age of the oldest, and the group of ``commit_group``."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from levada import Engine
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.kafka.kafka_enumerator import KafkaSource
from support.kafka_broker import Broker
from support.polling import until

QUERY = """PREFIX : <http://e/> SELECT ?x
FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT4S] WHERE { WINDOW :w { ?x :v ?v } }"""
NAMES = (f"lag-{k}" for k in itertools.count())
NOW = 1_800_000_000_000
GROUP_TOOL = "consumer.group.ConsumerGroupCommand"


def line(k: int) -> str:
    return f"<http://e/{k}> <http://e/v> <http://e/o> {k} ."


def engine(url: str, root: Path, commit_group: str) -> Engine:
    made = Engine(spark=False, checkpoint=root)
    made.stream("http://e/s", url, format="nt", commit_group=commit_group)
    made.register(QUERY, name="q")
    return made


def test_kafka_s_own_tool_shows_the_lag(broker: Broker, tmp_path: Path) -> None:
    url = broker.topic(topic := next(NAMES), 2)
    broker.send(topic, map(line, range(30)), partition=0)
    broker.send(topic, map(line, range(10)), partition=1)
    describe = [GROUP_TOOL, "--bootstrap-server", broker.server, "--describe", "--group", "seen"]

    def lags() -> dict[str, tuple[str, str, str]]:
        rows = [row.split() for row in broker.tool(*describe).splitlines() if topic in row]
        return {row[2]: (row[3], row[4], row[5]) for row in rows}

    with engine(url, tmp_path / "ck", commit_group="seen") as made:
        made.start()
        until(lambda: lags() == {"0": ("30", "30", "0"), "1": ("10", "10", "0")})
    broker.send(topic, map(line, range(30, 37)), partition=0)
    assert lags() == {"0": ("30", "37", "7"), "1": ("10", "10", "0")}


def test_the_oldest_message_is_dated_by_its_time_then_by_its_arrival(broker: Broker) -> None:
    url = broker.topic(topic := next(NAMES))
    broker.send(topic, map(line, range(5)), times=[1_700_000_000_000 + k for k in range(5)])
    source = KafkaSource(StreamConfig.from_options("s", url, format="nt"))
    source.discover()
    unread = source.unread(NOW)
    assert (unread.elements, unread.size, unread.oldest_ms) == (5, None, 1_700_000_000_000)
    _, position = source.take({}, 5)
    source.forget(position)
    unread = source.unread(NOW)
    assert (unread.elements, unread.oldest_ms, unread.taken) == (0, None, 5)
    broker.send(topic, [line(5)], times=[1])

    def has_more() -> bool:
        source.discover(position=position)
        return source.backlog(position)

    until(has_more)
    unread = source.unread(NOW + 1000)
    assert (unread.elements, unread.oldest_ms) == (1, NOW + 1000)


def test_a_group_in_use_is_a_warning(broker: Broker, tmp_path: Path) -> None:
    url = broker.topic(topic := next(NAMES))
    broker.send(topic, map(line, range(3)))
    consumer = Consumer({"bootstrap.servers": broker.server, "group.id": "used", "log_level": 0})
    consumer.subscribe([topic])
    until(lambda: consumer.poll(0.5) is None and consumer.assignment())
    with (
        engine(url, tmp_path / "ck", commit_group="used") as made,
        pytest.warns(UserWarning, match=f"The group used does not take the offsets of {topic}"),
    ):
        made.start(once=True, keep_open=True)
        made.await_end(60)
        made.status()
    consumer.close()
