"""Static tables: joined with streams in CQL and SPARQL, replaced at an instant when they change,
and kept when their source is away. DuckDB judges the joins.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import polars as pl
import pytest

from levada.connectors.ingest.static_load_report import STATES, TableState, read_states
from levada.core.checksummed_files import seal
from levada.core.names import table_graph
from levada.engine.engine import Engine
from levada.engine.status.status import read_status
from levada.errors import QueryError, SourceError, UnsupportedError, UsageError
from support.polling import until, until_engine

SCHEMA = "k:integer;v:double"
JOIN = "Select S.k, v, room From S [Range 4 s Slide 2 s], D Where S.k = D.k"
ROWS = "ts,k,v\n" + "".join(f"{500 * i},{i % 3},{i}.5\n" for i in range(24))
OLD, NEW = "k,room\n0,hall\n1,lab\n1,lab\n", "k,room\n0,attic\n2,\n"


def plain(cell: str | None) -> str | None:
    """The value of a term, without its datatype."""
    return None if cell is None else cell.partition("^^")[0].strip('"')


def reports(query: Any) -> dict[int | None, Counter[tuple[str | None, ...]]]:
    return {
        r.time: Counter(tuple(map(plain, row)) for row in r.rows.rows()) for r in query.results()
    }


def read(engine: Engine, count: int) -> None:
    """Waits until so many rows have been read."""
    until_engine(
        engine, lambda: "S" in engine._records() and engine._records()["S"].elements == count
    )


def renew(path: Path, text: str) -> None:
    """Writes a table as its users should: under another name."""
    beside = path.with_suffix(".new")
    beside.write_text(text)
    os.replace(beside, path)


def judged(table: str, report: int) -> Counter[tuple[str | None, ...]]:
    """What DuckDB says of the window [report - 4000, report)."""
    with duckdb.connect() as base:
        for name, text in (("s", ROWS), ("d", table)):
            base.register(name, pl.read_csv(text.encode(), infer_schema=False))
        found = base.execute(
            "SELECT s.k, s.v, d.room FROM s JOIN d ON s.k::int = d.k::int "
            "WHERE s.ts::int >= ? AND s.ts::int < ?", [report - 4000, report],
        ).fetchall()  # fmt: skip
    return Counter(found)


def test_a_table_that_changes_counts_from_that_instant_on(tmp_path: Path) -> None:
    """The largest event time is 5500 when the table is replaced."""
    stream, table = tmp_path / "s.csv", tmp_path / "d.csv"
    stream.write_text(ROWS[: ROWS.index("6000,")])
    table.write_text(OLD)
    with Engine(spark=False, partitions=2) as engine:
        engine.stream("S", stream, schema=SCHEMA)
        engine.table("D", table)
        query = engine.register(f"Rstream({JOIN})", dialect="cql")
        engine.start()
        read(engine, 12)
        epochs = engine.progress().epochs
        renew(table, NEW)
        until_engine(engine, lambda: engine.progress().epochs > epochs)
        stream.write_text(ROWS)
        read(engine, 24)
        engine.stop()
        made = reports(query)
    assert list(made) == [2000, 4000, 6000, 8000, 10000]
    for report, rows in made.items():
        assert report is not None
        assert rows == judged(OLD if report <= 5500 else NEW, report), report


RUN = f"Rstream({JOIN})"


def launch(folder: Path) -> subprocess.Popen[bytes]:
    (folder / "q.cql").write_text(RUN)
    words = ["run", "q.cql", "--stream", f"S=s.csv,schema={SCHEMA}", "--table", "D=d.csv"]
    words += ["--checkpoint", "state", "--out", "out", "--format", "csv", "--epoch", "50ms"]
    return subprocess.Popen(
        [sys.executable, "-m", "levada", *words], cwd=folder, stderr=(folder / "log").open("ab")
    )


def published(folder: Path) -> dict[int, Counter[tuple[str | None, ...]]]:
    found: dict[int, Counter[tuple[str | None, ...]]] = {}
    for file in sorted((folder / "out" / "q").glob("*.csv")):
        for report, *row in pl.read_csv(file, infer_schema=False).rows():
            found.setdefault(int(report), Counter())[tuple(row)] += 1
    return found


def test_a_killed_engine_continues_with_the_table_it_had(tmp_path: Path) -> None:
    """It is killed after the change, and starts again while the table is not there."""
    (tmp_path / "s.csv").write_text(ROWS[: ROWS.index("6000,")])
    (tmp_path / "d.csv").write_text(OLD)
    first = launch(tmp_path)
    until(lambda: max(published(tmp_path), default=0) == 4000, "the first reports")
    epoch = read_status(tmp_path / "state").epoch
    renew(tmp_path / "d.csv", NEW)
    until(lambda: read_status(tmp_path / "state").tables[0].rows == 2, "the new table")
    until(lambda: read_status(tmp_path / "state").epoch > epoch, "its epoch")
    first.send_signal(signal.SIGKILL)
    first.wait()
    (tmp_path / "d.csv").unlink()
    (tmp_path / "s.csv").write_text(ROWS)
    second = launch(tmp_path)
    until(lambda: max(published(tmp_path), default=0) == 10000, "the other reports")
    failure = read_status(tmp_path / "state").tables[0].failure
    second.send_signal(signal.SIGTERM)
    second.wait()
    assert failure == f"The table {tmp_path / 'd.csv'} is not there."
    assert "What was there before stays." in (tmp_path / "log").read_text()
    for report, rows in published(tmp_path).items():
        assert rows == judged(OLD if report <= 5500 else NEW, report), report


def test_joins_of_random_tables_are_those_of_duckdb(tmp_path: Path) -> None:
    """Keys of each type, with missing and repeated values."""
    draw = random.Random(7)
    kinds = {"i": "integer", "d": "double", "t": "string", "b": "boolean"}
    values: dict[str, list[Any]] = {
        "i": [None, 0, -3, 7], "d": [None, 0.5, -2.0, 1e20], "t": [None, "a", 'q"\n,', ""],
        "b": [None, True, False],
    }  # fmt: skip
    table = pl.DataFrame(
        {c: [draw.choice(values[c]) for _ in range(12)] for c in kinds},
        schema={"i": pl.Int64, "d": pl.Float64, "t": pl.String, "b": pl.Boolean},
    )
    stream = table.sample(40, with_replacement=True, seed=3).with_columns(ts=pl.arange(40) * 1000)
    stream.write_parquet(tmp_path / "s.parquet")
    texts = {}
    for key in kinds:
        for join in ("Join", "Left Join"):
            shown = "S.ts, D.i, D.d, D.t, D.b"
            text = f"Select {shown} From S [Now] {join} D On S.{key} = D.{key} And D.i <= S.i"
            texts[f"{key}-{join.split()[0]}"] = text
    with Engine(spark=False, partitions=2) as engine:
        engine.stream("S", tmp_path / "s.parquet")
        engine.table("D", table)
        queries = {n: engine.register(f"Rstream({t})", dialect="cql") for n, t in texts.items()}
        engine.start(once=True)
        engine.await_end()
        found = {n: [r for o in q.results() for r in o.to_dicts()] for n, q in queries.items()}
    with duckdb.connect() as base:
        base.register("S", stream)
        base.register("D", table)
        for name, text in texts.items():
            expected = base.execute(text.replace(" [Now]", "")).fetchall()
            rows = [tuple(row[c] for c in ("ts", "i", "d", "t", "b")) for row in found[name]]
            assert Counter(rows) == Counter(expected), name


def test_sparql_reads_a_table_as_a_graph(tmp_path: Path) -> None:
    graph = table_graph("D")
    (tmp_path / "d.csv").write_text(OLD)
    with Engine(spark=False) as engine:
        engine.table("D", tmp_path / "d.csv")
        text = (
            f"SELECT ?k ?room {{ GRAPH <{graph}> {{ ?r <{graph}#k> ?k ; <{graph}#room> ?room }} }}"
        )
        query = engine.register(text)
        engine.start(once=True)
        assert reports(query)[None] == Counter({("0", "hall"): 1, ("1", "lab"): 2})


def test_a_query_over_a_table_alone_is_answered_again(tmp_path: Path) -> None:
    with Engine(spark=False) as engine:
        engine.table("D", [{"k": 1}, {"k": 2}])
        query = engine.register("Select Sum(k) As n From D", dialect="cql")
        engine.start()
        answers = query.results()
        assert plain(next(answers).rows["n"][0]) == "3"
        engine.table("D", pl.DataFrame({"k": [5]}))
        assert plain(next(answers).rows["n"][0]) == "5"
        with pytest.raises(UsageError, match="The new rows of the table D have no column k"):
            engine.table("D", [{"j": 1}])


def test_bad_rows_are_dead_letters_once(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("k,room\n0,hall\nx,lab\n1,lab,more\n")
    state = tmp_path / "state"
    for _ in range(2):
        with Engine(spark=False, checkpoint=state) as engine:
            engine.table("D", tmp_path / "d.csv", schema="k:integer;room:string")
            engine.register("Select k From D", dialect="cql", name="q")
            with pytest.warns(UserWarning, match="1 row and 2 dead letters"):
                engine.start(once=True)
            engine.await_end()
    (file,) = (state / "dead-letter").glob("*.ndjson")
    letters = pl.read_ndjson(file)
    assert letters["stream"].to_list() == ["D", "D"]
    assert letters["offset"].to_list() == [14, 20]
    assert letters["reason"].to_list() == [
        "k is not an integer: x", "3 fields where the header has 2",
    ]  # fmt: skip


@pytest.mark.parametrize("damage", ["", "j,room\n0,hall\n", None])
def test_a_source_that_cannot_be_read_keeps_the_last_rows(
    tmp_path: Path, damage: str | None
) -> None:
    path = tmp_path / "d.csv"
    path.write_text(OLD)
    with Engine(spark=False, checkpoint=tmp_path / "state") as engine:
        engine.table("D", path)
        query = engine.register("Select Count(*) As n From D", dialect="cql")
        engine.start()
        answers = query.results()
        assert plain(next(answers).rows["n"][0]) == "3"
        path.unlink() if damage is None else renew(path, damage)
        until_engine(engine, lambda: bool(engine.status().tables[0].failure))
        assert engine.status().tables[0].rows == 3
        renew(path, "k,room\n8,yard\n")
        assert plain(next(answers).rows["n"][0]) == "1"
        assert not engine.status().tables[0].failure


def test_a_damaged_parquet_file_keeps_the_last_rows(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    pl.DataFrame({"k": [1, 2]}).write_parquet(path)
    with Engine(spark=False, checkpoint=tmp_path / "state") as engine:
        engine.table("D", path)
        engine.register("Select k From D", dialect="cql")
        engine.start()
        until_engine(engine, lambda: engine.progress().epochs > 0)
        renew(path, "PAR1 is not here")
        until_engine(engine, lambda: "is no Parquet" in engine.status().tables[0].failure)
        whole = path.with_suffix(".whole")
        pl.DataFrame({"k": [1, 2, 3]}).write_parquet(whole)
        os.replace(whole, path)
        until_engine(engine, lambda: engine.status().tables[0].rows == 3)


def test_a_state_that_names_another_file_is_ignored(tmp_path: Path) -> None:
    state = TableState("D", "d.csv", (("k", "integer"),), "../levada.json", 1)
    (tmp_path / STATES).write_bytes(seal(msgspec.json.encode([state])))
    assert read_states(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Select k From S [Range 1 s] Union All Select k From D", "Rows of a table alone"),
        ("Select S.k From S [Range 1 s] Full Join D On S.k = D.k", "Rows of a table alone"),
        ("Select D.k From D [Range 1 s], S [Now]", "D is a relation, which has no window"),
        ("Select room From (Select k, Max(v) As m From S [Range 2 s] Group By k) As X, D "
         "Where X.k = D.k", "A table beside a view or a query in brackets"),
        ("Istream(Select k From D)", "Istream needs a stream"),
        ("Select rom From S [Now], D", "Did you mean room"),
    ],
)  # fmt: skip
def test_what_a_table_cannot_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    with Engine(spark=False) as engine:
        engine.stream("S", schema=SCHEMA)
        engine.table("D", [{"k": 1, "room": "hall"}])
        with pytest.raises((QueryError, UnsupportedError), match=message):
            engine.register(text, dialect="cql")


def test_names_and_sources_that_are_taken_or_missing_are_refused(tmp_path: Path) -> None:
    with Engine(spark=False) as engine:
        engine.stream("S", schema=SCHEMA)
        engine.table("D", [{"k": 1}])
        with pytest.raises(UsageError, match="There are two tables D"):
            engine.table("D", [{"k": 1}])
        with pytest.raises(UsageError, match="There is a stream S"):
            engine.table("S", [{"k": 1}])
        with pytest.raises(UsageError, match="There is a table D"):
            engine.stream("D", schema=SCHEMA)
        with pytest.raises(SourceError, match=r"none\.csv cannot be read"):
            engine.table("E", tmp_path / "none.csv")
        with pytest.raises(UsageError, match="is a table, which changes with its source"):
            engine.start()
            engine.static([], table_graph("D"))
