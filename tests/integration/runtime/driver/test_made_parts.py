"""A made stream that several tasks read: as many as it has segments, and nothing of it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from levada.connectors.sources.splits import DerivedSplit
from levada.engine.engine import Engine
from levada.engine.query_request import QueryRequest
from levada.runtime.driver import derived_streams
from levada.testing.stream_builders import write_lines
from support.query_dsl import S, element, step

P = "PREFIX : <http://e/>\n"
# each report has its triples, and its look-alikes, from several partitions
ELEMENTS = [element(250 * i, f"a{i % 11} p b{i % 3}", f"a{i % 7} p b{i % 2}") for i in range(48)]
WINDOW = f"FROM NAMED WINDOW :w ON <{S}> {step(4000, 2000).rspql} "
BODY = "WHERE { WINDOW :w { ?a :p ?b } }"
MAKERS = {
    "triples": "CONSTRUCT { ?a :of ?b . :all :has ?b . ?b :has ?a }",
    "nodes": "CONSTRUCT { _:n :of ?b . :all :has _:n }",
    "no triples of some": "CONSTRUCT { ?a :of ?b . ?b ?b :all }",
}
READERS = {
    "rows": "SELECT ?x ?b FROM NAMED WINDOW :w ON :m [RANGE PT6S STEP PT3S] "
    "WHERE { WINDOW :w { ?x :of ?b } }",
    "counts": "SELECT (COUNT(DISTINCT ?x) AS ?n) (COUNT(*) AS ?k) FROM NAMED WINDOW :w ON :m "
    "[RANGE PT6S STEP PT3S] WHERE { WINDOW :w { ?x :of ?b . :all :has ?y } }",
    "changes": "REGISTER ISTREAM :i AS SELECT ?b ?y FROM NAMED WINDOW :w ON :m [RANGE PT5S] "
    "WHERE { WINDOW :w { ?x :of ?b . :all :has ?y } }",
    "last": "SELECT ?x ?y FROM NAMED WINDOW :w ON :m [RANGE TRIPLES 30 STEP 5] "
    "WHERE { WINDOW :w { ?x ?p ?y } }",
}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[list[DerivedSplit]]:
    """The references of each epoch to what was made, where there are three tasks at once."""
    found: list[list[DerivedSplit]] = []
    asked: Any = derived_streams.references

    def seen(*args: Any) -> list[DerivedSplit]:
        found.append(list(asked(*args[:-1], 3)))
        return found[-1]

    monkeypatch.setattr(derived_streams, "references", seen)
    return found


def run(folder: Path, maker: str, partitions: int) -> tuple[Any, Any]:
    """What the readers and the maker report, and what is told of the made stream."""
    folder.mkdir()
    write_lines(folder / "s.nt", ELEMENTS)
    with Engine(
        spark=False, checkpoint=folder / "ck", epoch_rows=20, partitions=partitions, seed=7
    ) as engine:
        engine.stream(S, folder / "s.nt")
        asked = [QueryRequest(f"{P}REGISTER RSTREAM :m AS {MAKERS[maker]} {WINDOW}{BODY}", "m")]
        asked += [QueryRequest(P + text, name) for name, text in READERS.items()]
        made, *readers = engine.register_all(asked)
        engine.start(once=True)
        engine.await_end()
        reports = {
            q.name: [(r.time, sorted(map(str, r.rows.rows()))) for r in q.results()]
            for q in readers
        }
        reports["m"] = [(r.time, sorted(r.graph.splitlines())) for r in made.results()]
        record = next(r for name, r in engine._records().items() if name != S)
        return reports, (
            record.elements,
            record.max_ts,
            record.watermark,
            record.unaccounted_elements,
        )


@pytest.mark.parametrize(("maker", "partitions"), [*zip(MAKERS, (5, 2, 3), strict=True)])
def test_it_does_not_show_how_many_tasks_read_a_made_stream(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    read: list[list[DerivedSplit]],
    maker: str,
    partitions: int,
) -> None:
    one = run(tmp_path / "one", maker, partitions)
    assert {len(own) for own in read} == {0, 1}, "few solutions are for one task"
    read.clear()
    monkeypatch.setattr(derived_streams, "EACH", 1)
    assert run(tmp_path / "several", maker, partitions) == one
    assert any(rows for _, rows in one[0]["last"])
    most = max(read, key=len)
    assert len(most) == min(partitions, 3), "as many as segments, but not more than tasks"
    names = [name for own in most for name in own.segments]
    assert len(most) <= len(names) == len(set(names)) <= partitions, "each segment is read once"
    assert all(own.parts == len(most) and own.size > 0 for own in most)
