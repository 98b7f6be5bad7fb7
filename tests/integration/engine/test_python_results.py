"""Results as values of libraries, files, callbacks and asyncio."""

import asyncio
import datetime as dt
import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
import rdflib

import levada
from levada.connectors.serialization.typed_columns import typed_frame
from levada.engine.engine import Engine
from levada.engine.python import optional_imports
from levada.engine.query import Report
from levada.errors import EngineError, LevadaError, UsageError
from support.polling import PATIENCE

S = "http://e/s"
P = "<http://e/p>"
ALL = f"""PREFIX : <http://e/> SELECT ?x ?y FROM NAMED WINDOW :w ON <{S}> [RANGE PT1S STEP PT1S]
WHERE {{ WINDOW :w {{ ?x :p ?y }} }} ORDER BY ?x"""
MADE = ALL.replace("SELECT ?x ?y", "CONSTRUCT { ?x :q ?y }").replace("ORDER BY ?x", "")
ASKED = ALL.replace("SELECT ?x ?y", "ASK").replace("ORDER BY ?x", "")
BIG = 10**30
ROWS: list[tuple[str, str, object, int]] = [
    ("<http://e/a>", P, 5, 100),
    ("<http://e/b>", P, BIG, 200),
    ("_:c", P, 7, 1300),
    ("<http://e/d>", P, 8, 2300),
]


@pytest.fixture
def engine() -> Iterator[Any]:
    with Engine(spark=False) as engine:
        engine.stream(S, ROWS)
        yield engine


def run(engine: Any, text: str = ALL, **options: Any) -> Any:
    query = engine.register(text, **options)
    engine.start(once=True)
    engine.await_end()
    return query


def at(ms: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC)


def test_values_and_texts_say_the_same(engine: Any) -> None:
    query = run(engine)
    texts, values = query.to_polars(terms=True), query.to_polars()
    assert texts["report"].to_list() == [1000, 1000, 2000, 3000]
    assert values.equals(typed_frame(texts)[0])
    assert values["report"].to_list() == [at(1000), at(1000), at(2000), at(3000)]
    assert values["x"].to_list()[:2] == ["http://e/a", "http://e/b"]
    assert values["y"].to_list() == [Decimal(5), Decimal(BIG), Decimal(7), Decimal(8)]
    assert query.to_dicts()[0] == {"report": at(1000), "x": "http://e/a", "y": Decimal(5)}
    assert pl.DataFrame(query.to_arrow()).equals(values)
    assert query.to_arrow().schema.field("y").metadata[b"levada.kind"] == b"integer"
    assert query.to_pandas()["y"].tolist() == [5, BIG, 7, 8]
    assert [r.to_dicts() for r in query.results()][1:] == [
        [{"x": values["x"][2], "y": 7}],
        [{"x": "http://e/d", "y": 8}],
    ]


def test_pandas_has_types_that_can_be_reckoned_with() -> None:
    text = ALL.replace("?x ?y", "?x ?y (AVG(?y) AS ?mean)").replace("ORDER", "GROUP BY ?x ?y ORDER")
    text = text.replace(
        "?x :p ?y", "?x :p ?v OPTIONAL { ?x :p ?y FILTER(?y < 6) } BIND(?v > 6 AS ?big)"
    )
    text = text.replace("?mean)", "?mean) ?big").replace("BY ?x ?y", "BY ?x ?y ?big")
    text = text.replace("AVG(?y)", "AVG(?v)")
    rows = [("<http://e/a>", P, 5, 100), ("<http://e/b>", P, 7, 200)]
    frame = levada.query(text, {S: rows}).to_pandas()
    assert {c: str(t) for c, t in frame.dtypes.items()} == {
        "report": "datetime64[ms, UTC]", "x": "object", "y": "Int64", "mean": "float64",
        "big": "bool"
    }  # fmt: skip
    assert frame["mean"].mean() == 6
    assert frame["y"].sum() == 5


def test_a_graph_is_its_triples(engine: Any) -> None:
    query = run(engine, MADE, name="made")
    assert query.to_polars().columns == ["report", "subject", "predicate", "object"]
    assert query.to_polars()["report"].to_list() == [at(1000), at(1000), at(2000), at(3000)]
    assert sorted(query.to_polars()["object"]) == [5, 7, 8, BIG]
    first = next(query.results())
    assert set(first.to_rdflib()) == {
        (rdflib.URIRef("http://e/a"), rdflib.URIRef("http://e/q"), rdflib.Literal(5)),
        (rdflib.URIRef("http://e/b"), rdflib.URIRef("http://e/q"), rdflib.Literal(BIG)),
    }
    assert first.to_polars().columns == ["subject", "predicate", "object"]
    dataset = query.to_rdflib()
    assert {str(g.identifier) for g in dataset.graphs() if len(g)} == {
        f"urn:levada:made:{time}000" for time in (1, 2, 3)
    }


