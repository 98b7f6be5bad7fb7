"""``kafka_latency``: from the production of a record in one topic to its result in another.

A process of its own produces records, a tick every few milliseconds; each has the instant at which
it was produced. ``levada run`` reads them with its default options and writes the results to
another topic, each once. A consumer of committed records takes the time at which it has each. The
queries are a filter, a count and maximum by key, and a join with a table of 900 rows. Of an
aggregate a record's result is the first row of its key that counts it. Each record must have a
result.

The same for Spark's micro-batches and its real-time mode (``bench.spark_kafka``), which write at
least once. Phases: warm-up and measurement at 1,000 records a second, then both at 10,000.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from array import array
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from confluent_kafka import Consumer, Producer, TopicPartition

from bench.result import Result, check_count
from bench.spark_kafka import MODES, jars

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.kafka_broker import Broker  # the tests' broker

PHASES = ((1000, 10.0, False), (1000, 20.0, True), (10_000, 5.0, False), (10_000, 20.0, True))
"""Records a second, seconds, whether it is measured."""
TICK, PATIENCE = 0.002, 60.0  # s
KEYS, KEPT = 1000, 900
SCHEMA = "k:integer;v:integer;t:integer;u:integer"
TABLE = "schema=k:integer;w:integer;t:integer,time=field:t,sign=sign,idle=1s"
QUERIES = {
    "filter": "Istream(Select k, u From S [Now] Where v < 900)",
    "aggregate": "Istream(Select k, Count(*) As n, Max(u) As u "
    "From S [Range Unbounded] Group By k)",
    "join": "Istream(Select S.k As k, u, w From S [Now], T Where S.k = T.k)",
}


def produce(server: str, topic: str, phases: str, instants: str) -> None:
    """Produces records until a line comes on standard input, then those of all phases, and one far
    behind them. Saves the instants of all records, in µs, and prints the first record of each phase
    and the one behind its last.
    """
    producer = Producer(
        {"bootstrap.servers": server, "linger.ms": 1, "acks": "all", "log_level": 0}
    )
    spans, at, started = [], array("q"), threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), started.set()), daemon=True).start()
    for rate, seconds, _ in [(1000, 0.0, False), *json.loads(phases)]:
        began, first, sent = time.time(), len(at), 0
        while (passed := time.time() - began) < seconds or not started.is_set():
            for _ in range(sent, due := int(passed * rate)):
                now = time.time_ns() // 1000
                k = len(at) % KEYS
                row = {"k": k, "v": k, "t": now // 1000, "u": now}
                producer.produce(topic, json.dumps(row).encode(), partition=0)
                at.append(now)
            sent = due
            producer.poll(0)
            time.sleep(TICK)
        spans.append((first, len(at)))
    last = {"k": KEYS, "v": 999, "t": time.time_ns() // 1_000_000 + 60_000, "u": 0}
    producer.produce(topic, json.dumps(last).encode(), partition=0)
    producer.flush()
    np.save(instants, np.array(at))
    print(json.dumps(spans[1:]))


class Results:
    """The committed rows of a topic, with the time at which each was there."""

    def __init__(self, server: str, topic: str) -> None:
        settings = {
            "bootstrap.servers": server,
            "group.id": topic,
            "fetch.wait.max.ms": 5,
            "log_level": 0,
        }
        self._consumer = Consumer({**settings, "isolation.level": "read_committed"})
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self._rows: list[tuple[int, ...]] = []
        self._at: list[int] = []

    def take(self, patience: float) -> None:
        """Takes what comes within so many seconds."""
        messages = self._consumer.consume(10_000, patience)
        now = time.time_ns() // 1000
        for message in messages:
            row = tuple(map(int, message.value().split(b",")[1:]))
            if row[0] < KEYS:
                self._rows.append(row)
                self._at.append(now)

    @property
    def count(self) -> int:
        """The rows so far."""
        return len(self._rows)

    def close(self) -> None:
        self._consumer.close()

    def delays(self, query: str, instants: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """How long each record's result took, in µs; -1: it has none."""
        found, rows = np.full(len(instants), -1), np.array(self._rows)
        at, record = np.array(self._at), np.arange(len(instants))
        if not len(rows):
            return found
        if query != "aggregate":  # by the instant, which the row has
            order = np.argsort(rows[:, 1], kind="stable")
            place = np.searchsorted(rows[order, 1], instants)
            place[place == len(order)] = 0
            has = rows[order[place], 1] == instants
            return np.where(has, at[order[place]] - instants, found)
        for k in range(KEYS):
            own, mine = np.flatnonzero(rows[:, 0] == k), record[k::KEYS]
            place = np.searchsorted(rows[own, 1], np.arange(1, len(mine) + 1))
            has = place < len(own)
            found[mine[has]] = at[own[place[has]]] - instants[mine[has]]
        return found


