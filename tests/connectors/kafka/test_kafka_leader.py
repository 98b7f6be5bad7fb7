"""Two brokers, each partition on both: the leader of what an engine reads and of what it writes is
killed between two looks. The other one leads on, the engine with it: each message counts once, each
report is there once, and the broker that comes again changes nothing.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic
from test_kafka_out import SUMS, by_files, stream

from levada.engine.engine import Engine
from levada.testing.compare import read_ndjson, same
from support.kafka_broker import Broker
from support.kafka_consumer import consumed, own
from support.polling import PATIENCE, until, until_engine

PART = 1200  # elements of each of four parts
FIRST, SECOND = 1, 2
SETTINGS = {
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
}


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[Broker, Broker]]:
    first = Broker(tmp_path / "first", settings=SETTINGS)
    try:
        second = Broker(tmp_path / "second", settings=SETTINGS, beside=first)
        try:
            yield first, second
        finally:
            second.stop()
    finally:
        first.stop()


def made(first: Broker, second: Broker, name: str, leaders: list[int]) -> str:
    """A topic whose partitions are led by these brokers, each with the other behind it; its URL."""
    placed = [[leader, FIRST + SECOND - leader] for leader in leaders]
    topic = NewTopic(name, num_partitions=len(leaders), replica_assignment=placed)
    first.admin.create_topics([topic])[name].result(PATIENCE)
    until(lambda: in_step(first, name) == [2] * len(leaders))
    return f"kafka://{second.server},{first.server}/{name}"


def in_step(broker: Broker, name: str) -> list[int]:
    """How many brokers have each partition."""
    found = broker.admin.list_topics(name, timeout=PATIENCE).topics[name].partitions
    return [len(found[p].isrs) for p in sorted(found)]


def leader(broker: Broker, name: str) -> int:
    found = broker.admin.list_topics(name, timeout=PATIENCE).topics[name].partitions
    return int(found[0].leader)


def send(broker: Broker, at: int, path: Path) -> None:
    """The next part, over two partitions, and to the file that is the reference's. Times are from
    50 ms on: 0 is now for who produces.
    """
    stream(path, PART, at + 1)
    lines = path.read_text().splitlines()[at:]
    for p in range(2):
        chosen = range(p, PART, 2)
        values = [lines[k].rpartition(" ")[0].rpartition(" ")[0] + " ." for k in chosen]
        broker.send("obs", values, p, [50 * (at + k + 1) for k in chosen], acks="all")


@pytest.mark.long
@pytest.mark.chaos
@pytest.mark.timeout(4 * PATIENCE)
def test_a_leader_that_is_killed(two: tuple[Broker, Broker], tmp_path: Path) -> None:
    first, second = two
    obs = made(first, second, "obs", [SECOND, FIRST])
    sums = made(first, second, "sums", [SECOND])
    path, root = tmp_path / "s.nt", tmp_path / "ck"

    def engine() -> Engine:
        made = Engine(spark=False, checkpoint=root, epoch_rows=60, epoch="5ms")
        made.stream("http://e/s", obs, format="nt", time="timestamp")
        made.register(SUMS, name="q").to(sums)
        return made

    send(first, 0, path)  # no partition is empty, which would hold back nothing
    with engine() as running:
        running.start()
        until_engine(running, lambda: read(running) == PART)
        until_engine(running, lambda: not running.status().outputs[0].pending_reports)
        until(lambda: in_step(first, "sums") == [2] and in_step(first, "obs") == [2, 2])
        send(first, PART, path)
        until_engine(running, lambda: read(running) > PART)
        second.stop(signal.SIGKILL)  # with some of it read, and written
        send(first, 2 * PART, path)
        until(lambda: (leader(first, "obs"), leader(first, "sums")) == (FIRST, FIRST))
        until_engine(running, lambda: read(running) == 3 * PART)
        until_engine(running, lambda: not running.status().outputs[0].pending_reports)
        second.start()
        until(lambda: in_step(first, "sums") == [2])
        send(first, 3 * PART, path)
        until_engine(running, lambda: read(running) == 4 * PART)
    with engine() as ending:
        ending.start(once=True)
        assert ending.await_end(PATIENCE)
        assert not ending.status().outputs[0].pending_reports
    found = own(consumed(first, "sums"))
    assert len(found) == len(set(found)) > 50
    assert same(by_files(tmp_path / "files", path), read_ndjson(found)["q"]) is None


def read(engine: Engine) -> int:
    record = engine._records().get("http://e/s")
    return record.elements if record else 0
