"""Reports in tables of a real PostgreSQL: each once, whatever happens to engine and server."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from levada.checkpoint.request_files import engine_runs
from levada.cli.main import main
from levada.connectors.serialization.decode_terms import plain_values
from levada.connectors.sinks.sink_url import Destination
from levada.connectors.sinks.transactional_sink import Position
from levada.engine.engine import Engine
from levada.engine.status.status import read_status
from levada.errors import CheckpointError, SinkError, TargetTakenError, UsageError
from support.polling import PATIENCE, kill_after, until, until_engine
from support.postgres_server import PASSWORD, Server

KILLS = int(os.environ.get("LEVADA_KILLS", "2"))
SUMS = """PREFIX : <http://e/> SELECT ?x (COUNT(*) AS ?n) (SUM(?v) AS ?sum)
FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S] WHERE { WINDOW :w { ?x :v ?v } } GROUP BY ?x"""
LATEST = "Select S.k, Count(*) As n, Sum(S.v) As total From S [Range 3 Seconds] Group By S.k"
CANARY = PASSWORD.encode()


def statement(k: int, time: int) -> str:
    typed = f'"{k}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return f"<http://e/{k % 7}> <http://e/v> {typed} {time} ."


def stream(path: Path, n: int, step: int = 50) -> Path:
    path.write_text("".join(f"{statement(k, k * step)}\n" for k in range(n)))
    return path


def expected(path: Path) -> list[tuple[Any, ...]]:
    """What the table is to have, by the readers of Python."""
    with Engine(spark=False) as engine:
        engine.stream("http://e/s", str(path))
        asked = engine.register(SUMS, name="q")
        engine.start(once=True)
        found = [(report.time, report.rows) for report in asked.results()]
    return sorted(
        (str(time), *values)
        for time, rows in found
        for values in zip(*(plain_values(column).to_list() for column in rows), strict=True)
    )


def in_table(server: Server, table: str) -> list[tuple[Any, ...]]:
    report = "(extract(epoch FROM report) * 1000)::bigint"
    found = server.rows(f'SELECT {report}, x, n, "sum" FROM {table}')
    return sorted(tuple(map(str, row)) for row in found)


def test_rows_are_there_once(server: Server, tmp_path: Path, password: str) -> None:
    path = stream(tmp_path / "s.nt", 400)
    for _ in range(2):  # the second run has nothing to add
        with Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=50) as engine:
            engine.stream("http://e/s", str(path))
            engine.register(SUMS, name="q").to(server.url, table="once", password=password)
            engine.start(once=True)
            assert engine.await_end(PATIENCE)
            assert engine.status().outputs[0].pending_reports == 0
    assert in_table(server, "once") == expected(path)
    assert len(in_table(server, "once")) > 50


def test_typed_tables_and_graphs(server: Server, tmp_path: Path, password: str) -> None:
    path = stream(tmp_path / "s.nt", 100)
    server.run(
        'CREATE TABLE typed (report bigint, x text, n integer, "sum" numeric, '
        "seen timestamptz DEFAULT now())"
    )
    graphs = SUMS.replace("SELECT ?x (COUNT(*) AS ?n) (SUM(?v) AS ?sum)", "CONSTRUCT { ?x :v ?v }")
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream("http://e/s", str(path))
        engine.register(SUMS, name="q").to(server.url, table="typed", password=password)
        engine.register(graphs.replace(" GROUP BY ?x", ""), name="g").to(
            server.url, password=password
        )
        engine.start(once=True)
        assert engine.await_end(PATIENCE)
    assert server.rows('SELECT sum("sum") FROM typed WHERE report = 2000') == [(780,)]
    assert ("http://e/0", "http://e/v", "0") in server.rows(
        "SELECT subject, predicate, object FROM g"
    )


def test_a_table_that_is_created_has_the_types_of_the_results(
    server: Server, tmp_path: Path, password: str
) -> None:
    (tmp_path / "s.csv").write_text(
        "ts,k,n,v,b\n1000,a,1,0.5,true\n2000,b,9,INF,false\n3000,b,2,,\n"
    )
    text = "Rstream(Select k, n, v, b, n As m From S [Now])"
    for _ in range(2):
        with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
            schema = "k:string;n:integer;v:double;b:boolean"
            engine.stream("S", str(tmp_path / "s.csv"), schema=schema)
            asked = engine.register(text, name="q", dialect="cql")
            asked.to(server.url, table="made", columns="m bigint", password=password)
            engine.start(once=True)
            assert engine.await_end(PATIENCE)
    types = (
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'made'"
    )
    assert dict(server.rows(types)) == {
        "report": "timestamp with time zone", "k": "text", "n": "numeric",
        "v": "double precision", "b": "boolean", "m": "bigint",
    }  # fmt: skip
    found = server.rows(
        "SELECT extract(epoch FROM report)::int, avg(n), max(v) FROM made GROUP BY 1"
    )
    assert sorted(found) == [(1, 1, 0.5), (2, 9, float("inf")), (3, 2, None)]


def test_a_value_that_a_column_does_not_take_ends_no_engine(
    server: Server, tmp_path: Path, password: str
) -> None:
    """Whoever feeds a query chooses its values: its output waits for another type."""
    server.run("CREATE TABLE narrow (report bigint, x text, v integer)")
    (path := tmp_path / "s.nt").write_text(
        '<http://e/a> <http://e/v> "1" 1000 .\n<http://e/b> <http://e/v> "one" 3000 .\n'
        '<http://e/c> <http://e/v> "2" 6000 .\n'
    )
    text = """PREFIX : <http://e/> SELECT ?x ?v FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT2S]
        WHERE { WINDOW :w { ?x :v ?v } }"""
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream("http://e/s", str(path))
        engine.register(text, name="q").to(server.url, table="narrow", password=password)
        engine.start()
        until(lambda: any("integer" in one.reason for one in engine.status().outputs))
        assert not engine.await_end(0)
        server.run("ALTER TABLE narrow ALTER v TYPE text")
        until(lambda: engine.await_end(0) or not engine.status().outputs[0].reason)
        until(lambda: len(server.rows("SELECT v FROM narrow")) == 2)
    assert sorted(server.rows("SELECT v FROM narrow")) == [("1",), ("one",)]


def test_outputs_that_make_their_tables_at_once(
    server: Server, tmp_path: Path, password: str
) -> None:
    path = stream(tmp_path / "s.nt", 100)
    server.run("DROP TABLE IF EXISTS levada_outputs")
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream("http://e/s", str(path))
        for i in range(8):
            query = engine.register(SUMS, name=f"at_once_{i}")
            query.to(server.url, table="at_once", password=password)
        engine.start(once=True)
        assert engine.await_end(PATIENCE)
    assert server.rows("SELECT count(*) % 8, count(*) > 0 FROM at_once") == [(0, True)]


COLUMNS = "k:string;v:integer;ts:integer"


def relation(path: Path, draw: random.Random, at: int, n: int) -> None:
    with path.open("a") as file:
        for i in range(at, at + n):
            row = {"k": f"k{draw.randrange(5)}", "v": draw.randrange(10), "ts": 500 * i}
            file.write(json.dumps(row) + "\n")


def holds(path: Path) -> list[tuple[Any, ...]]:
    """The rows that the relation has at the end, by its changes."""
    counts: Counter[tuple[str, ...]] = Counter()
    with Engine(spark=False) as engine:
        engine.stream("S", str(path), schema=COLUMNS)
        asked = engine.register(LATEST, name="q", dialect="cql")
        engine.start(once=True, keep_open=True)
        for report in asked.results():
            names = [name for name in report.rows.columns if name != "change"]
            values = (plain_values(report.rows[name]).to_list() for name in names)
            for row, sign in zip(zip(*values, strict=True), report.rows["change"], strict=True):
                counts[row] += sign
    return sorted(counts.elements())


def test_a_state_is_what_the_relation_holds(
    server: Server, tmp_path: Path, password: str, random_seed: int
) -> None:
    draw, path = random.Random(random_seed), tmp_path / "s.ndjson"
    for n in (30, 30, 0):
        relation(path, draw, 0 if n and not path.exists() else 30, n)
        with Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=7) as engine:
            engine.stream("S", str(path), schema=COLUMNS)
            asked = engine.register(LATEST, name="state", dialect="cql")
            asked.to(server.url, table="now", as_="state", key="k", password=password)
            engine.start(once=True, keep_open=bool(n))
            assert engine.await_end(PATIENCE)
        found = [tuple(map(str, row)) for row in server.rows("SELECT k, n, total FROM now")]
        assert sorted(found) == (holds(path) if n else [])  # at the end all have left
        assert found or not n
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream("S", str(path), schema=COLUMNS)
        asked = engine.register(LATEST, name="state", dialect="cql")
        with pytest.raises(UsageError, match="What the relation state holds is not known"):
            asked.to(server.url, table="later", as_="state", key="k", password=password)


def test_a_key_that_is_none_is_told(server: Server, tmp_path: Path, password: str) -> None:
    path = tmp_path / "s.ndjson"
    relation(path, random.Random(1), 0, 30)
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream("S", str(path), schema=COLUMNS)
        asked = engine.register(LATEST, name="state", dialect="cql")
        asked.to(server.url, table="nokey", as_="state", key="n", password=password)
        other = engine.register(LATEST, name="other", dialect="cql")
        other.to(server.url, table="key", as_="state", key="k", password=password)
        engine.start(once=True, keep_open=True)
        with pytest.warns(UserWarning, match=r"The query state is suspended.*no key n"):
            assert engine.await_end(PATIENCE)
    assert list(read_status(tmp_path / "ck").suspended_queries) == ["state"]
    assert server.rows("SELECT * FROM nokey") == []
    assert server.rows("SELECT * FROM key")


RUN = """
import sys
from pathlib import Path
from levada.engine.engine import Engine
root, path, url, table, text, once = sys.argv[1:]
engine = Engine(spark=False, checkpoint=Path(root), epoch_rows=60, partitions=2, keep="2000")
engine.stream("http://e/s", path)
engine.register(text, name="q").to(url, table=table, password="env:LEVADA_PG")
engine.start(once=once == "once")
engine.await_end()
engine.close()
"""


def start(
    root: Path, path: Path, server: Server, table: str, how: str = "once"
) -> subprocess.Popen[bytes]:
    """An engine that ends when it has read all; ``how`` "on": that does not end."""
    root.mkdir(exist_ok=True)
    given = [str(root / "ck"), str(path), server.url, table, SUMS, how]
    command = [sys.executable, "-c", RUN, *given]
    with (root / "said").open("ab") as said:
        return subprocess.Popen(command, stderr=said)


@pytest.mark.long
@pytest.mark.chaos
@pytest.mark.timeout(PATIENCE * (KILLS + 3))
def test_an_engine_that_is_killed_writes_each_row_once(
    server: Server, tmp_path: Path, random_seed: int
) -> None:
    draw = random.Random(random_seed)
    path, root, written = tmp_path / "s.nt", tmp_path / "killed", 0
    for _ in range(KILLS):
        written = _write(path, written, 1000)  # sixteen epochs or more
        kill_after(start(root, path, server, "killed", "on"), root / "ck", draw.randint(1, 15))
    _write(path, written, 1000)
    for each in (root, tmp_path / "whole"):
        engine = start(each, path, server, each.name)
        assert engine.wait(PATIENCE) == 0, (each / "said").read_text()[-3000:]
    assert in_table(server, "killed") == in_table(server, "whole") == expected(path)


@pytest.mark.long
@pytest.mark.timeout(PATIENCE * 3)
def test_what_levada_add_gave_an_output_goes_on_after_a_kill(
    tmp_path: Path, password: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed when rows are there and the server is away: nothing is lost, and no row is there
    twice, though no run names the output again.
    """
    path, root, query = tmp_path / "s.nt", tmp_path / "ck", tmp_path / "q.rq"
    path.write_text("")
    query.write_text(SUMS)
    (tmp_path / "always.rq").write_text(SUMS)
    own = Server()
    command = [
        sys.executable, "-m", "levada", "run", str(tmp_path / "always.rq"), "--stream",
        f"http://e/s={path}", "--checkpoint", str(root), "--master", "none", "--epoch", "20ms",
    ]  # fmt: skip
    try:
        first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        until(lambda: engine_runs(root), process=first)
        for wrong in (f"{PASSWORD}", f"{PASSWORD},table=x"):
            assert main(["add", str(root), str(query), "--to", f"{own.url},password={wrong}"]) == 2
        to = f"{own.url},table=added,password={password}"
        assert main(["add", str(root), str(query), "--to", to]) == 0
        written = _write(path, 0, 400)
        until(lambda: in_table(own, "added"), process=first)
        own.stop(signal.SIGQUIT)
        _write(path, written, 400)
        until(lambda: any(o.reason for o in read_status(root).outputs), process=first)
        first.kill()
        assert first.wait(PATIENCE) == -signal.SIGKILL
        own.start()
        assert subprocess.run([*command, "--close"], stdout=subprocess.DEVNULL).returncode == 0
        assert in_table(own, "added") == expected(path)
    finally:
        own.close()
    said = capsys.readouterr()
    assert PASSWORD not in said.out + said.err
    files = [file for file in root.rglob("*") if file.is_file()]
    assert files and not [file for file in files if CANARY in file.read_bytes()]
    assert b"env:" in (root / "requested.json").read_bytes()


