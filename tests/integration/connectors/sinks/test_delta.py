"""Reports in Delta tables, read by deltalake and DuckDB: each once, whatever is killed."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from levada import Engine
from levada.cli.main import main
from levada.connectors.serialization.decode_terms import plain_values
from levada.connectors.sinks.sink_url import Destination
from levada.connectors.sinks.transactional_sink import Piece, Position
from levada.engine.status.status import read_status
from levada.errors import SinkError, TargetAwayError, TargetTakenError, UsageError
from support.kept_checkpoint import INTEGER, QUERY, run_kept, write_stream
from support.polling import PATIENCE, kill_after, until

KILLS = int(os.environ.get("LEVADA_KILLS", "4"))
LATEST = """Select k, Count(*) As n, Sum(v) As total From S [Range 10 Seconds] Group By k"""
COLUMNS = "k:string;v:integer"


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a table, as DuckDB reads them."""
    dataset = DeltaTable(path).to_pyarrow_dataset()
    assert duckdb.sql("select count(*) from dataset").fetchall() == [(dataset.count_rows(),)]
    found: list[dict[str, Any]] = dataset.to_table().to_pylist()
    return found


def kept(checkpoint: Path, folder: Path) -> list[dict[str, Any]]:
    """The rows of ``levada results``."""
    path = folder / "kept.parquet"
    assert main(["results", str(checkpoint), "warm", "--out", str(path)]) == 0
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found


def in_order(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: (row["report"], row["number"]))


@pytest.mark.parametrize(("every", "commits"), [("", 5), (",every=1h", 1)])
def test_a_table_has_the_kept_rows_in_a_commit_an_epoch_or_an_interval(
    tmp_path: Path, every: str, commits: int
) -> None:
    table = tmp_path / "table"
    checkpoint = run_kept(tmp_path, "--to", f"warm=delta://{table}{every}")
    assert in_order(rows(table)) == kept(checkpoint, tmp_path)
    assert DeltaTable(table).version() == commits  # 0 made it


def test_a_later_run_continues_and_a_restored_checkpoint_repeats_nothing(tmp_path: Path) -> None:
    to = ["--to", f"warm=delta://{tmp_path / 'table'},columns=room;t bigint", "--keep-open"]
    run_kept(tmp_path, *to, rows=80)
    copy = tmp_path / "copy"
    subprocess.run(["cp", "-r", str(tmp_path / "ck"), str(copy)], check=True)
    run_kept(tmp_path, *to, start=80, rows=160)
    expected = in_order(rows(tmp_path / "table"))
    subprocess.run(["rm", "-r", str(tmp_path / "ck")], check=True)
    copy.rename(tmp_path / "ck")
    checkpoint = run_kept(tmp_path, *to, start=80, rows=160)
    assert in_order(rows(tmp_path / "table")) == expected == kept(checkpoint, tmp_path)


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


@pytest.mark.parametrize("every", ["0s", "1h"])
def test_a_state_is_what_the_relation_holds(tmp_path: Path, every: str, random_seed: int) -> None:
    draw, path, table = random.Random(random_seed), tmp_path / "s.ndjson", tmp_path / "now"
    for n in (30, 30, 0):
        relation(path, draw, 0 if n and not path.exists() else 30, n)
        with Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=7) as engine:
            engine.stream("S", str(path), schema=COLUMNS)
            asked = engine.register(LATEST, name="state", dialect="cql")
            asked.to(f"delta://{table}", as_="state", key="k", every=every)
            engine.start(once=True, keep_open=bool(n))
            assert engine.await_end(PATIENCE)
        found = sorted(tuple(map(str, row.values())) for row in rows(table))
        assert found == (holds(path) if n else [])  # at the end all have left
        assert found or not n


def test_a_key_that_is_none_suspends_its_query_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.ndjson"
    relation(path, random.Random(1), 0, 30)
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream("S", str(path), schema=COLUMNS)
        for name, key in (("state", "n"), ("other", "k")):
            asked = engine.register(LATEST, name=name, dialect="cql")
            asked.to(f"delta://{tmp_path / key}", as_="state", key=key)
        engine.start(once=True, keep_open=True)
        with pytest.warns(UserWarning, match=r"The query state is suspended.*no key n"):
            assert engine.await_end(PATIENCE)
    assert list(read_status(tmp_path / "ck").suspended_queries) == ["state"]
    assert rows(tmp_path / "k")


