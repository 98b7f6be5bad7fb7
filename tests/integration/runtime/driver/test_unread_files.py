"""A file that comes when one with a later name is being read: nothing of it is read, and that is
told.
"""

import json
from pathlib import Path
from typing import Any

from levada.cli.status import show
from levada.engine.engine import Engine
from levada.engine.status.status import read_status
from levada.engine.status.status_document import status_document
from levada.testing.stream_builders import write_lines
from support.polling import until_engine
from support.query_dsl import S, element, query, step

QUERY = query(
    "SELECT ?a ?n", "WINDOW :w { ?a :p ?n }", name="all", windows={"w": (S, step(1000, 1000))}
)


def wait(engine: Any, done: Any) -> None:
    until_engine(engine, done)


def test_a_file_that_comes_too_late_is_a_dead_letter(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write_lines(folder / "b.nt", [element(1000, "a p 1")])
    with Engine(spark=False, checkpoint=tmp_path / "ck", letters=tmp_path / "out") as engine:
        engine.stream(S, folder)
        query = engine.register(QUERY.text, name="all")
        engine.start()
        wait(engine, lambda: engine.progress().elements == 1)
        write_lines(folder / "a.nt", [element(1500, "late p 2"), element(1600, "late p 3")])
        wait(engine, lambda: engine._records()[S].late_files)
        write_lines(folder / "c.nt", [element(9000, "a p 4")])
        wait(engine, lambda: engine.progress().elements == 2)
        engine.stop()
        record = engine._records()[S]
        assert (record.elements, record.dead_letters, record.late_files, record.late) == (
            2,
            1,
            1,
            0,
        )
        assert "late" not in str(query.to_polars(terms=True))
    letters = [
        json.loads(line)
        for file in (tmp_path / "out" / "dead-letter").iterdir()
        for line in file.open()
    ]
    assert [(letter["stream"], letter["source"]) for letter in letters] == [(S, "a.nt")]
    assert "later name" in letters[0]["reason"]
    status = read_status(tmp_path / "ck")
    assert status_document(tmp_path / "ck", status, 0.0)["streams"][S]["late_files"] == 1
    assert any("1 file was not read" in str(part) for part in show(status).renderables)