def test_a_server_that_goes_delays_itself_only_until_keep(
    tmp_path: Path, password: str, capsys: pytest.CaptureFixture[str]
) -> None:
    own = Server()
    try:
        _goes_and_comes(own, tmp_path, password, capsys)
    finally:
        own.close()


def _goes_and_comes(
    own: Server, tmp_path: Path, password: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root, path = tmp_path / "ck", tmp_path / "s.nt"
    path.write_text("")
    with Engine(spark=False, checkpoint=root, keep="20", epoch="5ms") as engine:
        engine.stream("http://e/s", str(path))
        asked = engine.register(SUMS, name="q").to(own.url, table="away", password=password)
        engine.start()
        written = _write(path, 0, 200)
        until(
            lambda: (
                len(in_table(own, "away")) > 10 and not engine.status().outputs[0].pending_reports
            )
        )
        before = len(asked.to_polars())
        own.stop(signal.SIGQUIT)
        written = _write(path, written, 200)
        until(lambda: engine.status().outputs[0].reason)
        until(lambda: len(asked.to_polars()) > before)  # nobody else waits
        while not engine.status().outputs[0].blocks_intake:
            written = _write(path, written, 40)
            time.sleep(0.01)
        until(lambda: "cannot be written to postgresql://127" in engine.progress().waiting_for)
        held = engine.progress().elements
        _write(path, written, 400)
        assert main(["status", str(root)]) == 0
        said = capsys.readouterr().out
        assert "The intake waits until" in said and "cannot be written" in said
        assert engine.progress().elements - held < 400
        own.start()
        until_engine(engine, lambda: engine.progress().elements == written + 400)
        until_engine(engine, lambda: not engine.status().outputs[0].pending_reports)
        until_engine(engine, lambda: not engine.status().outputs[0].blocks_intake)
        until(lambda: not read_status(root).outputs[0].blocks_intake)  # as soon as that is written
    with Engine(spark=False) as alone:  # the first one keeps twenty reports, and may by now
        alone.stream("http://e/s", str(path))
        asked = alone.register(SUMS, name="q")
        alone.start(once=True, keep_open=True)
        alone.await_end()
        whole = len(asked.to_polars())
    assert len(in_table(own, "away")) == len(set(in_table(own, "away"))) == whole


def _write(path: Path, at: int, n: int) -> int:
    with path.open("a") as file:
        file.writelines(f"{statement(k, k * 50)}\n" for k in range(at, at + n))
    return at + n


@pytest.mark.long
def test_a_run_that_waits_for_a_server_ends_by_a_signal(
    tmp_path: Path, password: str, server: Server
) -> None:
    path, query = stream(tmp_path / "s.nt", 200), tmp_path / "q.rq"
    query.write_text(SUMS)
    command = [
        sys.executable, "-m", "levada", "run", str(query), "--stream", f"http://e/s={path}",
        "--close", "--master", "none", "--checkpoint", str(tmp_path / "ck"), "--to",
    ]  # fmt: skip
    for target in (f"{server.url},table=late,password={password}", "kafka://127.0.0.1:9/t"):
        server.stop()
        try:
            run = subprocess.Popen([*command, f"q={target}"], stderr=subprocess.PIPE)
            scheme = target.split(":", 1)[0]
            until(partial(_is_away, tmp_path / "ck", scheme))
            assert run.poll() is None
            run.send_signal(signal.SIGINT)
            said = run.communicate(timeout=PATIENCE)[1]
            assert run.returncode == 0, said
        finally:
            server.start()
    command += [f"q={server.url},table=late,password={password}"]
    assert subprocess.run(command, capture_output=True, timeout=PATIENCE).returncode == 0
    assert in_table(server, "late") == expected(path)


def _is_away(root: Path, scheme: str) -> bool:
    try:
        return f" {scheme}:" in read_status(root).outputs[-1].reason
    except (CheckpointError, IndexError):
        return False


def test_who_comes_later_fences(server: Server, password: str) -> None:
    there = Destination(server.url, {"table": "fenced", "password": password})
    first, second = there.target("q", "id"), there.target("q", "id")
    assert first.open(None) is None
    assert second.open(Position()) is not None
    piece: Any = None
    with Engine(spark=False) as engine:
        engine.register("SELECT ?x WHERE { BIND(1 AS ?x) }", name="q")
        engine.start(once=True)
        engine.await_end(PATIENCE)
        piece = _piece(engine)
    with pytest.raises(SinkError, match="Another engine writes"):
        first.write(piece)
    second.write(piece)
    assert server.rows("SELECT report, x FROM fenced") == [(None, 1)]
    assert second.open(Position()) == Position(1, 1, 1)
    first.close()
    second.close()


def test_a_deleted_position_is_missed(server: Server, password: str) -> None:
    there = Destination(server.url, {"table": "missed", "password": password})
    target = there.target("q", "id")
    assert target.open(None) is None
    with Engine(spark=False) as engine:
        engine.register("SELECT ?x WHERE { BIND(1 AS ?x) }", name="q")
        engine.start(once=True)
        engine.await_end(PATIENCE)
        piece: Any = _piece(engine)
    target.write(piece)
    server.run("DELETE FROM levada_outputs")
    lost = "has lost how far .* is: the row .* of levada_outputs is gone"
    with pytest.raises(SinkError, match=lost) as told:
        target.write(piece)
    assert not isinstance(told.value, TargetTakenError)
    with pytest.raises(SinkError, match=lost):
        target.open(piece.position)
    assert server.rows("SELECT count(*) FROM missed") == [(1,)]
    target.close()


def _piece(engine: Engine) -> Any:
    from levada.connectors.sinks.transactional_sink import Piece

    publication = engine._publication
    query, batch = next(iter(publication.read(publication.kept[0])))
    return Piece(query, batch, Position(1, 1, 1))


def test_reports_that_are_gone_are_told(server: Server, tmp_path: Path, password: str) -> None:
    path = stream(tmp_path / "s.nt", 100)

    def run(output: bool, **options: str) -> None:
        with Engine(spark=False, checkpoint=tmp_path / "ck", keep="3") as engine:
            engine.stream("http://e/s", str(path))
            asked = engine.register(SUMS, name="q")
            if output:
                asked.to(server.url, table="gaps", password=password, **options)
            engine.start(once=True, keep_open=True)
            engine.await_end(PATIENCE)

    def newest() -> int:
        return max(int(row[0]) for row in in_table(server, "gaps"))

    run(True)
    assert newest() == 4000
    before = in_table(server, "gaps")
    for at in (100, 300, 500):
        _write(path, at, 200)
        run(False)
    _write(path, 700, 100)
    with pytest.raises(SinkError, match="not kept any more"):
        run(True)
    assert in_table(server, "gaps") == before
    run(True, lost="skip")
    assert newest() > 4000


def test_a_password_is_nowhere(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    path, query = stream(tmp_path / "s.nt", 100), tmp_path / "q.rq"
    query.write_text(SUMS)
    root = tmp_path / "ck"
    to = f"q={server.url},table=canary,password=env:LEVADA_PG"
    command = ["run", str(query), "--stream", f"http://e/s={path}", "--close", "--master", "none"]
    assert main([*command, "--checkpoint", str(root), "--to", to]) == 0
    assert in_table(server, "canary") == expected(path)
    assert main(["status", str(root), "--json"]) == 0
    out, err = capfd.readouterr()
    assert '"pending_reports": 0' in out and f"127.0.0.1:{server.port}/postgres#canary" in out
    assert "results" not in out.splitlines()[0]  # nothing else on standard output
    assert PASSWORD not in out + err
    files = [file for file in root.rglob("*") if file.is_file()]
    assert len(files) > 5
    assert not [file for file in files if CANARY in file.read_bytes()]
    monkeypatch.setenv("LEVADA_PG", "wrong-7")
    _write(path, 100, 100)
    with pytest.raises(UsageError, match="does not stand in a URL"):
        Destination(server.url.replace("@", f":{PASSWORD}@")).target("q", "")
    with Engine(spark=False, checkpoint=tmp_path / "other") as engine:
        engine.stream("http://e/s", str(path))
        engine.register(SUMS, name="q").to(server.url, password="env:LEVADA_PG")
        engine.start(once=True)
        with pytest.raises(SinkError, match="authentication failed") as caught:
            engine.await_end(PATIENCE)
        assert "wrong-7" not in str(caught.value)
    assert main([*command, "--to", to]) == 2
    said = capfd.readouterr().err
    assert "--checkpoint" in said and PASSWORD not in said


def test_mistakes_are_sentences(tmp_path: Path) -> None:
    url = "postgresql://u@127.0.0.1:1/db"
    for to, options, sentence in (
        ("ftp://x/y", {}, "no such target"),
        ("postgresql://127.0.0.1", {}, "names no database"),
        (url, {"tabel": "x"}, "no option tabel.*table"),
        (url, {"as": "stat"}, "changes or state"),
        (url, {"as": "state"}, "needs a key"),
        (url, {"key": "x"}, "for as=state"),
        (url, {"as": "state", "key": "x"}, "no relation"),
        (url, {"as": "state", "key": "x", "lost": "skip"}, "may be left out"),
        (url, {"lost": "skp"}, "stop or skip"),
        (url, {"password": "hunter2"}, "does not stand here"),
        ("kafka://127.0.0.1:1/t", {"format": "parquet"}, "not written as parquet"),
        ("kafka://127.0.0.1:1/t", {"format": "nq"}, "nq cannot hold"),
        ("kafka://u:hunter2@127.0.0.1:1/t", {}, "no topic of Kafka"),
        (f"{url}?sslpassword=hunter2", {}, "does not stand in a URL"),
    ):
        with (
            Engine(spark=False, checkpoint=tmp_path / "ck") as engine,
            pytest.raises(UsageError, match=f"(?s){sentence}") as caught,
        ):
            engine.stream("http://e/s", str(tmp_path / "none.nt"))
            engine.register(SUMS, name="q").to(to, **options)
        assert "hunter2" not in str(caught.value), to
    with Engine(spark=False) as engine, pytest.raises(UsageError, match="does not survive"):
        engine.register("SELECT ?x WHERE { BIND(1 AS ?x) }", name="q").to(url)
