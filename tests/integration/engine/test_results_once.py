"""Results that several queries have are written once, and each query has them: whatever they are
called and made of, wherever they are read, while queries come, end and go.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.query import Query
from support.polling import until

S = "http://e/s"
HEAD = "PREFIX : <http://e/> "
FROM = " FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S] WHERE { WINDOW :w { ?a :p ?n } }"
SAME = {
    "plain": HEAD + "SELECT ?a ?n" + FROM,
    "equal": HEAD + "SELECT ?a ?n" + FROM,
    "renamed": HEAD + "SELECT ?s ?o" + FROM.replace("?a", "?s").replace("?n", "?o"),
    "graph": HEAD + "CONSTRUCT { ?a :q ?n . [] :r ?n }" + FROM,
    "longer": HEAD + "CONSTRUCT { ?a :longer ?n }" + FROM,
}
COPIES = {f"{name}-{i}": text for name, text in SAME.items() for i in range(8)}
SECONDS = 16
Rows = list[tuple[Any, Any]]


def write(path: Path, first: int = 0, last: int = SECONDS) -> None:
    with path.open("a") as file:
        for i in range(first * 50, last * 50):
            file.write(f'<http://e/a{i % 7}> <http://e/p> "{i}" {20 * i} .\n')


def engine(folder: Path, **more: Any) -> Engine:
    made = Engine(spark=False, checkpoint=folder / "ck", epoch_rows=100, **more)
    made.stream(S, folder / "s.nt")
    return made


def rows(asked: Query) -> Rows:
    """Reports; of graphs without what is a blank node's, whose label has the query's name."""
    return [
        (report.time, sorted(report.rows.rows()))
        if report.graph is None
        else (report.time, sorted(x for x in report.graph.splitlines() if x[0] != "_"))
        for report in asked.results()
    ]


def right(folder: Path, text: str, **said: Any) -> Rows:
    """What a query says in an engine of its own."""
    folder.mkdir()
    write(folder / "s.nt")
    with engine(folder) as alone:
        asked = alone.register(text, **said)
        alone.start(once=True)
        alone.await_end()
        return rows(asked)


@pytest.mark.long
@pytest.mark.parametrize(("mode", "partitions"), [("exact", 3), ("relax", 1)])
def test_what_is_alike_is_there_once(tmp_path: Path, mode: str, partitions: int) -> None:
    said = {name: right(tmp_path / name, text) for name, text in SAME.items()}
    assert all(len(found) > 11 for found in said.values())
    written = []
    for queries in (SAME, COPIES):
        folder = tmp_path / str(len(queries))
        folder.mkdir()
        write(folder / "s.nt")
        with engine(folder, partitions=partitions, sharing=mode) as many:
            asked = [many.register(text, name=name) for name, text in queries.items()]
            many.start(once=True)
            many.await_end()
            for one in asked:
                assert rows(one) == said[one.name.rstrip("-0123456789")], one.name
            each = sum(len(found) for _, found in said["plain"])
            assert many.progress().results == each * len(queries)
            files = (folder / "ck" / "results").iterdir()
            written.append(sum(path.stat().st_size for path in files))
    assert written[1] < 1.6 * written[0], "forty queries, where five are"


def test_who_ends_comes_and_goes_has_what_is_its_own(tmp_path: Path) -> None:
    """Also where the one whose rows are there goes first."""
    write(tmp_path / "s.nt", 0, 8)
    lives: dict[str, Any] = {
        "whole": {},
        "to-12": {"until": "1970-01-01T00:00:12Z"},
        "as-long": {},
        "too": {},
    }
    lives["too"] = lives["to-12"]
    said = {name: right(tmp_path / name, SAME["plain"], **life) for name, life in lives.items()}
    assert len(said["to-12"]) < len(said["whole"])
    with engine(tmp_path) as some:
        first = some.register(SAME["plain"], name="first")
        asked = [some.register(SAME["plain"], name=name, **life) for name, life in lives.items()]
        some.start()
        until(lambda: some.progress().elements == 400)
        some.unregister(first)
        later = some.register(SAME["equal"], name="later")
        write(tmp_path / "s.nt", 8, SECONDS)
        until(lambda: some.progress().elements == 50 * SECONDS)
        some.stop()
        for one in asked:
            own = [each for each in said[one.name] if each[0] <= 15_000]
            assert rows(one)[: len(own)] == own, one.name
            assert len(rows(one)) - len(own) <= 1
        assert rows(later)[-1] in said["whole"]


@pytest.mark.filterwarnings("ignore:.*suspended")
def test_each_has_its_files_and_its_limits(tmp_path: Path) -> None:
    write(tmp_path / "s.nt")
    sink = FileSink(tmp_path / "out", Format.CSV)
    wide = FROM.replace("PT2S", "PT9S")
    texts = {**COPIES, **{f"wide-{i}": HEAD + "SELECT ?a ?n" + wide for i in range(3)}}
    with engine(tmp_path, sink=sink, partitions=2, limits="solutions=120") as many:
        for name, text in texts.items():
            many.register(text, name=name)
        many.start(once=True)
        many.await_end()
        assert set(many.status().suspended_queries) == {"wide-0", "wide-1", "wide-2"}
    for name in ("plain", "equal"):
        found = {
            "".join(
                path.read_text() for path in sorted((tmp_path / "out" / f"{name}-{i}").iterdir())
            )
            for i in range(8)
        }
        assert len(found) == 1 and found.pop().count("\n") > 1500
