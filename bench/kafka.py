"""``kafka``: a quad a message, and ten, through a query that reads them all and keeps hardly any;
the baseline is the same lines in a file. CPU is that of Levada's one process, librdkafka's threads
among it; the broker and the producer are others. ``fetch`` is the reader of tasks alone, without
parsing, ``librdkafka`` its Python binding over the same messages. ``through``: a quad a message
in, a tenth of them out to another topic, each epoch a transaction. A row is a quad that came in.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from bench.result import Result, check_count, ratio
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.kafka.kafka_reader import KafkaReader
from levada.connectors.sources.splits import OffsetSplit
from levada.engine.engine import Engine

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.kafka_broker import Broker  # the tests' broker

MESSAGES = 1_000_000
PARTITIONS = 4
ROUNDS = 3
QUERY = """PREFIX : <http://example.org/> SELECT (COUNT(*) AS ?n)
FROM NAMED WINDOW :w ON :obs [RANGE PT1000S STEP PT1000S]
WHERE { WINDOW :w { ?o :result ?v } FILTER(?v = 7) }"""
TENTH = """PREFIX : <http://example.org/> SELECT ?o ?v
FROM NAMED WINDOW :w ON :obs [RANGE PT1S STEP PT1S]
WHERE { WINDOW :w { ?o :result ?v } FILTER(?v < 100) }"""


def quad(k: int) -> str:
    """A line of 126 bytes, and the newline of a file."""
    number = f"{k % 1000:04d}"
    line = f"<http://example.org/observation/{k:08d}> <http://example.org/result> "
    line += f'"{number}"^^<http://www.w3.org/2001/XMLSchema#int> '
    return line + "<g:" + "x" * (126 - len(line) - 6) + "> ."


def run(scale: float, stepped: bool) -> Result:
    """Both shapes of messages over topics, and the lines as a file; ``stepped`` or not, it is one
    process.
    """
    n = max(int(MESSAGES * scale), 40)
    n -= n % (10 * PARTITIONS)
    with tempfile.TemporaryDirectory(prefix="levada-kafka-") as folder:
        root = Path(folder)
        (root / "obs_1000.nq").write_text("".join(f"{quad(k)}\n" for k in range(n)))
        broker = Broker(root / "broker")
        try:
            for name, each in (("one", 1), ("ten", 10)):
                broker.topic(name, PARTITIONS)
                for p in range(PARTITIONS):
                    broker.send(name, _messages(n, each, p), p, compression_type="lz4",
                                linger_ms=20, queue_buffering_max_messages=2_000_000)  # fmt: skip
            options = {"format": "nq", "time": "timestamp"}
            one = _best(lambda: _query(n, broker.url("one"), **options))
            ten = _best(lambda: _query(n, broker.url("ten"), element="line", **options))
            fetch = _best(lambda: _fetch(broker, n))
            binding = _best(lambda: _binding(broker, n))
            outs = (f"out-{k}" for k in range(ROUNDS))
            through = _best(lambda: _through(broker, n, next(outs)))
            file = _best(lambda: _query(n, str(root / "obs_1000.nq"), time="filename:_([0-9]+)"))
        finally:
            broker.stop()
    more = {
        "fetch": fetch,
        "librdkafka": binding,
        "through": through,
        "ten_a_message": ten,
        "ten_by_file": ratio(ten, file),
    }
    return Result(
        "kafka", one, file, round(one["rows_per_cpu_s"] / file["rows_per_cpu_s"], 2), more
    )


def _messages(n: int, each: int, partition: int) -> list[str]:
    lines = [quad(k) for k in range(partition, n, PARTITIONS)]
    return ["\n".join(lines[k : k + each]) for k in range(0, len(lines), each)]


def _best(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    return max((measure() for _ in range(ROUNDS)), key=lambda side: side["rows_per_cpu_s"])


def _query(n: int, path: str, **options: Any) -> dict[str, Any]:
    """A run over all that is there; the epochs' CPU, from the start of the engine."""
    with Engine(spark=False) as engine:
        engine.stream("http://example.org/obs", path, **options)
        engine.register(QUERY, name="q")
        cpu, began = time.process_time(), time.perf_counter()
        engine.start(once=True)
        engine.await_end()
        spent, took = time.process_time() - cpu, time.perf_counter() - began
        record = engine._records()["http://example.org/obs"]
        check_count(path, record.elements, n)
    return _side(n, spent, took)


def _fetch(broker: Broker, n: int) -> dict[str, Any]:
    config = StreamConfig.from_options("s", broker.url("one"), format="nq", time="timestamp")
    reader, size = KafkaReader.from_config(config), n // PARTITIONS
    cpu, began, count = time.process_time(), time.perf_counter(), 0
    for p in range(PARTITIONS):
        _, messages = reader.read(OffsetSplit("s", "one", p, 0, size, 127, 0))
        count += len(messages)
    check_count("fetch", count, n)
    return _side(n, time.process_time() - cpu, time.perf_counter() - began)


def _binding(broker: Broker, n: int) -> dict[str, Any]:
    """librdkafka by its Python binding: the values of all messages, and nothing else."""
    settings = {"bootstrap.servers": broker.server, "group.id": "bench", "log_level": 0}
    cpu, began, count = time.process_time(), time.perf_counter(), 0
    consumer = Consumer({**settings, "fetch.message.max.bytes": 4 << 20})
    consumer.assign([TopicPartition("one", p, 0) for p in range(PARTITIONS)])
    while count < n:
        values = [message.value() for message in consumer.consume(10_000, 0.05)]
        text = b"\n".join(values)
        count += (len(text) + 1) // 127
    spent, took = time.process_time() - cpu, time.perf_counter() - began
    consumer.close()
    return _side(n, spent, took)


def _through(broker: Broker, n: int, out: str) -> dict[str, Any]:
    """From topic to topic, from the start of the engine until all is committed."""
    url = broker.topic(out)
    with tempfile.TemporaryDirectory(prefix="levada-kafka-") as folder:
        engine = Engine(spark=False, checkpoint=Path(folder) / "ck", keep_results=False)
        engine.stream("http://example.org/obs", broker.url("one"), format="nq", time="timestamp")
        engine.register(TENTH, name="q").to(url, format="csv")
        cpu, began = time.process_time(), time.perf_counter()
        engine.start(once=True)
        engine.await_end()
        engine.close()
        spent, took = time.process_time() - cpu, time.perf_counter() - began
    schema = "o:string;v:string"
    config = StreamConfig.from_options("s", url, format="csv", schema=schema, time="timestamp")
    _, end = broker.ends(out)
    _, messages = KafkaReader.from_config(config).read(OffsetSplit("s", out, 0, 0, end, 127, 0))
    check_count(out, len(messages), sum(k % 1000 < 100 for k in range(n)))
    return _side(n, spent, took)


def _side(n: int, cpu: float, wall: float) -> dict[str, Any]:
    return {
        "rows": n,
        "rows_per_s": round(n / wall),
        "rows_per_cpu_s": round(n / cpu),
        "cpu_s": round(cpu, 3),
        "wall_s": round(wall, 3),
    }
