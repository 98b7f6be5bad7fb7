"""Spark reads the data source ``levada``: in batches, in SQL, as a stream into Spark's own sinks
while driver and engine are killed, and on executors.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from levada import spark as levada_spark
from levada.cli.main import main
from levada.engine.status.kept_reports import KeptReports
from support.kept_checkpoint import QUERY, run_kept, write_stream
from support.polling import PATIENCE, until

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
SESSION = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
import levada
builder = SparkSession.builder.master(sys.argv[1])
for name, value in {
    "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress":
    "127.0.0.1", "spark.ui.showConsoleProgress": "false", "spark.sql.session.timeZone": "UTC",
    "spark.executor.memory": "600m", "spark.driver.memory": "600m",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
}.items():
    builder = builder.config(name, value)
session = builder.getOrCreate()
levada.spark.register(session)
"""
STREAM = (
    SESSION
    + """
folder, once = sys.argv[2], sys.argv[3] == "once"
reader = session.readStream.format("levada").option("checkpoint", f"{folder}/ck")
rows = reader.option("query", "warm").option("columns", "room, t bigint").load()
writer = rows.writeStream.format("parquet").option("checkpointLocation", f"{folder}/spark")
trigger = {"availableNow": True} if once else {"processingTime": "200 milliseconds"}
writer.option("path", f"{folder}/table").trigger(**trigger).start().awaitTermination()
"""
)
BATCH = (
    SESSION
    + """
from pyspark.sql.functions import udf
reader = session.read.format("levada").option("checkpoint", sys.argv[2])
rows = reader.option("query", "warm").load()
place = udf(lambda _: os.environ.get("SPARK_EXECUTOR_DIRS", "") + str(os.getppid()))
found = rows.select("report", "number", place("number").alias("place")).collect()
print(len(found), len({r[:2] for r in found}), len({r[2] for r in found}), flush=True)
"""
)


def read(session: Any, checkpoint: Path, **options: str) -> Any:
    reader = session.read.format("levada").option("checkpoint", str(checkpoint))
    return reader.option("query", "warm").options(**options).load()


@pytest.mark.long
@pytest.mark.spark
def test_a_batch_in_dataframes_and_in_sql(spark: Any, tmp_path: Path) -> None:
    checkpoint = run_kept(tmp_path)
    levada_spark.register(spark)
    frame = read(spark, checkpoint, datatypes="true")
    assert frame.count() == 200 and frame.rdd.getNumPartitions() > 1
    assert dict(frame.dtypes)["t"] == "bigint"
    low = "report >= timestamp'1970-01-01T00:00:04Z'"
    counts, partitions = [], []
    for enabled in ("false", "true"):
        spark.conf.set(PUSHDOWN, enabled)
        narrow = read(spark, checkpoint).where(
            f"{low} and report < timestamp'1970-01-01T00:00:08Z' and t < 3"
        )
        counts.append(narrow.count())
        partitions.append(narrow.rdd.getNumPartitions())
    spark.conf.set(PUSHDOWN, "false")
    assert counts[0] == counts[1] > 0
    assert partitions[1] < partitions[0], "fewer epochs are read"
    options = f"OPTIONS (checkpoint '{checkpoint}', query 'warm')"
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW warm USING levada {options}")
    assert spark.sql("SELECT count(*) FROM warm WHERE room IS NOT NULL").collect()[0][0] == 200
    with pytest.raises(Exception, match="CREATE TEMPORARY VIEW"):
        spark.sql(f"CREATE TABLE kept USING levada {options}")


@pytest.mark.long
@pytest.mark.spark
def test_a_wrong_name_is_a_sentence_within_sparks_error(spark: Any, tmp_path: Path) -> None:
    checkpoint = run_kept(tmp_path, rows=60)
    levada_spark.register(spark)
    with pytest.raises(Exception, match=r"has no variable rom\. Did you mean room\?"):
        read(spark, checkpoint, columns="rom")
    rows = read(spark, checkpoint, columns="room bigint")
    with pytest.raises(Exception, match="columns='room string' represents all terms"):
        rows.collect()


def start(folder: Path, text: str, *arguments: str) -> subprocess.Popen[bytes]:
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", text, *arguments],
            cwd=folder, stdout=log, stderr=log, process_group=0,
        )  # fmt: skip


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kills a driver with its JVM and workers, without a chance to clean up."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(PATIENCE)


@pytest.mark.long
@pytest.mark.chaos
def test_sparks_parquet_sink_has_each_row_once_while_driver_and_engine_are_killed(
    tmp_path: Path,
) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "warm.rq").write_text(QUERY)
    command = [
        "run", "warm.rq", "--stream", "s=s", "--master", "none", "--checkpoint", "ck", "--keep",
        "1GB", "--epoch", "0", "--out", "out",
    ]  # fmt: skip
    engine_text = f"import sys; from levada.cli.main import main; sys.exit(main({command!r}))"
    engine = start(tmp_path, engine_text)
    processes = [engine]
    batches = tmp_path / "spark" / "commits"
    starts = itertools.count(60, 60)

    def feed() -> None:
        """Adds a file of readings, and leaves time for a batch."""
        first = next(starts)
        write_stream(tmp_path, first, first + 60)
        time.sleep(0.3)

    def has_batches(least: int) -> bool:
        feed()
        return len(list(batches.glob("[0-9]*"))) > least

    try:
        write_stream(tmp_path, 0, 60)
        until(lambda: (tmp_path / "ck" / "published.log").exists())
        for round_ in range(1, 3):
            driver = start(tmp_path, STREAM, "local[2]", str(tmp_path), "on")
            processes.append(driver)
            until(partial(has_batches, 2 * round_))
            kill(driver)
            kill(engine)
            engine = start(tmp_path, engine_text)
            processes.append(engine)
        feed()
        newest = (next(starts) - 1) * 100 // 2000 * 2000
        until(lambda: KeptReports(tmp_path / "ck", "warm").last() >= newest)
        last = start(tmp_path, STREAM, "local[2]", str(tmp_path), "once")
        assert last.wait(PATIENCE) == 0, (tmp_path / "log").read_text()[-3000:]
    finally:
        for process in processes:
            if process.poll() is None:
                kill(process)
    out = tmp_path / "all.parquet"
    assert main(["results", str(tmp_path / "ck"), "warm", "--out", str(out)]) == 0
    expected = pq.read_table(out).to_pandas()
    names = ["report", "number", "room", "t"]
    # Spark's own log says which files are part of the table
    check = SESSION + "print(session.read.parquet(sys.argv[2]).toPandas().to_json())"
    done = subprocess.run(
        [sys.executable, "-c", check, "local[1]", str(tmp_path / "table")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    import pandas as pd

    found = pd.read_json(done.stdout.splitlines()[-1])
    assert len(found) == len(expected)
    assert not found.duplicated(["report", "number"]).any()
    assert found["t"].sum() == expected["t"].sum() and set(names) <= set(found.columns)


@pytest.mark.long
def test_executors_of_a_local_cluster_read_partitions(tmp_path: Path) -> None:
    checkpoint = run_kept(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", BATCH, "local-cluster[2,1,1024]", str(checkpoint)],
        cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE * 2,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    rows, keys, places = map(int, done.stdout.split())
    assert rows == keys == 200
    assert places > 1, "one executor has read all"
