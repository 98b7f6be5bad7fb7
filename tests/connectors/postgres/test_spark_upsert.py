"""Spark's foreachBatch into PostgreSQL is at least once: the key of a row makes it once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

from levada import spark as levada_spark
from levada.runtime.spark.spark_session import start_session, stop_session
from support.kept_checkpoint import run_kept
from support.postgres_server import PASSWORD, Server

MAKE = """CREATE TABLE warm (query text, report timestamptz, sign int, number bigint, room text,
t bigint, PRIMARY KEY (query, report, sign, number))"""
UPSERT = "INSERT INTO warm VALUES ('warm', %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"


@pytest.mark.long
@pytest.mark.spark
def test_a_batch_that_spark_repeats_is_there_once(server: Server, tmp_path: Path) -> None:
    checkpoint = run_kept(tmp_path)
    session = start_session("local[2]", scratch=tmp_path / "spark")
    levada_spark.register(session)
    written: list[int] = []

    def upsert(rows: Any, number: int) -> None:
        columns = [column.to_pylist() for column in rows.toArrow().columns]
        with psycopg.connect(server.url, password=PASSWORD) as connection:
            connection.cursor().executemany(UPSERT, list(zip(*columns, strict=True)))
        written.append(len(columns[0]))
        if len(written) == 1:
            raise OSError("the driver dies behind the commit")

    def run() -> None:
        reader = session.readStream.format("levada").option("checkpoint", str(checkpoint))
        rows = reader.option("query", "warm").option("columns", "room, t bigint").load()
        writer = rows.writeStream.foreachBatch(upsert).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "state")).start()
        query.awaitTermination()

    try:
        _make(server)
        with pytest.raises(Exception, match="dies behind the commit"):
            run()
        run()
    finally:
        stop_session(session)
    assert written == [200, 200]
    found = server.rows("SELECT count(*), count(DISTINCT (report, number)), sum(t) FROM warm")
    assert found == [(200, 200, sum(i % 7 for i in range(200)))]


def _make(server: Server) -> None:
    with psycopg.connect(server.url, password=PASSWORD) as connection:
        connection.execute(MAKE)
