"""``kafka_latency``: from the production of a record in one topic to its result in another.

A process of its own produces records, a tick every few milliseconds; each has the instant at which
it was produced. ``levada run`` reads them with its default options and writes the results to
another topic, each once. A consumer of committed records takes the time at which it has each. The
queries are a filter, a count and maximum by key, and a join with a table of 900 rows. Of an
aggregate a record's result is the first row of its key that counts it. Each record must have one
result, and no other may be there.

Phases: warm-up and measurement at 1,000 records a second, then both at 10,000. There is no
baseline here: docs/benchmarks.md has the figures of Spark's micro-batches and its real-time mode.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.result import Result, check_count

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from kafka_broker import Broker  # the tests' broker

PHASES = ((1000, 10.0, False), (1000, 20.0, True), (10_000, 5.0, False), (10_000, 20.0, True))
"""Records a second, seconds, whether it is measured."""
TICK = 0.002  # s
KEYS, KEPT = 1000, 900
SCHEMA = "k:integer;v:integer;t:integer;u:integer"
QUERIES = {
    "filter": "Istream(Select k, u From S [Now] Where v < 900)",
    "aggregate": "Istream(Select k, Count(*) As n, Max(u) As u "
    "From S [Range Unbounded] Group By k)",
    "join": "Istream(Select S.k As k, u, w From S [Now], T Where S.k = T.k)",
}


def produce(server: str, topic: str, phases: str) -> None:
    """Produces the records of all phases and one far behind them; prints when each phase began and
    ended, in µs.
    """
    producer = Producer({"bootstrap.servers": server, "linger.ms": 1, "acks": "all"})
    number, spans = 0, []
    for rate, seconds, _ in json.loads(phases):
        began, first, sent = time.time(), number, 0
        while (passed := time.time() - began) < seconds:
            for _ in range(sent, due := int(passed * rate)):
                now = time.time_ns() // 1000
                row = {"k": number % KEYS, "v": number % 1000, "t": now // 1000, "u": now}
                producer.produce(topic, json.dumps(row).encode(), partition=0)
                number += 1
            sent = due
            producer.poll(0)
            time.sleep(TICK)
        spans.append((int(began * 1e6), time.time_ns() // 1000, number - first))
    last = {"k": 0, "v": 999, "t": time.time_ns() // 1_000_000 + 60_000, "u": 0}
    producer.produce(topic, json.dumps(last).encode(), partition=0)
    producer.flush()
    print(json.dumps({"spans": spans, "records": number}))


class Results:
    """The committed rows of a topic, with the time at which each was there."""

    def __init__(self, server: str, topic: str) -> None:
        settings = {"bootstrap.servers": server, "group.id": topic, "fetch.wait.max.ms": 5}
        self._consumer = Consumer({**settings, "isolation.level": "read_committed"})
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self.rows: list[tuple[int, ...]] = []
        self.at: list[int] = []

    def take(self, patience: float) -> int:
        """Takes what comes within so many seconds; how many rows."""
        messages = self._consumer.consume(10_000, patience)
        now = time.time_ns() // 1000
        for message in messages:
            self.rows.append(tuple(int(cell) for cell in message.value().split(b",")[1:]))
            self.at.append(now)
        return len(messages)


def measure(broker: Broker, name: str, scale: float, options: list[str]) -> dict[str, Any]:
    """The latencies of a query by rate."""
    phases = [(rate, seconds * scale, counts) for rate, seconds, counts in PHASES]
    broker.topic(f"in-{name}", 1)
    broker.topic(f"out-{name}", 1)
    with tempfile.TemporaryDirectory(prefix="levada-latency-") as text:
        folder = Path(text)
        command = _command(folder, broker, name)
        with open(folder / "log", "wb") as log:
            engine = subprocess.Popen([*command, *options], cwd=folder, stderr=log, stdout=log)
            try:
                return _follow(broker, name, phases, psutil.Process(engine.pid), folder)
            finally:
                engine.terminate()
                engine.wait(60)


def _command(folder: Path, broker: Broker, name: str) -> list[str]:
    rows = "".join(f"{k},{k % 7},1\n" for k in range(KEPT))
    (folder / "T.csv").write_text(f"k,w,sign\n{rows}")
    (folder / "q.cql").write_text(QUERIES[name])
    source = (
        f"S={broker.url(f'in-{name}')},format=ndjson,schema={SCHEMA},time=field:t,start=earliest"
    )
    command = [sys.executable, "-m", "levada", "run", "q.cql", "--stream", source]
    if name == "join":
        command += ["--stream", "T=T.csv,schema=k:integer;w:integer,relation=true"]
    target = f"q={broker.url(f'out-{name}')},format=csv"
    return [*command, "--checkpoint", "ck", "--to", target]


def _follow(
    broker: Broker, name: str, phases: list[tuple[float, float, bool]], engine: psutil.Process,
    folder: Path,
) -> dict[str, Any]:  # fmt: skip
    call = "import sys; from bench.kafka_latency import produce; produce(*sys.argv[1:])"
    arguments = [broker.server, f"in-{name}", json.dumps(phases)]
    producer = subprocess.Popen(
        [sys.executable, "-c", call, *arguments], stdout=subprocess.PIPE, text=True
    )
    results, cpu, until = Results(broker.server, f"out-{name}"), [_cpu(engine)], 0.0
    while producer.poll() is None:
        results.take(0.002)
        assert engine.is_running(), (folder / "log").read_text()[-2000:]
    sent = json.loads(producer.communicate()[0])
    until = time.monotonic() + 30
    while time.monotonic() < until and len(results.rows) < _expected(name, sent["records"]):
        results.take(0.1)
    cpu.append(_cpu(engine))
    check_count(name, _count(name, results), _expected(name, sent["records"]))
    found = _latencies(name, results)
    side: dict[str, Any] = {"cpu_s_per_100k": round((cpu[1] - cpu[0]) / sent["records"] * 1e5, 2)}
    for (rate, _, counts), (began, ended, _) in zip(phases, sent["spans"], strict=True):
        if counts:
            own = np.array([late for u, late in found if began <= u < ended]) / 1e3
            side[f"at_{rate:.0f}"] = {
                "records": len(own),
                **{f"p{p}_ms": round(float(np.percentile(own, p)), 1) for p in (50, 95, 99)},
            }
    return side


def _expected(name: str, records: int) -> int:
    """The results that the records have."""
    if name == "aggregate":
        return records
    return sum(min(max(records - first, 0), KEPT) for first in range(0, records, KEYS))


def _count(name: str, results: Results) -> int:
    if name == "aggregate":  # records that are counted, of each key
        most: dict[int, int] = {}
        for k, n, _ in results.rows:
            most[k] = max(most.get(k, 0), n)
        return sum(most.values())
    return len(results.rows)


def _latencies(name: str, results: Results) -> list[tuple[int, int]]:
    """When records were produced, and how long their results took, µs."""
    place = 2 if name == "aggregate" else 1
    return [(row[place], at - row[place]) for row, at in zip(results.rows, results.at, strict=True)]


def _cpu(process: psutil.Process) -> float:
    """Seconds of a process and all below it."""
    found = [process, *process.children(recursive=True)]
    return sum(sum(each.cpu_times()[:2]) for each in found)


def run(scale: float, stepped: bool) -> Result:
    """Each query on a broker of its own topics; ``stepped``: without Spark."""
    options = ["--master", "none"] if stepped else []
    with tempfile.TemporaryDirectory(prefix="levada-broker-") as folder:
        broker = Broker(Path(folder))
        try:
            sides = {name: measure(broker, name, scale, options) for name in QUERIES}
        finally:
            broker.stop()
    return Result("kafka_latency", sides["filter"], more=sides)
