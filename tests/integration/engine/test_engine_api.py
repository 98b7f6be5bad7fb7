"""The Python API: engines, queries that come and go, and readers of their results."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from levada.engine.engine import Engine
from levada.engine.query import Report
from levada.errors import QuerySyntaxError, SourceError, UnknownNameError, UsageError
from levada.testing.compare import same
from levada.testing.stream_builders import lines, write_lines
from support.generators import Clause
from support.polling import PATIENCE, until_engine
from support.query_dsl import S, as_expected, element, expected, feed, judge, query, register, step

RANGE = {"w": (S, Clause("range", 1500))}
ALL = query("SELECT ?a ?n", "WINDOW :w { ?a :p ?n }", name="all", windows=RANGE)
SUM = query(
    "SELECT ?a (SUM(?n) AS ?m)",
    "WINDOW :w { ?a :p ?n }",
    tail=" GROUP BY ?a",
    name="sum",
    windows={"w": (S, step(2000, 1000))},
)
ELEMENTS = [element(300 * i, f"a{i % 3} p {i}") for i in range(20)]


@pytest.fixture
def path(tmp_path: Path) -> Any:
    return write_lines(tmp_path / "s.nt", ELEMENTS)


@pytest.fixture
def engine(path: Any) -> Iterator[Any]:
    with Engine(spark=False, epoch_rows=4, partitions=2) as engine:
        engine.stream(S, path)
        yield engine


def test_results_come_while_the_engine_runs_and_end_with_it(engine: Any) -> None:
    query = engine.register(ALL.text, name="all")
    engine.start(once=True)
    assert same(expected([ALL], {S: ELEMENTS})["all"], as_expected(query.results())) is None
    assert same(expected([ALL], {S: ELEMENTS})["all"], as_expected(query.results())) is None, (
        "for every reader anew"
    )


def test_results_of_a_growing_file_come_before_its_end(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "s.nt", ELEMENTS[:10])
    with Engine(spark=False, partitions=1) as engine:
        engine.stream(S, path)
        query = engine.register(ALL.text)
        engine.start()
        reader = query.results()
        assert next(reader).time == 0
        with path.open("a") as file:
            file.writelines(f"{line}\n" for line in lines(ELEMENTS[10:]))
        assert next(r for r in reader if r.time == 5400).rows.height == 5
        engine.stop()
        assert all(r.time is not None and r.time <= 5700 for r in reader), (
            "the reader ends with the engine"
        )


def test_to_polars_has_all_results_or_typed_columns_without_a_row(engine: Any) -> None:
    query = engine.register(SUM.text, name="sum")
    nothing = engine.register(SUM.text.replace(":p", ":nothing"), name="none")
    ask = engine.register(
        SUM.text.replace("SELECT ?a (SUM(?n) AS ?m)", "ASK").replace(" GROUP BY ?a", ""), name="ask"
    )
    engine.start(once=True)
    engine.await_end()
    frame = query.to_polars(terms=True)
    assert frame.schema == {"report": pl.Int64, "a": pl.String, "m": pl.String}
    assert frame.height == sum(r.solutions.total() for r in expected([SUM], {S: ELEMENTS})["sum"])
    assert nothing.to_polars(terms=True).schema == frame.schema
    assert nothing.to_polars(terms=True).height == 0
    assert ask.to_polars(terms=True).schema == {"report": pl.Int64, "boolean": pl.Boolean}
    assert ask.to_polars(terms=True)["boolean"].all()


def test_a_relations_changes_have_signs(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("k,ts\n1,0\n2,500\n1,9000\n")
    with Engine(spark=False) as engine:
        engine.stream("A", tmp_path / "a.csv", schema="k:integer")
        query = engine.register("Select k From A [Range 1 s]", dialect="cql")
        engine.start(once=True)
        engine.await_end()
        assert query.to_polars(terms=True).rows()[:3] == [
            (0, 1, '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'),
            (500, 1, '"2"^^<http://www.w3.org/2001/XMLSchema#integer>'),
            (1000, -1, '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'),
        ]


def test_subscribers_are_called_with_every_report_also_when_they_come_before_the_start(
    engine: Any,
) -> None:
    query = engine.register(ALL.text)
    early: list[Report] = []
    late: list[Report] = []
    first = query.subscribe(early.append)
    engine.start(once=True)
    engine.await_end()
    second = query.subscribe(late.append)
    for thread in (first, second):
        thread.join(PATIENCE)
    assert same(expected([ALL], {S: ELEMENTS})["all"], as_expected(early)) is None
    assert [r.time for r in early] == [r.time for r in late]


def test_a_subscriber_of_an_engine_that_never_starts_ends(path: Any) -> None:
    with Engine(spark=False) as engine:
        engine.stream(S, path)
        thread = engine.register(ALL.text).subscribe(print)
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_a_slow_reader_loses_nothing(engine: Any) -> None:
    query = engine.register(ALL.text)
    engine.start(once=True)
    reader = query.results()
    first = next(reader)
    engine.await_end()
    assert len([first, *reader]) == len(expected([ALL], {S: ELEMENTS})["all"])


def test_queries_come_and_go_while_the_engine_runs(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "s.nt", [])
    with Engine(spark=False, partitions=2) as engine:
        engine.stream(S, path)
        old = engine.register(ALL.text, name="all")
        engine.start()
        feed(engine, path, ELEMENTS[:8])
        new = engine.register(SUM.text, name="sum")
        feed(engine, path, ELEMENTS[8:14])
        old.unregister()
        feed(engine, path, ELEMENTS[14:])
        again = engine.register(ALL.text, name="all")
        feed(engine, path, [element(6000 + 300 * i, f"a p {i}") for i in range(9)])
        feed(engine, path, [element(60_000, "a p 1")])
        engine.stop()
        got = {"sum": as_expected(new.results())}
        first, second = as_expected(old.results()), as_expected(again.results())
    rest = [*ELEMENTS[8:], *[element(6000 + 300 * i, f"a p {i}") for i in range(9)]]
    judge([SUM], {S: rest}, got)
    assert (
        same([r for r in expected([ALL], {S: ELEMENTS})["all"] if r.time < ELEMENTS[13].ts], first)
        is None
    )
    assert same(expected([ALL], {S: rest[12:]})["all"], second) is None


def test_no_epoch_reads_without_a_query_what_came_after_its_registration(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "s.nt", [])
    late = []
    with Engine(spark=False) as engine:
        engine.stream(S, path)
        engine.register(SUM.text, name="sum")
        engine.start()
        feed(engine, path, ELEMENTS[:2])
        sourcing = engine._driver.epochs.sourcing
        look = sourcing.discover

        def between_plan_and_look(positions: Any, wall: int) -> None:
            if not late:
                late.append(engine.register(ALL.text, name="all"))
                with path.open("a") as file:
                    file.writelines(
                        f"{line}\n" for line in lines([*ELEMENTS[2:], element(90_000, "a p 1")])
                    )
            look(positions, wall)

        sourcing.discover = between_plan_and_look
        until_engine(engine, lambda: engine.progress().elements == len(ELEMENTS) + 1)
        engine.stop()
        got = as_expected(late[0].results())
    assert (
        same([r for r in expected([ALL], {S: ELEMENTS[2:]})["all"] if r.time < 90_000], got) is None
    )


def test_unregister_and_register_at_once_starts_anew(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "s.nt", [])
    with Engine(spark=False) as engine:
        engine.stream(S, path)
        query = engine.register(ALL.text, name="all")
        engine.start()
        feed(engine, path, ELEMENTS[:8])
        query.unregister()
        query = engine.register(ALL.text, name="all")
        feed(engine, path, [*ELEMENTS[8:], element(90_000, "a p 1")])
        engine.stop()
        got = as_expected(query.results())
    assert (
        same([r for r in expected([ALL], {S: ELEMENTS[8:]})["all"] if r.time < 90_000], got) is None
    )


def test_an_engine_without_queries_reads_on(engine: Any) -> None:
    engine.start(once=True)
    assert engine.await_end(PATIENCE)
    assert engine.progress().elements == len(ELEMENTS)


def test_progress_tells_where_it_is(engine: Any) -> None:
    engine.register(ALL.text)
    assert engine.progress().epochs == 0
    engine.start(once=True)
    engine.await_end()
    progress = engine.progress()
    assert (progress.elements, progress.epochs) == (len(ELEMENTS), 5)
    assert progress.results == sum(
        r.solutions.total() for r in expected([ALL], {S: ELEMENTS})["all"]
    )
    assert "20 elements" in progress.line()


def test_explain_and_names(engine: Any) -> None:
    query = engine.register(ALL.text)
    assert query.name == "q1"
    assert "RANGE PT1.5S" in query.explain()
    with pytest.raises(UsageError, match="There is a query q1 already"):
        engine.register(ALL.text, name="q1")
    with pytest.raises(UsageError, match=r"There is no query q2\. Known: q1\."):
        engine.unregister("q2")
    query.unregister()
    with pytest.raises(UsageError, match="There is no query q1"):
        query.explain()


def test_a_name_that_the_engine_gives_was_no_other_querys(engine: Any) -> None:
    first, second = engine.register(ALL.text), engine.register(ALL.text)
    first.unregister()
    second.unregister()
    assert engine.register(ALL.text).name == "q3"


def test_wrong_calls_are_told(engine: Any, path: Any) -> None:
    with pytest.raises(QuerySyntaxError, match="line 1"):
        engine.register("SELECT ?x WERE {}")
    with pytest.raises(UnknownNameError, match="There is no stream http://e/unknown"):
        engine.register(ALL.text.replace(S, "http://e/unknown"))
    with pytest.raises(UsageError, match=r"A query has no option bound\. Did you mean bounds"):
        engine.register(ALL.text, bound="(]")
    with pytest.raises(UsageError, match=r"There are no bounds \[\]"):
        engine.register(ALL.text, bounds="[]")
    with pytest.raises(UsageError, match=r"There is no dialect rsp\. Did you mean rspql"):
        engine.register(ALL.text, dialect="rsp")
    with pytest.raises(UsageError, match=f"its file: {__file__},graph=e:plan"):
        engine.static(f"e:plan={__file__}")
    with pytest.raises(UsageError, match="There is no static file nowhere"):
        engine.static("nowhere.nt")
    with pytest.raises(UsageError, match="has not been started"):
        list(engine.register(ALL.text).results())
    engine.start(once=True)
    with pytest.raises(UsageError, match="started already"):
        engine.start()
    with pytest.raises(UsageError, match=r"what was there when it started|has ended"):
        engine.stream("http://e/t", path)


def test_a_failing_stream_is_raised_to_whoever_waits(tmp_path: Path, path: Any) -> None:
    with Engine(spark=False, epoch_rows=4) as engine:
        engine.stream(S, path)
        register(engine, [ALL])
        engine._on_epoch(lambda manifest: path.write_bytes(b""))
        engine.start()
        path_changed = pytest.raises(Exception, match=r"became shorter than what was read")
        with path_changed:
            assert engine.await_end(PATIENCE)


def test_a_failure_is_raised_to_whoever_reads_results(engine: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.ttl").write_text("<http://e/a>")
    engine.static(tmp_path / "bad.ttl")
    query = engine.register("SELECT ?o { <http://e/a> ?p ?o }")
    seen = []
    engine.start()
    follower = query.subscribe(seen.append)
    with pytest.raises(SourceError, match=r"bad\.ttl"):
        list(query.results())
    follower.join(PATIENCE)
    assert (seen, follower.is_alive()) == ([], False)


def test_stop_from_another_thread_ends_a_wait(engine: Any) -> None:
    engine.register(ALL.text)
    engine.start()
    threading.Timer(0.2, engine.stop).start()
    assert engine.await_end(PATIENCE)
    assert not engine.running


def test_static_lines_and_files_are_joined(tmp_path: Path, engine: Any) -> None:
    (tmp_path / "more.ttl").write_text("@prefix : <http://e/> . :a1 :kind :L .")
    engine.static(
        [
            "<http://e/a0> <http://e/kind> <http://e/K> .",
            "<http://e/a2> <http://e/kind> <http://e/K>",
        ]
    )
    engine.static(tmp_path / "more.ttl")
    query = engine.register(
        ALL.text.replace("?a ?n\n", "?a ?n ?k\n").replace("WHERE { ", "WHERE { ?a :kind ?k . ")
    )
    engine.start(once=True)
    engine.await_end()
    kinds = query.to_polars(terms=True).select("a", "k").unique().sort("a").rows()
    assert kinds == [(f"<http://e/a{i}>", f"<http://e/{k}>") for i, k in enumerate("KLK")]


def test_the_event_time_is_there_under_both_of_its_names(tmp_path: Path) -> None:
    """``ts`` is the event time unless the schema has one; a column that is the time is it, too."""
    path = tmp_path / "a.csv"
    path.write_text("at,v\n1000,1.5\n2000,2.5\n")
    with Engine(spark=False) as engine:
        engine.stream("A", path, schema="at:integer;v:double", time="field:at")
        both = engine.register("Rstream(Select ts, at, v From A [Now])", name="both", dialect="cql")
        last = engine.register("Rstream(Select ts, at From A [Rows 1])", name="last", dialect="cql")
        engine.start(once=True)
        engine.await_end()
        shown = [[v.split('"')[1] for row in r.rows.rows() for v in row] for r in both.results()]
        assert shown == [["1000", "1000", "1.5"], ["2000", "2000", "2.5"]]
        assert [
            [v.split('"')[1] for row in r.rows.rows() for v in row] for r in last.results()
        ] == [
            ["1000"] * 2,
            ["2000"] * 2,
        ]
