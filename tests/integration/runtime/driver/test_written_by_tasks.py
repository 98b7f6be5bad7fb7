"""Files of results that tasks write are those that the driver writes, byte for byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.file_sink import FileSink, Roll
from levada.errors import SinkError
from levada.runtime.executor import Job, LocalExecutor
from levada.runtime.publication import distributed_writes

WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S]"
QUERIES = {
    "rows": f"SELECT ?a ?n {WINDOW} WHERE {{ WINDOW :w {{ ?a :p ?n }} }}",
    "order": f"SELECT ?n {WINDOW} WHERE {{ WINDOW :w {{ ?a :p ?n }} }} ORDER BY DESC(?n) LIMIT 3",
    "count": f"""SELECT ?a (COUNT(*) AS ?c) {WINDOW}
        WHERE {{ WINDOW :w {{ ?a :p ?n }} }} GROUP BY ?a""",
    "rare": f'SELECT ?a {WINDOW} WHERE {{ WINDOW :w {{ ?a :p "no" }} }}',
}
GRAPHS = {
    "made": f"CONSTRUCT {{ [] :n ?n ; :of ?a }} {WINDOW} WHERE {{ WINDOW :w {{ ?a :p ?n }} }}"
}


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    path = tmp_path / "s.nt"
    subjects = ("<http://e/a>", "<http://e/b>", "_:c")
    rows = [f'{subjects[k % 3]} <http://e/p> "v{k % 7}\\n{k}" {70 * k} .\n' for k in range(120)]
    path.write_text("".join(rows))
    return path


def written(
    stream: Path, folder: Path, form: Format, *, executor: Any = None, roll: Roll | None = None
) -> dict[str, bytes]:
    """All files of results of a run, by name."""
    out = folder / "out"
    sink = FileSink(out, form, roll or Roll())
    with Engine(
        spark=False, checkpoint=folder / "ck", sink=sink, partitions=2, epoch_rows=25, seed=7
    ) as engine:
        engine.stream("http://e/s", stream)
        for name, text in (GRAPHS if form in (Format.NQ, Format.NT) else QUERIES).items():
            engine.register(f"PREFIX : <http://e/> {text}", name=name, empty_reports=name == "rare")
        engine.start(once=True)
        engine.await_end()
        reports = dict(engine._driver.publication.delivered_reports) if engine._driver else {}
    assert all(reports.get(name) for name in ("rows", "order", "count") if name in reports)
    return {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[int]]:
    """All that is published is written by tasks, of which this says how many there were a job."""
    jobs: list[int] = []

    def count(self: Any, job: Job) -> list[bytes]:
        if job.functions == distributed_writes.FUNCTIONS:
            jobs.append(len(job.payloads))
        return run(self, job)

    run = LocalExecutor.run
    monkeypatch.setattr(LocalExecutor, "run", count)
    monkeypatch.setattr(distributed_writes, "MUCH", 1)
    monkeypatch.setattr(distributed_writes, "runs_here", lambda executor, job: False)
    monkeypatch.setattr(distributed_writes, "_unseen", set())
    return lambda: jobs


FORMATS = [f for f in Format if f not in (Format.TRIG, Format.JSONLD, Format.JELLY)]


@pytest.mark.long
@pytest.mark.parametrize("form", FORMATS)
def test_files_are_the_same(
    stream: Path, tmp_path: Path, form: Format, monkeypatch: pytest.MonkeyPatch, request: Any
) -> None:
    by_driver = written(stream, tmp_path / "driver", form)
    counted = request.getfixturevalue("tasks")
    assert _results(written(stream, tmp_path / "tasks", form)) == _results(by_driver)
    assert max(counted()) == (1 if form in (Format.NQ, Format.NT) else 4)


def test_held_back_epochs_are_one_file(stream: Path, tmp_path: Path, request: Any) -> None:
    roll = Roll(age=10**9)
    by_driver = written(stream, tmp_path / "driver", Format.CSV, roll=roll)
    counted = request.getfixturevalue("tasks")
    assert _results(written(stream, tmp_path / "tasks", Format.CSV, roll=roll)) == _results(
        by_driver
    )
    assert counted() == [4]


def test_a_host_that_does_not_see_the_folder(
    stream: Path, tmp_path: Path, tasks: Callable[[], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_mark, marks = distributed_writes.mark_of, iter(["another"])
    # the driver reads the mark first, then the task does
    monkeypatch.setattr(
        distributed_writes, "mark_of", lambda out: next(marks, None) or read_mark(out)
    )
    found = written(stream, tmp_path / "tasks", Format.CSV)
    assert len(tasks()) == 1, "it is asked once"
    monkeypatch.undo()
    assert _results(found) == _results(written(stream, tmp_path / "driver", Format.CSV))


def test_what_cannot_be_written_is_a_sentence(
    stream: Path, tmp_path: Path, tasks: Callable[[], list[int]]
) -> None:
    (tmp_path / "t" / "out").mkdir(parents=True)
    (tmp_path / "t" / "out" / "rows").write_text("a file, and no folder")
    with pytest.raises(SinkError, match="rows"):
        written(stream, tmp_path / "t", Format.CSV)


def _results(found: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in found.items() if not name.startswith(".")}