def test_rdflib_has_the_terms_as_they_are_written() -> None:
    odd = '"01"^^<http://www.w3.org/2001/XMLSchema#integer>'
    rows = [
        ("<http://e/a>", P, odd, 1),
        ("<http://e/b>", P, '"x"@en', 2),
        ("_:c", P, '"\\u00e9"', 3),
    ]
    found = levada.query(ALL, {S: rows})
    result = found.reports[0].to_rdflib()
    assert [str(v) for v in result.vars or ()] == ["x", "y"]
    literals = {b[rdflib.Variable("y")] for b in result.bindings}
    assert literals == {
        rdflib.Literal("01", datatype=rdflib.XSD.integer, normalize=False),
        rdflib.Literal("x", lang="en"),
        rdflib.Literal("é"),
    }
    assert found.to_rdflib().bindings[0][rdflib.Variable("report")].toPython() == at(1000)
    answers = levada.query(ASKED, {S: rows})
    assert answers.reports[0].to_rdflib().askAnswer is True
    assert answers.to_dicts() == [{"report": at(1000), "boolean": True}]


def test_without_a_result_there_are_columns(engine: Any) -> None:
    query = run(engine, ALL.replace(":p ?y", ":none ?y"))
    assert query.to_polars().schema == {
        "report": pl.Datetime("ms", "UTC"),
        "x": pl.Null,
        "y": pl.Null,
    }
    assert len(query.to_pandas()) == query.to_arrow().num_rows == 0


def test_what_is_not_installed_is_named_with_its_line(engine: Any, monkeypatch: Any) -> None:
    query = run(engine)
    for name in ("pandas", "rdflib"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(UsageError, match=rf"needs {name}.*pip install 'levada\[{name}\]'"):
            getattr(query, f"to_{name}")()
    assert optional_imports._module("json", "x", "y").__name__ == "json"


# -- files and callbacks --


def test_files_as_the_command_line_writes_them(tmp_path: Path) -> None:
    with Engine(spark=False) as engine:
        engine.stream(S, ROWS)
        csv = engine.register(ALL, name="csv", out=tmp_path, format="csv")
        parquet = engine.register(ALL, name="pq", out=tmp_path, format="parquet")
        texts = engine.register(ALL, name="texts", out=tmp_path, format="parquet", terms=True)
        other = engine.register(ALL, name="other")
        with pytest.raises(UsageError, match=r"no format of results csw\. Did you mean csv"):
            engine.register(ALL, out=tmp_path, format="csw")
        with pytest.raises(UsageError, match="nt cannot hold"):
            engine.register(ALL, out=tmp_path, format="nt")
        engine.start(once=True)
        engine.await_end()
        assert not (tmp_path / other.name).exists()
        lines = [f.read_text().splitlines() for f in sorted((tmp_path / csv.name).iterdir())]
        assert lines[0][1] == "1000,http://e/a,5"
        for query, terms in ((parquet, False), (texts, True)):
            (path,) = (tmp_path / query.name).iterdir()
            assert pl.DataFrame(pq.read_table(path)).equals(query.to_polars(terms=terms))
    with Engine(spark=False) as engine:
        engine.stream(S, ROWS)
        with pytest.raises(UsageError, match="holds results of another run"):
            engine.register(ALL, name="q", out=tmp_path)
        assert engine.queries() == []
        engine.register(ALL, name="q", out=tmp_path, overwrite=True)
    assert not (tmp_path / "csv").exists() or not list((tmp_path / "csv").iterdir())


def test_a_callback_has_every_report_once_in_order_and_may_fail(monkeypatch: Any) -> None:
    told: list[BaseException | None] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: told.append(args.exc_value))
    seen: list[int] = []

    def sink(report: Report) -> None:
        assert report.time is not None
        seen.append(report.time)
        if report.time == 2000:
            raise ValueError("no")

    with Engine(spark=False, epoch_rows=1) as engine:
        engine.stream(S, ROWS)
        engine.register(ALL, sink=sink)
        engine.start(once=True)
    # the end of with has waited for the reader, if not for the engine
    assert seen == sorted(seen)
    with Engine(spark=False, epoch_rows=1) as engine:
        seen.clear()
        told.clear()
        engine.stream(S, ROWS)
        engine.register(ALL, sink=sink)
        engine.start(once=True)
        engine.await_end()
    assert seen == [1000, 2000, 3000]
    assert [str(error) for error in told] == ["no"]


