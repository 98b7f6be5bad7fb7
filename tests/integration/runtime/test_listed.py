"""Event times of listed streams: in blobs or in files, with the same results; no file is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from levada.core.frame import unpack
from levada.engine.engine import Engine
from levada.engine.query_request import QueryRequest
from levada.runtime.task import element_time_broadcast
from levada.runtime.task.ingest_task import IntakeTask
from levada.runtime.task.stage_task import StageTask
from levada.testing.stream_builders import write_lines
from support.query_dsl import S, T, element

P = "PREFIX : <http://e/>\n"
ELEMENTS = [element(250 * i, f"a{i % 5} p b{i % 3}", f"b{i % 3} q a{i % 2}") for i in range(32)]
BODY = "{ WINDOW :w { ?a :p ?b . ?b :q ?c } }"
QUERIES = {
    "changes": "REGISTER ISTREAM :o AS SELECT ?a "
    f"FROM NAMED WINDOW :w ON <{S}> [RANGE PT1S] WHERE {BODY}",
    "counted": f"SELECT ?a ?c FROM NAMED WINDOW :w ON <{S}> [RANGE TRIPLES 9 STEP 4] WHERE {BODY}",
    "both": f"SELECT ?a ?d FROM NAMED WINDOW :w ON <{S}> [RANGE PT1S] "
    f"FROM NAMED WINDOW :v ON <{T}> [RANGE TRIPLES 5 STEP 2] "
    "WHERE { WINDOW :w { ?a :p ?b } WINDOW :v { ?b :q ?d } }",
    "far": f"SELECT ?b (COUNT(?a) AS ?n) FROM NAMED WINDOW :w ON <{S}> [RANGE PT1S] "
    f"WHERE {BODY} GROUP BY ?b HAVING (COUNT(?a) > 1)",
}


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, list[str], int]]:
    """Of each blob of a task: its stage, bytes, frames, files that its head names."""
    found: list[tuple[int, int, list[str], int]] = []
    for kind in (IntakeTask, StageTask):
        run: Any = kind.run

        def spied(task: Any, given: Any, run: Any = run) -> Any:
            made = run(task, given)
            for target, blob in made:
                if target >= 0:
                    frames, meta = unpack(blob)
                    files = len(meta.get(element_time_broadcast.IN_FILES, []))
                    found.append((getattr(task, "stage", 0), len(bytes(blob)), [*frames], files))
            return made

        monkeypatch.setattr(kind, "run", spied)
    return found


def run(folder: Path, partitions: int = 3) -> Any:
    """What the queries report, by an engine that is stopped once in between."""
    write_lines(folder / "s.nt", ELEMENTS)
    write_lines(folder / "t.nt", ELEMENTS[::2])
    reports: dict[str, list[Any]] = {name: [] for name in QUERIES}
    for keep_open in (True, False):
        with Engine(
            spark=False, checkpoint=folder / "ck", epoch_rows=9, partitions=partitions, seed=7
        ) as engine:
            for name, path in ((S, "s.nt"), (T, "t.nt")):
                engine.stream(name, folder / path)
            asked = [QueryRequest(P + text, name) for name, text in QUERIES.items()]
            queries = engine.register_all(asked)
            engine.start(once=True, keep_open=keep_open)
            engine.await_end()
            for query in queries:
                rows = [(r.time, sorted(map(str, r.rows.rows()))) for r in query.results()]
                reports[query.name] += rows
    left = [path.name for path in (folder / "ck" / "side").iterdir()]
    return reports, left


def test_times_in_files_are_times_in_blobs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sent: list[tuple[int, int, list[str], int]],
) -> None:
    (tmp_path / "blobs").mkdir()
    (tmp_path / "files").mkdir()
    in_blobs = run(tmp_path / "blobs")
    assert any("times.0" in frames for _, _, frames, _ in sent)
    assert not any(files for *_, files in sent), "what is little stands in each blob"
    assert all(rows for rows in in_blobs[0].values()) and not in_blobs[1]
    sent.clear()
    monkeypatch.setattr(element_time_broadcast, "COPIED", 1)
    assert run(tmp_path / "files") == in_blobs, "also that nothing is left of them"
    assert not any(name.startswith("times") for _, _, frames, _ in sent for name in frames)
    assert {stage for stage, _, _, files in sent if files} >= {0}