def measure(broker: Broker, query: str, engine: str, scale: float, stepped: bool) -> dict[str, Any]:
    """The latencies of a query by rate, on ``levada`` or a mode of Spark."""
    phases = [(rate, seconds * scale, counts) for rate, seconds, counts in PHASES]
    source, target = (f"{side}-{query}-{engine}" for side in ("in", "out"))
    broker.topic(source, 1)
    broker.topic(target, 1)
    with tempfile.TemporaryDirectory(prefix="levada-latency-") as text:
        folder = Path(text)
        rows = "".join(f"{k},{k % 7},1,+\n" for k in range(KEPT))
        (folder / "T.csv").write_text(f"k,w,t,sign\n{rows}")
        (folder / "q.cql").write_text(QUERIES[query])
        if engine == "levada":
            command = _levada(broker, query, source, target, stepped)
        else:
            command = [broker.server, source, target, query, engine, text]
            command = [sys.executable, "-m", "bench.spark_kafka", *command]
        path = {"PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable}
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(
                command, cwd=folder, env={**os.environ, **path}, stderr=log, stdout=log
            )
            try:
                return _follow(broker, (query, source, target), phases, process, folder)
            finally:
                process.terminate()
                process.wait(60)


def _levada(broker: Broker, query: str, source: str, target: str, stepped: bool) -> list[str]:
    options = f"format=ndjson,schema={SCHEMA},time=field:t,start=earliest"
    stream = f"S={broker.url(source)},{options}"
    command = [sys.executable, "-m", "levada", "run", "q.cql", "--stream", stream]
    if query == "join":
        command += ["--stream", f"T=T.csv,{TABLE}"]
    command += ["--checkpoint", "ck", "--to", f"q={broker.url(target)},format=csv"]
    return [*command, "--master", "none"] if stepped else command


def _follow(
    broker: Broker, names: tuple[str, str, str], phases: list[tuple[float, float, bool]],
    process: subprocess.Popen[bytes], folder: Path,
) -> dict[str, Any]:  # fmt: skip
    query, source, target = names
    call = "import sys; from bench.kafka_latency import produce; produce(*sys.argv[1:])"
    arguments = [broker.server, source, json.dumps(phases), str(folder / "instants.npy")]
    tree, results = psutil.Process(process.pid), Results(broker.server, target)
    pipe = subprocess.PIPE
    producer = subprocess.Popen(
        [sys.executable, "-c", call, *arguments], stdin=pipe, stdout=pipe, text=True
    )
    assert producer.stdin is not None, "it is a pipe"
    try:
        while producer.poll() is None:
            had = results.count
            results.take(0.002)
            if results.count and not had:
                producer.stdin.write("\n")
                producer.stdin.flush()
            assert process.poll() is None, (folder / "log").read_text()[-3000:]
    finally:
        producer.kill()
    spans, instants = json.loads(producer.communicate()[0]), np.load(folder / "instants.npy")
    until = time.monotonic() + PATIENCE
    expected = _expected(query, len(instants))
    while (delays := results.delays(query, instants)).min(initial=0) < 0:
        if (delays >= 0).sum() == expected or time.monotonic() > until:
            break
        results.take(0.5)
    spent = _cpu(tree)
    results.close()
    check_count(target, int((delays >= 0).sum()), expected)
    side: dict[str, Any] = {"cpu_s": round(spent, 1), "records": len(instants)}
    for (rate, _, counts), (first, last) in zip(phases, spans, strict=True):
        own = delays[first:last]
        own = own[own >= 0] / 1e3
        if counts:
            figures = {f"p{p}_ms": round(float(np.percentile(own, p)), 1) for p in (50, 95, 99)}
            side[f"at_{rate:.0f}"] = {"records": len(own), **figures}
    return side


def _expected(query: str, records: int) -> int:
    """The records that have a result."""
    if query == "aggregate":
        return records
    return records // KEYS * KEPT + min(records % KEYS, KEPT)


def _cpu(process: psutil.Process) -> float:
    """Seconds of a process and all below it."""
    found = [process, *process.children(recursive=True)]
    return float(sum(sum(each.cpu_times()[:2]) for each in found))


def run(scale: float, stepped: bool) -> Result:
    """Each query on each engine, on one broker; ``stepped``: Levada alone, without Spark."""
    engines = ("levada",) if stepped else ("levada", *MODES)
    if not stepped:
        jars()
    sides: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="levada-broker-") as folder:
        broker = Broker(Path(folder))
        try:
            for engine in engines:
                for query in QUERIES:
                    side = measure(broker, query, engine, scale, stepped)
                    sides[f"{engine}_{query}"] = side
        finally:
            broker.stop()
    return Result("kafka_latency", sides.pop("levada_filter"), more=sides)
