"""Baselines on Spark's own Structured Streaming, over the same files as Levada, set up as well as
we can for their work.

- one file of each directory a micro-batch (``maxFilesPerTrigger``), one batch after the other;
- append mode into the ``noop`` sink, which counts rows and keeps none: cheaper than any real sink;
- as many shuffle partitions as cores (the default of 200 costs ten times more), checkpoint files
  without forked processes, both compilers of the JVM, and what cost W1 the least CPU of what we
  tried: G1 (43,600 events per CPU-second; parallel collector 39,600, serial 31,500, first compiler
  only 30,400) and the default state store (RocksDB 11,500).

What is measured is taken as on Levada's side (``bench.meter``): after the batches of warm-up, until
the side is steady. That takes its JVM longer: at 1,000,000 events a batch W2 does 220,000 a
CPU-second in the first of its rounds, and 370,000 over four.
"""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQueryListener

from bench.apart import SideError
from bench.meter import Meter
from bench.steady import Supply
from levada.runtime.spark.spark_settings import find_java

FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
POLL = 0.1  # s; between looks whether the query is still alive


def spark_session(options: str = "-XX:+UseG1GC", **settings: str) -> SparkSession:
    """A session on all cores of this machine; ``options`` are the JVM's, ``settings`` by name with
    ``_`` for the dot.
    """
    cores = os.cpu_count() or 1
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "JAVA_HOME": str(find_java(os.environ).path)}
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    builder = SparkSession.builder.master(f"local[{cores}]").appName("bench")
    fixed = {
        "spark.driver.memory": "4g",
        "spark.driver.extraJavaOptions": options,
        "spark.log.level": "ERROR",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": tempfile.mkdtemp(prefix="levada-bench-spark-"),
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.checkpointFileManagerClass": FILES,
        "spark.sql.streaming.minBatchesToRetain": "3",
        "spark.sql.streaming.numRecentProgressUpdates": "100000",
    }
    for name, value in (fixed | {k.replace("_", "."): v for k, v in settings.items()}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def reading(session: SparkSession, folder: Path, schema: str) -> DataFrame:
    """A directory of Parquet files as a stream, a file a batch, in the order of file times."""
    return session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


class _Told(StreamingQueryListener):
    """Tells a meter of each batch, and keeps what went wrong with that."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._rows = 0
        self.failure: BaseException | None = None

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """A batch is over."""
        try:
            self._rows += int(event.progress.numInputRows)
            self._meter.see(self._rows)
        except BaseException as error:
            self.failure = error

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Nothing to do."""


def measured(session: SparkSession, result: DataFrame, supply: Supply) -> dict[str, Any]:
    """Runs a streaming query over what it is supplied with: the side of the rounds; ``count`` are
    the results of all.
    """
    meter = Meter(supply.warm, supply)
    told = _Told(meter)
    session.streams.addListener(told)
    with tempfile.TemporaryDirectory(prefix="levada-bench-checkpoint-") as checkpoint:
        query = (
            result.writeStream.format("noop")
            .outputMode("append")
            .option("checkpointLocation", checkpoint)
            .start()
        )
        while not meter.over.wait(POLL):
            if told.failure or not query.isActive:
                raise (
                    told.failure
                    or query.exception()
                    or SideError("Spark's query ended before its streams.")
                )
        query.processAllAvailable()
        count = sum(
            max(int(progress["sink"]["numOutputRows"]), 0) for progress in query.recentProgress
        )
        query.stop()
    side = meter.side(count, epoch_rows=supply.epoch)
    session.stop()
    return side
