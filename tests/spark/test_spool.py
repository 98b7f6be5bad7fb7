"""Streaming DataFrames as streams: what Spark brings is there exactly once, whatever is run again."""

import json

import polars as pl
import pytest

from levada.engine import Engine
from levada.errors import UsageError

X = "http://www.w3.org/2001/XMLSchema#"
QUERY = """PREFIX : <http://e/> SELECT ?s ?v FROM NAMED WINDOW :w ON :obs [RANGE PT2S STEP PT2S]
WHERE { WINDOW :w { ?s :v ?v } } ORDER BY ?v"""


def batch(folder, name, times):
    """A JSON file that Spark's source takes as one batch."""
    folder.mkdir(exist_ok=True)
    rows = [
        {"s": f"<http://e/s{i % 3}>", "p": "<http://e/v>", "o": f'"{i}"^^<{X}integer>', "ts": i * 500, "k": i}
        for i in times
    ]
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def frame(spark, folder):
    source = spark.readStream.schema("s string, p string, o string, ts long, k long").option("maxFilesPerTrigger", 1)
    return source.json(str(folder))


def run(spark, folder, root, **options):
    with Engine(False, checkpoint=root) as engine:
        engine.stream("http://e/obs", frame(spark, folder), **options)
        query = engine.register(QUERY, name="q")
        engine.start(once=True, keep_open=True)
        engine.await_end()
        return query.to_polars().select("report", pl.col("v").str.extract('"([0-9]+)"').cast(int)).rows()


def test_a_streaming_frame_is_a_stream_exactly_once(spark, tmp_path):
    batch(tmp_path / "in", "a.json", range(4))
    batch(tmp_path / "in", "b.json", range(4, 9))
    columns = ("s", "p", "o", "ts")
    assert run(spark, tmp_path / "in", tmp_path / "ck", columns=columns) == [(2000, i) for i in range(4)] + [
        (4000, i) for i in range(4, 8)
    ]
    data = next((tmp_path / "ck" / "spool").iterdir()) / "data"
    before = {p.name: p.read_bytes() for p in data.iterdir()}
    assert list(before) and b"<http://e/s0> <http://e/v>" in before["000000000000.nt"]
    # Spark forgets that it has run the last batch, as after a crash between its sink and its commit.
    commits = data.parent / "spark" / "commits"
    for path in (commits / "1", commits / ".1.crc"):
        path.unlink(missing_ok=True)
    batch(tmp_path / "in", "c.json", range(9, 13))
    assert run(spark, tmp_path / "in", tmp_path / "ck", columns=columns) == [(6000, i) for i in range(8, 12)]
    after = {p.name: p.read_bytes() for p in data.iterdir()}
    assert before.items() <= after.items() and len(after) == len(before) + 1


def test_a_column_of_lines(spark, tmp_path):
    batch(tmp_path / "in", "a.json", range(5))
    lines = frame(spark, tmp_path / "in").selectExpr("concat(s, ' ', p, ' ', o, ' <http://e/g> ', ts, ' .') AS line")
    with Engine(False) as engine:
        engine.stream("http://e/obs", lines, text="line")
        query = engine.register(QUERY, name="q")
        engine.start(once=True)
        engine.await_end()
        assert query.to_polars()["report"].to_list() == [2000] * 4 + [4000]


@pytest.mark.parametrize(
    "time",
    ["timestamp_millis(ts)", "string(ts)", "date_format(timestamp_millis(ts), \"yyyy-MM-dd'T'HH:mm:ss.SSS'Z'\")"],
)
def test_times_of_other_types(spark, tmp_path, time):
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    batch(tmp_path / "in", "a.json", range(5))
    typed = frame(spark, tmp_path / "in").selectExpr("s", "p", "o", f"{time} AS ts")
    with Engine(False) as engine:
        engine.stream("http://e/obs", typed, columns=("s", "p", "o", "ts"))
        query = engine.register(QUERY, name="q")
        engine.start(once=True)
        engine.await_end()
        assert query.to_polars()["report"].to_list() == [2000] * 4 + [4000]


def test_rows_are_tuples(spark, tmp_path):
    batch(tmp_path / "in", "a.json", range(3))
    with Engine(False) as engine:
        engine.stream("S", frame(spark, tmp_path / "in"), tuples=True)
        query = engine.register("Istream(Select S.k From S [Range 1 s])", dialect="cql")
        engine.start(once=True)
        engine.await_end()
        assert query.to_polars().rows() == [(i * 500, f'"{i}"^^<{X}integer>') for i in range(3)]


def test_wrong_uses_are_sentences(spark, tmp_path):
    batch(tmp_path / "in", "a.json", range(1))
    streaming = frame(spark, tmp_path / "in")
    cases = (
        (spark.range(3), {"text": "id"}, "not a streaming one"),
        (streaming, {}, "needs one of columns=, text= and tuples=True"),
        (streaming, {"columns": ("s", "p", "o", "time")}, "has no column time"),
        (streaming, {"columns": ("s", "p")}, "these are 2"),
    )
    for source, options, says in cases:
        with Engine(False) as engine, pytest.raises(UsageError, match=says):
            engine.stream("s", source, **options)
