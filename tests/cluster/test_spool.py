"""Streaming DataFrames as streams: what Spark brings is there exactly once, whatever is run
again.
"""

import json
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.engine import Engine
from levada.errors import EngineError, UsageError
from levada.runtime.spark.dataframe_spool import Spool
from support.polling import until_engine

X = "http://www.w3.org/2001/XMLSchema#"
QUERY = """PREFIX : <http://e/> SELECT ?s ?v FROM NAMED WINDOW :w ON :obs [RANGE PT2S STEP PT2S]
WHERE { WINDOW :w { ?s :v ?v } } ORDER BY ?v"""


def numbers(data: Path) -> list[int]:
    """Those of the batches that are there."""
    return sorted(int(path.name.split(".")[0]) for path in data.iterdir())


def batch(folder: Any, name: Any, times: Any) -> None:
    """A JSON file that Spark's source takes as one batch; they come in the order of the files'
    ages, here that of names.
    """
    folder.mkdir(exist_ok=True)
    rows = [
        {
            "s": f"<http://e/s{i % 3}>",
            "p": "<http://e/v>",
            "o": f'"{i}"^^<{X}integer>',
            "ts": i * 500,
            "k": i,
        }
        for i in times
    ]
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    age = 1_700_000_000 + ord(name[0])
    os.utime(folder / name, (age, age))


def frame(spark: Any, folder: Any) -> Any:
    source = spark.readStream.schema("s string, p string, o string, ts long, k long").option(
        "maxFilesPerTrigger", 1
    )
    return source.json(str(folder))


def run(spark: Any, folder: Any, root: Any, sink: Any = None, **options: Any) -> Any:
    with Engine(spark=False, checkpoint=root, sink=sink) as engine:
        engine.stream("http://e/obs", frame(spark, folder), **options)
        query = engine.register(QUERY, name="q")
        engine.start(once=True, keep_open=True)
        engine.await_end()
        return (
            query.to_polars(terms=True)
            .select("report", pl.col("v").str.extract('"([0-9]+)"').cast(int))
            .rows()
        )


def test_a_streaming_frame_is_a_stream_exactly_once(spark: Any, tmp_path: Path) -> None:
    batch(tmp_path / "in", "a.json", range(4))
    batch(tmp_path / "in", "b.json", range(4, 9))
    columns = ("s", "p", "o", "ts")
    assert run(spark, tmp_path / "in", tmp_path / "ck", columns=columns) == [
        (2000, i) for i in range(4)
    ] + [(4000, i) for i in range(4, 8)]
    data = next((tmp_path / "ck" / "spool").iterdir()) / "data"
    before = {p.name: p.read_bytes() for p in data.iterdir()}
    assert numbers(data) == [1]
    assert b"<http://e/s1> <http://e/v>" in next(iter(before.values()))
    # Spark forgets that it has run the last batch, as after a crash between its sink and its
    # commit.
    commits = data.parent / "spark" / "commits"
    for path in (commits / "1", commits / ".1.crc"):
        path.unlink(missing_ok=True)
    batch(tmp_path / "in", "c.json", range(9, 13))
    assert run(spark, tmp_path / "in", tmp_path / "ck", columns=columns) == [
        (6000, i) for i in range(8, 12)
    ]
    assert numbers(data) == [2]


@pytest.mark.parametrize("part", ["before", "within", "after"])
def test_a_crash_beside_the_deletion_of_batches_loses_and_repeats_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """The first run dies where batches that a manifest covers are deleted; Spark runs its last
    batch again.
    """
    for i, name in enumerate("abcd"):
        batch(tmp_path / "in", f"{name}.json", range(4 * i, 4 * i + 4))
    forget = Spool.forget

    def dies(spool: Any, position: Any) -> None:
        if not position or position["file"] < "000000000002":
            return
        if part == "within":
            min(spool.data.iterdir()).unlink()
        elif part == "after":
            forget(spool, position)
        raise KeyboardInterrupt

    columns = ("s", "p", "o", "ts")
    sink = FileSink(tmp_path / "out", Format.CSV)
    with (
        monkeypatch.context() as patch,
        Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=5, sink=sink) as engine,
    ):
        patch.setattr(Spool, "forget", dies)
        engine.stream("http://e/obs", frame(spark, tmp_path / "in"), columns=columns)
        engine.register(QUERY, name="q")
        engine.start(once=True, keep_open=True)
        with pytest.raises(EngineError):
            engine.await_end()
    spark_side = next((tmp_path / "ck" / "spool").iterdir()) / "spark" / "commits"
    for path in (spark_side / "3", spark_side / ".3.crc"):
        path.unlink()
    batch(tmp_path / "in", "e.json", range(16, 20))
    run(spark, tmp_path / "in", tmp_path / "ck", sink, columns=columns)
    rows = [
        line
        for path in sorted((tmp_path / "out" / "q").iterdir())
        for line in path.read_text().splitlines()[1:]
    ]
    assert rows == [f"{2000 * (i // 4 + 1)},http://e/s{i % 3},{i}" for i in range(16)]
    data = next((tmp_path / "ck" / "spool").iterdir()) / "data"
    assert numbers(data) == [4]