RUN = """
import sys
from levada.cli.main import main
root, stream, table, once = sys.argv[1:]
sys.exit(main([
    "run", "warm.rq", "--stream", f"s={stream}", "--master", "none", "--epoch-rows", "20",
    "--epoch", "0", "--checkpoint", f"{root}/ck", "--keep", "1GB", "--to", f"warm=delta://{table}",
    *(["--once", "--keep-open"] if once == "once" else []),
]))
"""


def start(root: Path, folder: Path, to: str, how: str = "on") -> subprocess.Popen[bytes]:
    root.mkdir(exist_ok=True)
    with (root / "said").open("ab") as said:
        command = [sys.executable, "-c", RUN, str(root), str(folder / "s"), to, how]
        return subprocess.Popen(command, cwd=folder, stderr=said)


@pytest.mark.long
@pytest.mark.chaos
@pytest.mark.timeout(PATIENCE * (KILLS + 3))
@pytest.mark.parametrize("every", ["", ",every=300ms"])
def test_an_engine_that_is_killed_writes_each_row_once(
    tmp_path: Path, every: str, random_seed: int
) -> None:
    draw, root, table = random.Random(random_seed), tmp_path / "killed", tmp_path / "table"
    (tmp_path / "warm.rq").write_text(QUERY)
    for n in range(KILLS):
        write_stream(tmp_path, n * 400, n * 400 + 400)  # twenty epochs
        engine = start(root, tmp_path, f"{table}{every}")
        kill_after(engine, root / "ck", draw.randint(1, 15))
    write_stream(tmp_path, KILLS * 400, KILLS * 400 + 400)
    engine = start(root, tmp_path, f"{table}{every}", "once")
    assert engine.wait(PATIENCE) == 0, (root / "said").read_text()[-3000:]
    found = in_order(rows(table))
    assert found == kept(root / "ck", tmp_path)
    keys = [(row["report"], row["number"]) for row in found]
    assert len(keys) == len(set(keys)) > 100 * KILLS


def piece_of(folder: Path, text: str = "SELECT ?x WHERE { BIND(1 AS ?x) }") -> Piece:
    """A piece of results, as an engine writes it."""
    pieces: list[Piece] = []
    with Engine(spark=False, checkpoint=folder / "piece") as engine:
        asked = engine.register(text, name="q")
        engine.start(once=True)
        engine.await_end(PATIENCE)
        publication = engine._publication
        for batch in publication.read_one(publication.kept[0], asked._lifetime):
            plan = asked._lifetime.query
            assert plan is not None
            pieces.append(Piece(plan, batch, Position(1, 1, 1)))
    return pieces[0]


def test_the_later_of_two_writers_shuts_out_the_first(tmp_path: Path) -> None:
    there = Destination(f"delta://{tmp_path / 'table'}")
    first, second = there.target("q", "id"), there.target("q", "id")
    piece = piece_of(tmp_path)
    assert first.open(None) is None and second.open(None) is None
    first.write(piece)
    with pytest.raises(TargetTakenError, match="Another engine writes the results of q"):
        second.write(piece)  # the first has made the table
    assert second.open(Position()) == Position(1, 1, 1)
    with pytest.raises(TargetTakenError, match="nothing is lost"):
        first.write(piece)
    second.write(Piece(piece.query, piece.batch, Position(2, 2, 1)))
    assert len(rows(tmp_path / "table")) == 2
    DeltaTable(tmp_path / "table").optimize.compact()  # of others
    second.write(Piece(piece.query, piece.batch, Position(3, 3, 1)))
    assert second.open(Position(2, 2, 1)) == Position(3, 3, 1)
    other = there.target("q", "other checkpoint")
    assert other.open(None) is None
    other.write(piece)
    second.write(Piece(piece.query, piece.batch, Position(4, 4, 1)))
    assert len(rows(tmp_path / "table")) == 5


def test_a_table_that_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    target = Destination(f"delta://{tmp_path / 'table'}").target("q", "id")
    with pytest.raises(SinkError, match="has lost how far it is"):
        target.open(Position(3, 3, 1))


