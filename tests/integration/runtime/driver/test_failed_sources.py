"""A stream that cannot be read any more is left out: the others are read, and no row is lost."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from levada import Engine
from levada.engine.query import Query, collect_reports
from levada.engine.status.status import read_status
from levada.errors import AwayError, LostError, SourceError
from levada.runtime.driver import source_coordinator
from levada.runtime.task import ingest_task
from support.polling import until, until_engine

STREAMS = ("http://e/good", "http://e/bad")
TEXT = """PREFIX : <http://e/> SELECT ?v FROM NAMED WINDOW :w ON <%s>
[RANGE PT1S STEP PT1S] WHERE { WINDOW :w { ?a :p ?v } }"""


def path_of(folder: Path, stream: str) -> Path:
    return folder / f"{stream.rpartition('/')[2]}.nt"


def write(folder: Path, first: int, end: int, *streams: str) -> None:
    for stream in streams:
        with path_of(folder, stream).open("a") as file:
            for i in range(first, end):
                file.write(f'<http://e/a{i}> <http://e/p> "{i}" {100 * i} .\n')


def rows(engine: Engine, name: str) -> list[str]:
    reports = collect_reports(Query(engine._registry.get(name), engine)).reports
    return [value for report in reports for value in report.rows["v"]]


def has_rows(engine: Engine, name: str, count: int) -> bool:
    return len(rows(engine, name)) == count


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(source_coordinator, "RETRY_MS", 50)
    write(tmp_path, 0, 41, *STREAMS)
    with Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=10) as engine:
        for stream in STREAMS:
            engine.stream(stream, path_of(tmp_path, stream))
            engine.register(TEXT % stream, name=stream.rpartition("/")[2])
        yield engine


def finish(engine: Engine, folder: Path) -> None:
    """Waits until both streams are read to their ends, and compares the results."""
    for name in ("good", "bad"):
        until_engine(engine, partial(has_rows, engine, name, 80))
        assert sorted(int(row.strip('"')) for row in rows(engine, name)) == list(range(80))
    until(lambda: not read_status(folder / "ck").unavailable_streams)


@pytest.mark.filterwarnings("ignore:.*The other streams are read meanwhile")
def test_a_file_that_became_shorter_delays_its_stream_alone(tmp_path: Path, engine: Engine) -> None:
    engine.start()
    for name in ("good", "bad"):
        until_engine(engine, partial(has_rows, engine, name, 40))
    whole = path_of(tmp_path, STREAMS[1]).read_bytes()
    os.truncate(path_of(tmp_path, STREAMS[1]), 10)
    until(
        lambda: any(
            "became shorter" in away.reason
            for away in read_status(tmp_path / "ck").unavailable_streams
        )
    )
    write(tmp_path, 41, 81, STREAMS[0])
    until_engine(engine, partial(has_rows, engine, "good", 80))
    assert has_rows(engine, "bad", 40)
    path_of(tmp_path, STREAMS[1]).write_bytes(whole)
    write(tmp_path, 41, 81, STREAMS[1])
    finish(engine, tmp_path)


@pytest.mark.parametrize("kind", [SourceError, LostError, AwayError])
def test_a_stream_that_a_task_cannot_read_delays_no_other(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch, kind: type[SourceError]
) -> None:
    read = ingest_task.read

    def fail(reference: Any, config: Any) -> Any:
        if reference.stream == STREAMS[1]:
            raise kind("Its offsets are gone.")
        return read(reference, config)

    monkeypatch.setattr(ingest_task, "read", fail)
    with pytest.warns(UserWarning, match=r"are gone\. The other streams are read meanwhile"):
        engine.start()
        write(tmp_path, 41, 81, *STREAMS)
        until_engine(engine, partial(has_rows, engine, "good", 80))
    assert has_rows(engine, "bad", 0)
    monkeypatch.setattr(ingest_task, "read", read)
    finish(engine, tmp_path)


def test_a_run_of_what_is_there_ends_with_the_error(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(reference: Any, config: Any) -> Any:
        raise LostError("Its offsets are gone.")

    monkeypatch.setattr(ingest_task, "read", fail)
    engine.start(once=True)
    with pytest.raises(LostError, match=r"Epoch 1: Its offsets are gone"):
        engine.await_end()


def test_the_last_stream_that_fails_ends_the_engine(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_coordinator, "RETRY_MS", 1 << 40)

    def fail(reference: Any, config: Any) -> Any:
        raise SourceError("It cannot be read.")

    monkeypatch.setattr(ingest_task, "read", fail)
    with pytest.warns(UserWarning, match="The other streams are read meanwhile"):
        engine.start()
        with pytest.raises(SourceError, match="It cannot be read"):
            engine.await_end(60)


def test_a_static_file_that_cannot_be_read_suspends_the_query_that_came_later(
    tmp_path: Path, engine: Engine
) -> None:
    static = tmp_path / "static.nt"
    static.write_text("<http://e/x> <http://e/kind> <http://e/k> .\n")
    engine.static(static)
    engine.start()
    until_engine(engine, partial(has_rows, engine, "good", 40))
    static.write_text("<http://e/x")
    with pytest.warns(UserWarning, match=r"later is suspended, the others go on\. The static file"):
        engine.register(TEXT.replace(" ?v }", " ?v } ?x :kind ?k") % STREAMS[0], name="later")
        write(tmp_path, 41, 81, *STREAMS)
        finish(engine, tmp_path)
