"""``deliver``: from the producer of a topic to a client of server-sent events: 10,000 messages a
second of a quad each over four partitions of a real broker, epochs of 100 ms, windows that close
every 100 ms.

Broker, engine, server and clients are four processes on one machine. Counted first: each report has
every message of its window. Times are those of the clock: a latency is from a report's time, when
the message is made with which it is due, to the report's arrival; so what the producer, the broker
and the client take is in it.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from bench.push import (
    LASTS,
    RATE,
    STREAM,
    TICK,
    Reports,
    await_all,
    clients,
    delivered_side,
    line_at,
    listen,
    read_so_far,
    served,
    told_when_all,
)  # fmt: skip
from bench.result import Result

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.kafka_broker import Broker  # the tests' broker

TOPIC = "obs"
PARTITIONS = 4


def run(scale: float, stepped: bool) -> Result:
    """``scale`` is of seconds; ``stepped`` or not, the engine is in this process."""
    with tempfile.TemporaryDirectory(prefix="levada-deliver-") as folder:
        broker = Broker(Path(folder) / "broker")
        try:
            broker.topic(TOPIC, PARTITIONS)
            with served(broker.url(TOPIC), format="nq") as (engine, process, port):
                _send(port, broker, 2)  # what is loaded and compiled is there
                before = read_so_far(engine)
                cpu, own = sum(process.cpu_times()[:2]), time.process_time()
                told = _send(port, broker, max(int(LASTS * scale), 2))
                spent = sum(process.cpu_times()[:2]) - cpu
                await_all(engine, before + told["taken"])
                engines = time.process_time() - own
        finally:
            broker.stop()
    return Result("deliver", delivered_side(told, spent, engines))


def _send(port: int, broker: Broker, seconds: int) -> dict[str, Any]:
    return clients(port, broker.server, seconds, module="deliver")


# -- the clients' process --


async def _deliver(server: str, port: int, seconds: int) -> None:
    """Messages in time, each with the instant at which it is made, and when each report came."""
    seen: Reports = {}
    there = asyncio.Event()
    listening = asyncio.create_task(listen(port, seen, there))
    await there.wait()
    producer = Producer({"bootstrap.servers": server, "linger.ms": 1, "log_level": 0})
    producer.list_topics(TOPIC)  # it is connected
    began, count, done = time.time_ns() // 1_000_000, seconds * RATE, 0
    while done < count:
        await asyncio.sleep(TICK - time.time() % TICK)
        due = min(int(time.time() * 1000 - began) * RATE // 1000, count)
        for i in range(done, due):
            line = line_at(i, i, began + i * 1000 // RATE)
            producer.produce(TOPIC, line.rstrip("\n"), partition=i % PARTITIONS)
        producer.poll(0)
        done = due
    assert producer.flush(120) == 0, f"{STREAM} is there"
    await told_when_all(seen, listening, began, count, done)


if __name__ == "__main__":
    asyncio.run(_deliver(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