def test_columns_of_a_table_that_exists(tmp_path: Path) -> None:
    piece = piece_of(tmp_path)
    narrow = tmp_path / "narrow"
    write_deltalake(narrow, pa.table({"report": pa.array([], pa.timestamp("us", "UTC"))}))
    target = Destination(f"delta://{narrow}").target("q", "id")
    target.open(None)
    with pytest.raises(TargetAwayError, match=r"no column sign\. Say new_columns=add"):
        target.write(piece)
    adding = Destination(f"delta://{narrow}", {"new_columns": "add"}).target("q", "id")
    adding.open(None)
    adding.write(piece)
    assert [row["x"] for row in rows(narrow)] == [1]
    wide = tmp_path / "wide"
    schema = {"more": pa.string(), "report": pa.timestamp("us", "UTC"), "sign": pa.int64(),
              "number": pa.int64(), "x": pa.float64()}  # fmt: skip
    write_deltalake(wide, pa.table({n: pa.array([], t) for n, t in schema.items()}))
    target = Destination(f"delta://{wide}").target("q", "id")
    target.open(None)
    target.write(piece)
    assert [(row["x"], row["more"]) for row in rows(wide)] == [(1.0, None)]
    text = piece_of(tmp_path / "b", 'SELECT ?x WHERE { BIND("a" AS ?x) }')
    with pytest.raises(TargetAwayError, match=r"The column x has the type double.*another table"):
        target.write(text)
    small = tmp_path / "small"
    write_deltalake(small, pa.table({**{n: pa.array([], t) for n, t in schema.items()},
                                     "x": pa.array([], pa.int16())}))  # fmt: skip
    target = Destination(f"delta://{small}").target("q", "id")
    target.check("q", piece.query.form, piece.query.output, ("x",))
    with pytest.raises(SinkError, match=r"The column x of delta://.* is not of the type string"):
        target.open(None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("as=stat", "as is changes or state"), ("as=state", "a state needs a key"),
        ("key=room", "a key is for as=state"), ("as=state,key=room", "no relation"),
        ("columns=rom", "Did you mean room?"), ("columns=t bigit", "Did you mean bigint?"),
        ("new_columns=ad", "Did you mean add?"), ("evry=5s", "Did you mean every?"),
        ("every=x", "x"), ("lost=skp", "Did you mean skip?"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, message: str
) -> None:
    (tmp_path / "warm.rq").write_text(QUERY)
    write_stream(tmp_path, 0, 10)
    arguments = ["run", str(tmp_path / "warm.rq"), "--stream", f"s={tmp_path / 's'}", "--once"]
    arguments += ["--master", "none", "--checkpoint", str(tmp_path / "ck")]
    assert main([*arguments, "--to", f"warm=delta://{tmp_path / 'x'},{options}"]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_full_disk_is_a_sentence_and_a_fault_of_the_code_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        Destination("delta://").target("q", "")
    target: Any = Destination(f"delta://{tmp_path / 'full'}").target("q", "id")
    text = "Generic LocalFileSystem error: No space left on device (os error 28)"
    with pytest.raises(SinkError, match=r"is full\. "), target._translated_errors():
        raise OSError(text)
    with pytest.raises(KeyError), target._translated_errors():
        raise KeyError("a column that the code forgot")


def test_values_of_another_type_wait_and_other_outputs_go_on(tmp_path: Path) -> None:
    (tmp_path / "s.nt").write_text(
        f'<http://e/a> <http://e/t> "1"^^<{INTEGER}> 1000 .\n'
        '<http://e/a> <http://e/t> "x" 3000 .\n<http://e/a> <http://e/t> "y" 9000 .\n'
    )
    with Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=1) as engine:
        engine.stream("http://e/s", str(tmp_path / "s.nt"))
        asked = engine.register(QUERY, name="warm")
        asked.to(f"delta://{tmp_path / 'typed'}", columns="t bigint")
        asked.to(f"delta://{tmp_path / 'texts'}", columns="t string")
        engine.start()
        until(lambda: (tmp_path / "texts").exists() and len(rows(tmp_path / "texts")) == 2)
        until(lambda: any(o.reason for o in engine.status().outputs))
        (waiting,) = [o for o in engine.status().outputs if o.reason]
        assert 'cannot represent "x"' in waiting.reason and "another table" in waiting.reason
    assert [row["t"] for row in rows(tmp_path / "typed")] == [1]
