"""Static tables of PostgreSQL: types, changes, and a server that is away."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from levada.engine.engine import Engine
from levada.errors import SourceError
from support.polling import until_engine
from support.postgres_server import PASSWORD, Server

MAKE = """DROP TABLE IF EXISTS dims; CREATE TABLE dims (k int, x numeric(10, 2), f float8,
ok boolean, "odd name" text, at timestamptz);
INSERT INTO dims VALUES (1, 2.50, 'Infinity', true, 'a "b", c', '2026-01-02 03:04:05+02'),
(2, null, null, false, '', null)"""


def run(server: Server, text: str) -> None:
    with psycopg.connect(server.url, password=PASSWORD) as connection:
        connection.execute(text)


def test_a_table_has_the_types_of_the_database(server: Server, password: str) -> None:
    run(server, MAKE)
    with Engine(spark=False) as engine:
        engine.table("D", f"{server.url}#public.dims", password=password)
        query = engine.register("Select * From D Order By k", dialect="cql")
        engine.start(once=True)
        engine.await_end()
        (report,) = query.results()
        assert report.to_dicts() == [
            {"k": 1, "x": 2.5, "f": float("inf"), "ok": True, "odd name": 'a "b", c',
             "at": "2026-01-02 01:04:05+00"},
            {"k": 2, "x": None, "f": None, "ok": False, "odd name": "", "at": None},
        ]  # fmt: skip


def test_a_change_is_read_and_a_server_that_is_away_holds_nothing_back(
    server: Server, password: str, tmp_path: Path
) -> None:
    run(server, MAKE)
    stream = tmp_path / "s.csv"
    stream.write_text("ts,k\n1000,1\n")
    with Engine(spark=False, checkpoint=tmp_path / "state") as engine:
        engine.stream("S", stream, schema="k:integer")
        engine.table("dims", server.url, password=password, every="100ms")
        text = "Rstream(Select S.k, x From S [Now], dims Where S.k = dims.k)"
        query = engine.register(text, dialect="cql")
        engine.start()
        rows = query.results()
        until_engine(engine, lambda: "S" in engine._records())
        run(server, "UPDATE dims SET x = 9 WHERE k = 1")
        read = engine.status().tables[0].copy
        until_engine(engine, lambda: engine.status().tables[0].copy != read)
        epoch = engine.progress().epochs
        until_engine(engine, lambda: engine.progress().epochs > epoch)
        server.stop()
        try:
            until_engine(engine, lambda: bool(engine.status().tables[0].failure))
            with stream.open("a") as file:
                file.write("2000,1\n3000,1\n")
            assert [next(rows).to_dicts() for _ in range(2)] == [
                [{"k": 1, "x": 2.5}], [{"k": 1, "x": 9.0}],
            ]  # fmt: skip
        finally:
            server.start()
        until_engine(engine, lambda: not engine.status().tables[0].failure)


@pytest.mark.parametrize(
    ("place", "message"),
    [("#nosuch", "has no such table"), ("#pg_catalog.nosuch", "has no such table")],
)
def test_a_missing_table_is_refused(
    server: Server, password: str, place: str, message: str
) -> None:
    with Engine(spark=False) as engine, pytest.raises(SourceError, match=message):
        engine.table("D", server.url + place, password=password)


def test_a_wrong_password_is_refused_without_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WRONG", "canary-wrong")
    with Engine(spark=False) as engine, pytest.raises(SourceError) as error:
        engine.table("D", server.url, password="env:WRONG")
    assert "canary" not in str(error.value) and "authentication failed" in str(error.value)
