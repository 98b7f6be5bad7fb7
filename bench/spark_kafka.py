"""The queries of ``kafka_latency`` as jobs of Spark Structured Streaming, from topic to topic:
``python -m bench.spark_kafka SERVER IN OUT QUERY MODE FOLDER``.

``micro_batches`` is Spark's default trigger, as fast as possible; ``real_time`` its real-time mode
(Spark 4.1 and later, update mode, state in RocksDB). Both write at least once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from levada.core.cache_folder import cache_folder

MODES = ("micro_batches", "real_time")
CORES = 4
"""Real-time mode wants a slot for every task of all stages at once."""
_GROUP, _OF_SCALA = "org.apache.spark", "0-10_2.13"
_JARS = (
    (_GROUP, f"spark-sql-kafka-{_OF_SCALA}", "4.2.0"),
    (_GROUP, f"spark-token-provider-kafka-{_OF_SCALA}", "4.0.0"),
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.13.1"),
)
_DEPENDENCY = """<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>
</dependency>"""
_SCHEMA = "k long, v long, t long, u long"


def jars() -> list[Path]:
    """The jars of Spark's connector for Kafka, fetched by Maven once. Raises ``OSError`` or
    ``CalledProcessError`` where Maven cannot fetch them.
    """
    folder = cache_folder() / "spark-kafka-4.2.0"
    if not folder.is_dir():
        part = folder.with_name(f"{folder.name}.{os.getpid()}")
        part.mkdir(parents=True)
        dependencies = "".join(_DEPENDENCY.format(*jar) for jar in _JARS)
        (part / "pom.xml").write_text(
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>levada</groupId><artifactId>connector</artifactId><version>1</version>"
            f"<packaging>pom</packaging><dependencies>{dependencies}</dependencies></project>"
        )
        command = ["mvn", "-q", "-B", "-ntp", "dependency:copy-dependencies"]
        try:
            subprocess.run([*command, f"-DoutputDirectory={part}"], cwd=part, check=True)
            part.rename(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return sorted(folder.glob("*.jar"))


def _session(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    state = "spark.sql.streaming.stateStore"
    rocks = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    builder: Any = SparkSession.builder
    settings = {
        "spark.jars": ",".join(map(str, jars())),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.local.dir": str(folder / "local"),
        f"{state}.providerClass": rocks,
        f"{state}.checkpointFormatVersion": "2",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.master(f"local[{CORES}]").getOrCreate()


def _rows(session: Any, records: Any, query: str, folder: Path) -> Any:
    """The rows of a query, as CSV without the report's time, in a column ``value``."""
    from pyspark.sql import functions as f

    row = f.from_json(f.col("value").cast("string"), _SCHEMA).alias("row")
    rows = records.select(row).select("row.*")
    match query:
        case "filter":
            found, columns = rows.where("v < 900"), ["k", "u"]
        case "aggregate":
            found = rows.groupBy("k").agg(f.count("*").alias("n"), f.max("u").alias("u"))
            columns = ["k", "n", "u"]
        case _:
            table = session.read.csv(str(folder / "T.csv"), header=True, inferSchema=True)
            found = rows.join(f.broadcast(table.select("k", "w")), "k")
            columns = ["k", "u", "w"]
    return found.select(f.concat_ws(",", f.lit("0"), *columns).alias("value"))


def main(server: str, source: str, target: str, query: str, mode: str, folder: str) -> None:
    """Runs a query until the process is ended."""
    session = _session(Path(folder))
    records = (
        session.readStream.format("kafka")
        .option("kafka.bootstrap.servers", server)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
    )
    writer = (
        _rows(session, records, query, Path(folder))
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", server)
        .option("topic", target)
        .option("checkpointLocation", str(Path(folder) / "ck"))
        .outputMode("update")
    )
    if mode == "real_time":
        writer = writer.trigger(realTime="5 minutes")
    writer.start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