def test_a_row_is_one_line_whatever_its_columns_hold(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    objects = ['"1\n2"', '"x" 5 .\n<http://e/t> <http://e/v> "y"', None, "# nothing"]
    rows = [{"s": "<http://e/s>", "p": "<http://e/v>", "o": o, "ts": 100} for o in objects]
    rows.append(
        {"s": None, "p": "<http://e/s>", "o": "<http://e/v>", "g": "<http://e/g>", "ts": 100}
    )
    (tmp_path / "in" / "a.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = spark.readStream.schema("s string, p string, o string, g string, ts long").json(
        str(tmp_path / "in")
    )
    with Engine(spark=False) as engine:
        engine.stream("http://e/obs", source, columns=("s", "p", "o", "g", "ts"))
        query = engine.register(QUERY, name="q")
        engine.start(once=True)
        engine.await_end()
        assert query.to_polars(terms=True)["v"].to_list() == ['"1\\n2"']
        assert engine._records()["http://e/obs"].dead_letters == 4


def test_the_last_element_of_a_batch_waits_for_no_other_batch(spark: Any, tmp_path: Path) -> None:
    batch(tmp_path / "in", "a.json", range(8))
    lines = frame(spark, tmp_path / "in").selectExpr(
        "concat(s, ' ', p, ' ', o, ' ', ts, ' .') AS line"
    )
    with Engine(spark=False) as engine:
        engine.stream("http://e/obs", lines, text="line", element="subject")
        query = engine.register(QUERY, name="q")
        engine.start()
        until_engine(engine, lambda: engine.progress().elements == 8)
        engine.stop()
        assert query.to_polars(terms=True)["report"].to_list() == [2000] * 4


def test_a_column_of_lines(spark: Any, tmp_path: Path) -> None:
    batch(tmp_path / "in", "a.json", range(5))
    lines = frame(spark, tmp_path / "in").selectExpr(
        "concat(s, ' ', p, ' ', o, ' <http://e/g> ', ts, ' .') AS line"
    )
    with Engine(spark=False) as engine:
        engine.stream("http://e/obs", lines, text="line")
        query = engine.register(QUERY, name="q")
        engine.start(once=True)
        engine.await_end()
        assert query.to_polars(terms=True)["report"].to_list() == [2000] * 4 + [4000]


@pytest.mark.parametrize(
    "moment",
    [
        "timestamp_millis(ts)",
        "string(ts)",
        "date_format(timestamp_millis(ts), \"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'\")",
    ],
)
def test_times_of_other_types(spark: Any, tmp_path: Path, moment: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    batch(tmp_path / "in", "a.json", range(5))
    typed = frame(spark, tmp_path / "in").selectExpr("s", "p", "o", f"{moment} AS ts")
    with Engine(spark=False) as engine:
        engine.stream("http://e/obs", typed, columns=("s", "p", "o", "ts"))
        query = engine.register(QUERY, name="q")
        engine.start(once=True)
        engine.await_end()
        assert query.to_polars(terms=True)["report"].to_list() == [2000] * 4 + [4000]


def test_rows_are_tuples(spark: Any, tmp_path: Path) -> None:
    batch(tmp_path / "in", "a.json", range(3))
    with Engine(spark=False) as engine:
        engine.stream("S", frame(spark, tmp_path / "in"), tuples=True)
        query = engine.register("Istream(Select S.k From S [Range 1 s])", dialect="cql")
        engine.start(once=True)
        engine.await_end()
        assert query.to_polars(terms=True).rows() == [
            (i * 500, f'"{i}"^^<{X}integer>') for i in range(3)
        ]


def test_fields_of_structs_are_columns(spark: Any, tmp_path: Path) -> None:
    batch(tmp_path / "in", "a.json", range(3))
    nested = frame(spark, tmp_path / "in").selectExpr(
        "named_struct('temp', double(k) / 2, 'at', named_struct('k', k)) AS reading", "ts"
    )
    with Engine(spark=False) as engine:
        engine.stream("S", nested, tuples=True)
        text = "Istream(Select reading.temp As temp, reading.at.k As k From S [Range 1 s])"
        query = engine.register(text, dialect="cql")
        engine.start(once=True)
        engine.await_end()
        found = query.to_polars()
        assert found["temp"].to_list() == [0.0, 0.5, 1.0]
        assert found["k"].to_list() == [0, 1, 2]


def test_wrong_uses_are_sentences(spark: Any, tmp_path: Path) -> None:
    batch(tmp_path / "in", "a.json", range(1))
    streaming = frame(spark, tmp_path / "in")
    cases = (
        (spark.range(3), {"text": "id"}, "not a streaming one"),
        (streaming, {}, "needs one of columns=, text= and tuples=True"),
        (streaming, {"columns": ("s", "p", "o", "time")}, "has no column time"),
        (streaming, {"columns": ("s", "p")}, "these are 2"),
        (streaming, {"columns": ("s", "p", "k", "ts")}, "The column k of the stream s is a bigint"),
        (
            streaming.selectExpr("s", "p", "o", "double(ts) AS ts"),
            {"columns": ("s", "p", "o", "ts")},
            "is a double",
        ),
        (streaming, {"text": "s", "files": "parallel"}, "its batches are one sequence"),
        (
            streaming,
            {"columns": ("s", "p", "o", "ts"), "time": "graph"},
            "its last column is the time",
        ),
    )
    for source, options, says in cases:
        with Engine(spark=False) as engine, pytest.raises(UsageError, match=says):
            engine.stream("s", source, **options)