# -- asyncio --


def test_asyncio_reads_reports_and_awaits_the_end() -> None:
    async def main() -> list[int | None]:
        async with Engine(spark=False) as engine:
            engine.stream(S)
            query = engine.register(ALL)
            seen: list[int | None] = []

            async def read() -> None:
                async for report in query:
                    seen.append(report.time)
                    if report.time == 2000:
                        engine.stop()

            reader = asyncio.create_task(read())
            await asyncio.sleep(0.01)
            before = threading.active_count()
            engine.start()
            for row in ROWS:
                engine.push(S, [row])
            await asyncio.wait_for(engine.wait_for_end(), PATIENCE)
            await asyncio.wait_for(reader, PATIENCE)
            assert before <= threading.active_count() + 1
            return seen

    assert asyncio.run(main()) == [1000, 2000]


def test_asyncio_raises_what_made_the_engine_fail() -> None:
    def broken() -> Iterator[Any]:
        yield ROWS[0]
        raise OSError("gone")

    async def main() -> None:
        async with Engine(spark=False) as engine:
            engine.stream(S, broken())
            query = engine.register(ALL)
            engine.start()
            with pytest.raises(
                EngineError, match=r"source of the stream .* failed: OSError\('gone'\)"
            ):
                async for _ in query:
                    pass
            with pytest.raises(EngineError, match="gone"):
                await engine.wait_for_end()

    asyncio.run(asyncio.wait_for(main(), PATIENCE))


# -- the end --


def test_reading_after_the_end_says_that_the_engine_is_closed() -> None:
    with Engine(spark=False) as engine:
        engine.stream(S, ROWS)
        query = run(engine)
        reader = query.results()
        next(reader)
    for read in (query.to_polars, lambda: next(query.results()), lambda: list(reader)):
        with pytest.raises(UsageError, match="The engine is closed: its results went with"):
            read()


def test_results_in_a_checkpoint_stay_readable(tmp_path: Path) -> None:
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream(S, ROWS)
        query = run(engine)
    assert query.to_polars().height == 4


LEFT = """
import levada, tempfile
tempfile.tempdir = {folder!r}
engine = levada.Engine(spark=False)
engine.stream("http://e/s")
query = engine.register({text!r})
engine.start()
engine.push("http://e/s", [("<http://e/a>", "<http://e/p>", 5, 100)])
print(engine.root)
"""


def test_an_engine_that_nobody_closes_leaves_nothing(tmp_path: Path) -> None:
    program = LEFT.format(folder=str(tmp_path), text=ALL)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stderr == ""
    assert Path(done.stdout.strip()).parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def test_an_engine_that_is_forgotten_is_closed() -> None:
    engine = Engine(spark=False)
    engine.stream(S)
    engine.start()
    root = engine.root
    assert root.exists()
    del engine
    gc.collect()
    assert not root.exists()


# -- notebooks --


def test_html_escapes_and_shows_the_last_rows(engine: Any) -> None:
    query = engine.register(ALL, name="hot")
    assert "hot: not started" in query._repr_html_()
    engine.start(once=True)
    engine.await_end()
    assert "hot: ended" in query._repr_html_()
    assert "<td>http://e/d</td><td>8</td>" in query._repr_html_()
    assert "<td>hot</td><td>4</td>" in engine.status()._repr_html_()
    report = levada.query(ALL, {S: [("<http://e/a>", P, '"<b>"', 1)]}).reports[0]
    assert "<td>&lt;b&gt;</td>" in report._repr_html_()
    assert "at 1970-01-01 00:00:01+00:00" in report._repr_html_()


def test_ipython_shows_the_sentence_of_an_error() -> None:
    program = "\n".join(
        (
            "from IPython.core.interactiveshell import InteractiveShell",
            "shell = InteractiveShell.instance(colors='nocolor')",
            "shell.run_cell('import levada; levada.query(\"SELEC ?x {}\")')",
        )
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE
    )
    assert "SELEC cannot stand here" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert LevadaError("No.", hint="Yes.")._render_traceback_() == ["LevadaError: No. Yes."]


def test_a_live_table_follows_the_query(engine: Any, monkeypatch: Any) -> None:
    from IPython import display

    shown: list[str] = []

    class Handle:
        def update(self, value: Any) -> None:
            shown.append(value._repr_html_())

    monkeypatch.setattr(display, "display", lambda value, display_id: Handle())
    query = engine.register(ALL, name="hot")
    thread = query.live(0.01)
    engine.start(once=True)
    thread.join(PATIENCE)
    assert "hot: ended" in shown[-1]
    assert "<td>8</td>" in shown[-1]
