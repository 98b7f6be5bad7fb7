"""Frames, graphs, iterables, functions and pushed rows as streams; each row exactly once."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

import levada
from levada.connectors.spool.row_batches import term_text
from levada.engine.engine import Engine
from levada.engine.python.query_once import _parts
from levada.errors import EngineError, UsageError
from support.polling import PATIENCE, until_engine

S, P = "http://e/s", "<http://e/p>"
ALL = f"""PREFIX : <http://e/> SELECT ?x ?y FROM NAMED WINDOW :w ON <{S}> [RANGE PT1S STEP PT1S]
WHERE {{ WINDOW :w {{ ?x :p ?y }} }}"""
VALUES = "Istream(Select M.v From M [Now])"


def row(i: int) -> tuple[str, str, object, int]:
    return (f"<http://e/n{i % 7}>", P, i, i * 100)


def values(query: Any) -> list[Any]:
    return sorted(query.to_polars()["y"].to_list())


ROWS = [row(i) for i in range(40)]
TABLE = pl.DataFrame({"k": ["a", "b", None], "v": [1.5, 2.5, 3.5], "ts": [30, 10, 20]})


# -- whole sources --


@pytest.mark.parametrize("kind", ["polars", "pandas", "arrow", "rows", "dicts", "generator"])
def test_tuples_come_from_whatever_is_a_table(kind: str) -> None:
    dicts = TABLE.sort("ts").to_dicts()
    schema = {"k": "string", "v": "double"}
    sources: dict[str, Any] = {
        "polars": (TABLE, {}),
        "pandas": (TABLE.to_pandas().set_index("ts"), {}),
        "arrow": (TABLE.to_arrow(), {}),
        "rows": ([(d["k"], d["v"], d["ts"]) for d in dicts], {"schema": schema}),
        "dicts": (dicts, {"schema": schema}),
        "generator": ((d for d in dicts), {"schema": schema}),
    }
    found = levada.query("Istream(Select M.k, M.v From M [Now])", {"M": sources[kind]})
    assert found.to_polars(terms=True)["report"].to_list() == [10, 20, 30]
    assert found.to_polars().drop("report").rows() == [("b", 2.5), (None, 3.5), ("a", 1.5)]


def test_times_of_a_frame_may_be_of_any_type() -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    moments = [start + timedelta(seconds=i) for i in range(3)]
    for times in (
        pl.Series(moments),
        pl.Series([m.replace(tzinfo=None) for m in moments]),
        pl.Series([m.isoformat() for m in moments]),
        pl.Series(moments).dt.epoch("ms"),
    ):
        frame = pl.DataFrame({"v": [1, 2, 3], "when": times})
        found = levada.query(VALUES, {"M": (frame, {"time": "field:when"})})
        assert found.to_polars()["report"].to_list() == moments
    with pytest.raises(UsageError, match=r"no column ts of times\. Say time='field:when'"):
        levada.query(VALUES, {"M": pl.DataFrame({"v": [1], "when": [start]})})


def test_statements_come_from_frames_rows_lines_and_graphs() -> None:
    graph = rdflib.Graph()
    graph.add((rdflib.URIRef("http://e/a"), rdflib.URIRef("http://e/p"), rdflib.Literal("5\n")))
    line = '<http://e/a> <http://e/p> "5\\n" 100 .'
    a, p, five = next(iter(graph))
    sources: list[Any] = [
        [line],
        [(graph, 100)],
        [(graph, datetime(1970, 1, 1, 0, 0, 0, 100_000))],
        [(a, p, five, 100)],
        [{"s": "<http://e/a>", "p": P, "o": '"5\\n"', "ts": 100}],
        (
            pl.DataFrame({"s": ["<http://e/a>"], "p": [P], "o": ['"5\n"'], "ts": [100]}),
            {"columns": ("s", "p", "o", "ts")},
        ),
        [],
    ]
    for source in sources[:-1]:
        found = levada.query(ALL, {S: source})
        assert found.to_polars(terms=True).rows() == [(1000, "<http://e/a>", '"5\\n"')]
    assert len(levada.query(ALL, {S: []})) == 0


def test_a_graph_has_its_times_by_a_predicate() -> None:
    graph = rdflib.Graph()
    graph.parse(
        format="turtle",
        data="""@prefix : <http://e/> . @prefix x: <http://www.w3.org/2001/XMLSchema#> .
            :a :p 1 ; :at "1970-01-01T00:00:00.500Z"^^x:dateTime .
            :b :p 2 ; :at "1970-01-01T00:00:01.500Z"^^x:dateTime .""",
    )
    found = levada.query(ALL, {S: (graph, {"time": "predicate:http://e/at", "lateness": "1h"})})
    assert found.to_polars(terms=True)["report"].to_list() == [1000, 2000]
    assert found.to_polars()["x"].to_list() == ["http://e/a", "http://e/b"]


def test_rows_may_name_graphs() -> None:
    rows = [("<http://e/a>", P, 5, "<http://e/g>", 100), ("<http://e/a>", P, 6, None, 200)]
    found = levada.query(ALL, {S: (rows, {"columns": ("s", "p", "o", "g", "ts")})})
    assert values(found) == [5, 6]


XSD = "http://www.w3.org/2001/XMLSchema#"


@given(
    st.lists(
        st.integers(-(10**20), 10**20)
        | st.floats()
        | st.booleans()
        | st.datetimes(timezones=st.just(UTC))
        | st.dates(),
        min_size=1,
        max_size=5,
    )
)
@settings(deadline=None, max_examples=15)
def test_values_of_python_are_their_literals_and_come_back(given_: list[Any]) -> None:
    """One report each, so that each has a column of its own type."""
    rows = [("<http://e/a>", P, value, 1000 * i) for i, value in enumerate(given_)]
    found = levada.query(ALL, {S: rows})
    back = [report.to_dicts()[0]["y"] for report in found.reports]
    assert len(back) == len(given_)
    for value, got in zip(given_, back, strict=True):
        assert got == value or (got != got and value != value), term_text(value)


def test_columns_of_values_are_literals() -> None:
    columns: dict[str, list[Any]] = {
        "i": [1],
        "f": [float("inf")],
        "b": [True],
        "d": [datetime(2024, 1, 1, tzinfo=UTC)],
        "t": ["_:x"],
    }
    for name, (value,) in columns.items():
        frame = pl.DataFrame({"s": ["<http://e/a>"], "p": [P], "o": columns[name], "ts": [1]})
        found = levada.query(ALL, {S: (frame, {"columns": ("s", "p", "o", "ts")})})
        got = found.to_polars()["y"][0]
        assert got == value or str(got).startswith("_:"), name


# -- CQL over a frame, judged by pandas --


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(-9, 9)), min_size=1, max_size=40))
@settings(deadline=None, max_examples=10)
def test_a_range_window_is_what_pandas_rolls(given_: list[tuple[int, int]]) -> None:
    start = pd.Timestamp("2024-03-01")
    times = sorted({second for second, _ in given_})
    frame = pd.DataFrame(
        {"v": [float(given_[i % len(given_)][1]) for i in range(len(times))]},
        index=pd.DatetimeIndex([start + pd.Timedelta(seconds=s) for s in times], name="time"),
    )
    text = "Rstream(Select Avg(M.v) As mean, Count(*) As n From M [Range 10 Minutes])"
    found = levada.query(text, {"M": (frame, {"time": "field:time"})}).to_pandas()
    rolled = frame["v"].rolling("10min")
    right = pd.DataFrame({"mean": rolled.mean(), "n": rolled.count()})
    ours = found.set_index("report").loc[[t.tz_localize("UTC") for t in frame.index]]
    assert np.allclose(ours["mean"].to_numpy(), right["mean"].to_numpy())
    assert ours["n"].tolist() == right["n"].tolist()


# -- exactly once --


def test_a_frame_that_is_given_again_has_been_read(tmp_path: Path) -> None:
    frame = pl.DataFrame(ROWS[:20], schema=["s", "p", "o", "ts"], orient="row")
    more = pl.DataFrame([row(i) for i in range(20, 40)], schema=["s", "p", "o", "ts"], orient="row")
    counts = []
    for source in (frame, frame, more):
        with Engine(spark=False, checkpoint=tmp_path) as engine:
            engine.stream(S, source, columns=("s", "p", "o", "ts"))
            query = engine.register(ALL, name="q")
            engine.start(once=True, keep_open=True)
            engine.await_end()
            counts.append((engine.count_received(S), values(query)))
    assert counts == [(20, [*range(10)]), (20, []), (40, [*range(10, 30)])]


def _ever(engine: Engine) -> int:
    """The elements of all runs."""
    found = engine.progress()
    return (found.all_runs or found).elements


def wait_for(engine: Engine, elements: int) -> None:
    until_engine(engine, lambda: _ever(engine) >= elements)
    assert _ever(engine) == elements


def test_a_function_goes_on_where_the_spool_ends(tmp_path: Path) -> None:
    begun: list[int] = []
    limit = 15

    def source(received: int) -> Iterator[Any]:
        begun.append(received)
        for i in itertools.count(received):
            if i >= limit:
                return
            yield row(i)

    found = []
    for limit in (15, 40):
        with Engine(spark=False, checkpoint=tmp_path) as engine:
            engine.stream(S, source)
            query = engine.register(ALL, name="q")
            engine.start()
            wait_for(engine, limit)
            assert engine.count_received(S) == limit
            engine.stop()
            found += values(query)
    assert begun == [0, 15]
    assert found == [*range(30)]


def test_pushed_rows_are_durable_and_read_once(tmp_path: Path) -> None:
    found = []
    for part in (ROWS[:15], ROWS[15:]):
        with Engine(spark=False, checkpoint=tmp_path) as engine:
            engine.stream(S)
            query = engine.register(ALL, name="q")
            engine.push(S, part[:5])
            engine.start()
            engine.push(S, iter(part[5:]))
            engine.push(S, pl.DataFrame({"s": [], "p": [], "o": [], "ts": []}, strict=False))
            assert engine.count_received(S) == (15 if part[0] == ROWS[0] else 40)
            wait_for(engine, 15 if part[0] == ROWS[0] else 40)
            engine.stop()
            found += values(query)
    assert found == [*range(30)]


def test_what_was_pushed_and_not_read_is_read_by_the_next_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from levada.engine.engine_driver import Driver

    with monkeypatch.context() as patch, Engine(spark=False, checkpoint=tmp_path) as engine:
        patch.setattr(Driver, "next_intention", lambda driver, last: None)
        engine.stream(S)
        engine.register(ALL, name="q")
        engine.start()
        engine.push(S, ROWS)
        assert engine.progress().elements == 0
    with Engine(spark=False, checkpoint=tmp_path) as engine:
        engine.stream(S)
        query = engine.register(ALL, name="q")
        engine.start(once=True)
        engine.await_end()
        assert values(query) == [*range(40)]


def test_a_source_waits_for_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    from levada.connectors.spool import python_spool

    monkeypatch.setattr(python_spool, "BUFFER", 10)
    pulled = 0

    def endless() -> Iterator[Any]:
        nonlocal pulled
        for i in itertools.count():
            pulled = i
            yield row(i)

    with Engine(spark=False, epoch_rows=5) as engine:
        engine.stream(S, endless())
        query = engine.register(ALL)
        engine.start()
        for report in query.results():
            if report.time is not None and report.time >= 5000:
                break
        assert pulled < 100_000
        engine.stop()
    assert pulled >= 50


# -- static data --


def test_static_data_are_graphs_triples_and_files(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text("<http://e/f> <http://e/p> <http://e/o> .\n")
    graph = rdflib.Graph()
    graph.add((rdflib.URIRef("http://e/a"), rdflib.URIRef("http://e/p"), rdflib.Literal(1)))
    dataset = rdflib.Dataset()
    dataset.graph(rdflib.URIRef("http://e/g")).add(next(iter(graph)))
    every = "SELECT ?x { ?x <http://e/p> ?y } ORDER BY ?x"
    cases: list[tuple[Any, list[str]]] = [
        (graph, ["http://e/a"]),
        ([("<http://e/b>", P, True)], ["http://e/b"]),
        ([f"<http://e/c> {P} 'x'".replace("'", '"')], ["http://e/c"]),
        ([tmp_path / "a.nt", graph], ["http://e/a", "http://e/f"]),
        (str(tmp_path / "a.nt"), ["http://e/f"]),
        ({None: graph, "http://e/h": [("<http://e/b>", P, 1)]}, ["http://e/a"]),
        (dataset, []),
    ]
    for static, subjects in cases:
        assert levada.query(every, static=static).to_polars()["x"].to_list() == subjects
    named = "SELECT ?g ?x { GRAPH ?g { ?x <http://e/p> ?y } }"
    assert [d["g"] for d in levada.query(named, static=dataset).to_dicts()] == ["http://e/g"]
    assert _parts(None) == []


# -- mistakes --


def test_what_is_set_aside_is_a_warning() -> None:
    rows: list[Any] = [row(1), ("<http://e/a> ", P, "no term", 200)]
    with pytest.warns(UserWarning, match=r"http://e/s: 1 not readable\. The first: .*no term"):
        found = levada.query(ALL, {S: rows})
    assert found.to_polars()["y"].to_list() == [1]


def test_wrong_uses_are_sentences() -> None:
    schema = {"k": "integer"}
    graph = rdflib.Graph()
    cases: list[tuple[Any, dict[str, Any], str]] = [
        (5, {}, "source of the stream s is int"),
        (TABLE.lazy(), {}, "is LazyFrame"),
        ([], {"columns": ("s", "p")}, "these are 2 columns"),
        ([], {"columns": ("s", "p", "o", "ts"), "schema": schema}, "not of tuples"),
        ([], {"text": "line"}, "Rows may be lines"),
        ([], {"time": "graph"}, "last column is the time"),
        ([], {"tuples": True}, "need a schema"),
        ([], {"format": "nt"}, "Leave format= out"),
        (graph, {}, "an RDF graph has no times"),
        (TABLE, {"lateness": "x"}, "lateness of the stream s"),
        (TABLE, {"lateless": "1s"}, "no option lateless. Did you mean lateness"),
    ]
    for source, options, says in cases:
        with Engine(spark=False) as engine, pytest.raises(UsageError, match=says):
            engine.stream("s", source, **options)


def test_rows_that_do_not_fit_are_told_to_who_pushes_them(tmp_path: Path) -> None:
    with Engine(spark=False) as engine:
        engine.stream("M", schema={"k": "integer", "v": "double"})
        engine.stream(S)
        engine.stream("file", tmp_path, format="nt")
        for stream, rows, says in (
            ("M", [(1, 2.0)], r"has not 3 values\. A row has k, v, ts"),
            ("M", [{"k": "x", "v": 1.0, "ts": 1}], "found value of type String"),
            (S, [("<http://e/a>", P, 5)], r"has not 4 values\. A row has s, p, o, ts"),
            (S, pa.table({"s": ["<http://e/a>"]}), "no column p"),
            ("file", [row(1)], "takes no rows from Python"),
            ("none", [row(1)], "takes no rows from Python"),
        ):
            with pytest.raises(UsageError, match=says):
                engine.push(stream, rows)
        engine.start(once=True)
        with pytest.raises(UsageError, match=r"reads what was there|has ended"):
            engine.push(S, [row(1)])


def test_a_source_that_fails_stops_the_engine() -> None:
    def broken() -> Iterator[Any]:
        yield row(1)
        raise OSError("gone")

    for once in (False, True):
        with Engine(spark=False) as engine:
            engine.stream(S, broken())
            engine.register(ALL)
            with pytest.raises(EngineError, match=r"of the stream http://e/s failed: OSError"):
                engine.start(once=once)
                engine.await_end(PATIENCE)
