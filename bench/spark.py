"""Baselines on Spark's own Structured Streaming, over the same files as Levada, set up as well as
we can for their work.

- one file of each directory a micro-batch (``maxFilesPerTrigger``), all that is there and no more
  (``availableNow``);
- append mode into the ``noop`` sink, which counts rows and keeps none: cheaper than any real sink;
- as many shuffle partitions as cores (the default of 200 costs ten times more), checkpoint files
  without forked processes, both compilers of the JVM, and what cost W1 the least CPU of what we
  tried: G1 (43,600 events per CPU-second; parallel collector 39,600, serial 31,500, first compiler
  only 30,400) and the default state store (RocksDB 11,500).

The measurement begins, as Levada's does, when the batches of warm-up are over; the session's start
does not count.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.measure import Cpu, Tree, peak_memory
from bench.meter import side
from levada.runtime.spark.java import find_java

FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
POLL = 0.1  # s; until the warm-up is over


def spark_session(options: str = "-XX:+UseG1GC", **settings: str) -> SparkSession:
    """A session on all cores of this machine; ``options`` are the JVM's, ``settings`` by name with
    ``_`` for the dot.
    """
    cores = os.cpu_count() or 1
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "JAVA_HOME": str(find_java(os.environ).path)}
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    builder = SparkSession.builder.master(f"local[{cores}]").appName("bench")
    fixed = {
        "spark.driver.memory": "4g", "spark.driver.extraJavaOptions": options, "spark.log.level": "ERROR",
        "spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": tempfile.mkdtemp(prefix="levada-bench-spark-"),
        "spark.sql.shuffle.partitions": str(cores), "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.checkpointFileManagerClass": FILES, "spark.sql.streaming.minBatchesToRetain": "3",
        "spark.sql.streaming.numRecentProgressUpdates": "100000",
    }  # fmt: skip
    for name, value in (fixed | {k.replace("_", "."): v for k, v in settings.items()}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def reading(session: SparkSession, folder: Path, schema: str) -> DataFrame:
    """A directory of Parquet files as a stream, a file a batch, in the order of their file
    times.
    """
    return session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def measured(session: SparkSession, result: DataFrame, warm: int) -> dict[str, Any]:
    """Runs a streaming query over what is there; a side whose rows and time begin behind ``warm``
    input rows.
    """
    tree = Tree()
    with tempfile.TemporaryDirectory(prefix="levada-bench-checkpoint-") as checkpoint:
        query = (
            result.writeStream.format("noop").outputMode("append").option("checkpointLocation", checkpoint)
            .trigger(availableNow=True).start()
        )  # fmt: skip
        before, began = _after_warm_up(query, warm, tree)
        query.awaitTermination()
        wall, cpu = time.perf_counter() - began, tree.cpu() - before
        memory = peak_memory()
        batches = [_facts(progress) for progress in query.recentProgress]
    session.stop()
    return _side(batches, warm, wall, cpu, memory)


def _after_warm_up(query: Any, warm: int, tree: Tree) -> tuple[Cpu, float]:
    """Waits until the batches of warm-up are over; CPU and wall clock then."""
    while query.isActive and sum(_facts(p)[0] for p in query.recentProgress) < warm:
        time.sleep(POLL)
    return tree.cpu(), time.perf_counter()


def _facts(progress: Any) -> tuple[int, int, float]:
    """A batch's input rows, output rows, and seconds."""
    rows, results = int(progress["numInputRows"]), max(int(progress["sink"]["numOutputRows"]), 0)
    return rows, results, progress["durationMs"]["triggerExecution"] / 1000


def _side(
    batches: list[tuple[int, int, float]], warm: int, wall: float, cpu: Cpu, memory: int
) -> dict[str, Any]:
    seen, counted = 0, []
    for rows, _, seconds in batches:
        if seen >= warm:
            counted.append((rows, seconds))
        seen += rows
    count = sum(results for _, results, _ in batches)
    return side(count, sum(r for r, _ in counted), wall, cpu, [s for _, s in counted], memory)
