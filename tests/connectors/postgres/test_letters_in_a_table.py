"""``--letters-to``: late elements and dead letters in a table, each once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from levada.engine.engine import Engine
from levada.errors import SinkError, UsageError
from support.polling import PATIENCE, until
from support.postgres_server import Server

QUERY = "Rstream(Select k From S [Now])"
ROWS = "ts,k\n1000,1\n5000,x\n6000,3\n2000,4\n"


def test_letters_are_rows_with_their_reasons(server: Server, tmp_path: Path, password: str) -> None:
    (tmp_path / "s.csv").write_text(ROWS)
    for _ in range(2):  # the second run has nothing to add
        with Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=1) as engine:
            engine.stream("S", tmp_path / "s.csv", schema="k:integer")
            engine.register(QUERY, dialect="cql")
            engine.letters_to(server.url, table="letters1", password=password)
            engine.start(once=True)
            assert engine.await_end(PATIENCE)
    found = server.rows('SELECT kind, stream, "offset", ts, reason, text FROM letters1 ORDER BY 1')
    assert found == [
        ("dead-letter", "S", 12, None, "k is not an integer: x", "5000,x"),
        ("late", "S", 26, 2000,
         "Its time 1970-01-01T00:00:02Z is below the watermark 1970-01-01T00:00:06Z.", "2000,4"),
    ]  # fmt: skip


def test_letters_of_a_killed_engine_are_there_once(
    server: Server, tmp_path: Path, password: str
) -> None:
    (tmp_path / "q.cql").write_text(QUERY)
    lines = [f"{1000 + i},{'x' if i % 3 else i}" for i in range(3000)]
    stream = tmp_path / "s.csv"
    stream.write_text("ts,k\n" + "\n".join(lines[:1500]) + "\n")
    words = ["run", "q.cql", "--stream", "S=s.csv,schema=k:integer", "--checkpoint", "ck"]
    words += ["--epoch", "0", "--epoch-rows", "40", "--master", "none", "--no-progress"]
    words += ["--letters-to", f"{server.url},table=letters2,password={password}"]
    command = [sys.executable, "-m", "levada", *words, "--out", "out"]
    with (tmp_path / "log").open("ab") as log:
        first = subprocess.Popen(command, cwd=tmp_path, stderr=log)
        there = "SELECT to_regclass('letters2') IS NOT NULL"
        until(lambda: server.rows(there) == [(True,)], "the table")
        first.send_signal(signal.SIGKILL)
        first.wait()
        with stream.open("a") as file:
            file.write("\n".join(lines[1500:]) + "\n")
        subprocess.run([*command, "--once"], cwd=tmp_path, stderr=log, check=True, timeout=PATIENCE)
    found = server.rows('SELECT count(*), count(DISTINCT "offset") FROM letters2')
    assert found == [(2000, 2000)]


def test_letters_wait_for_a_server_that_is_away(
    server: Server, tmp_path: Path, password: str
) -> None:
    (tmp_path / "s.csv").write_text(ROWS)
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream("S", tmp_path / "s.csv", schema="k:integer")
        engine.register(QUERY, dialect="cql")
        engine.letters_to(server.url, table="letters3", password=password)
        server.stop()
        try:
            with pytest.warns(UserWarning, match="It is tried again"):
                engine.start(once=True, keep_open=True)
                assert engine.await_end(PATIENCE)
                until(lambda: engine.progress().epochs > 0, "an epoch")
        finally:
            server.start()
    assert len(server.rows("SELECT * FROM letters3")) == 1


def test_wrong_places_of_letters_are_refused(
    server: Server, tmp_path: Path, password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine(spark=False) as engine, pytest.raises(UsageError, match="Letters go on"):
        engine.letters_to(server.url, password=password)
    monkeypatch.setenv("WRONG", "canary")
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.register("SELECT ?x { BIND(1 AS ?x) }")
        engine.letters_to(server.url, password="env:WRONG")
        with pytest.raises(SinkError, match="authentication failed"):
            engine.start(once=True)


def test_letter_that_the_table_refuses_is_left_out_alone(
    server: Server, tmp_path: Path, password: str
) -> None:
    """A column is too narrow for two of the letters."""
    columns = 'report timestamptz, kind text, stream text, source text, "offset" bigint, ts bigint'
    server.run(f"CREATE TABLE letters5 ({columns}, reason text, text varchar(20))")
    (tmp_path / "s.csv").write_text(
        "ts,k\n" + "".join(f"{i},{'x' * (60 if i in (3, 7) else 5)}\n" for i in range(10))
    )
    with (
        pytest.warns(UserWarning, match="letter") as warned,
        Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=5) as engine,
    ):
        engine.stream("S", tmp_path / "s.csv", schema="k:integer")
        engine.register(QUERY, dialect="cql")
        engine.letters_to(server.url, table="letters5", password=password)
        engine.start(once=True)
        assert engine.await_end(PATIENCE)
    found = server.rows("SELECT text FROM letters5 ORDER BY 1")
    assert found == [(f"{i},xxxxx",) for i in range(10) if i not in (3, 7)]
    said = [str(each.message) for each in warned]
    assert [text for text in said if "varying(20). This letter is left out" in text]
    assert "2 letters were refused by the target of --letters-to." in said
