"""An engine whose executor is late: what runs before, what waits, what is told."""

import threading
from pathlib import Path
from typing import Any

import pytest

from levada.engine import engine_driver
from levada.engine.engine import Engine
from levada.errors import JavaError
from levada.runtime.executor import Executor, LocalExecutor
from levada.runtime.warmup_executor import WarmupExecutor
from support.polling import PATIENCE, until_engine

QUERY = """PREFIX : <http://e/>
SELECT ?s ?v FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S] WHERE { WINDOW :w { ?s :p ?v } }
"""


class Start:
    """A start that is over when it is let; ``ran`` are the threads of jobs on its executor."""

    def __init__(self, *, missing: Exception | None = None) -> None:
        self.missing, self.ended = missing, False
        self.go = threading.Event()
        self.jobs = 0

    def find(self) -> None:
        if self.missing is not None:
            raise self.missing

    def start(self) -> Executor:
        assert self.go.wait(PATIENCE)
        if self.ended:
            raise JavaError("It was ended.")
        return self

    def run(self, job: Any) -> list[bytes]:
        self.jobs += 1
        return LocalExecutor().run(job)

    def check(self) -> None:
        pass

    def end(self) -> None:
        self.ended = True
        self.go.set()


class LateEngine(Engine):
    """An engine with such a start in Spark's place."""

    def __init__(self, begin: Start, *, here: bool = True, **given: Any) -> None:
        super().__init__(**given)
        self.begin, self.here = begin, here

    def _executor(self) -> Executor:
        late = WarmupExecutor(self.begin, here=self.here)
        self._held.callback(late.end)
        return late


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    lines = (f'<http://e/a> <http://e/p> "{i}" {500 * i} .\n' for i in range(20))
    (tmp_path / "s.nt").write_text("".join(lines))
    return tmp_path / "s.nt"


def times(engine: Engine, stream: Path, **how: Any) -> list[int | None]:
    engine.stream("http://e/s", stream)
    query = engine.register(QUERY)
    engine.start(once=True, **how)
    return [report.time for report in query.results()]


ALL = [1000 * (i + 1) for i in range(11)]


def test_a_run_that_is_through_before_waits_for_nobody(stream: Path) -> None:
    begin = Start()
    with LateEngine(begin) as engine:
        assert times(engine, stream) == ALL
        assert not begin.go.is_set()
    assert begin.ended, "the start is ended with the engine"
    assert begin.jobs == 0


def test_what_is_missing_is_told_however_quick_the_run_is(stream: Path) -> None:
    missing = Start(missing=JavaError("No Java."))
    with LateEngine(missing) as engine, pytest.raises(JavaError, match=r"No Java\."):
        times(engine, stream)


@pytest.mark.parametrize("limit", ["MOST_HERE", "MOST_BYTES_HERE", "cluster"])
def test_a_large_epoch_and_a_cluster_wait(
    stream: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    if limit != "cluster":
        monkeypatch.setattr(engine_driver, limit, 5)
    begin = Start()
    with LateEngine(begin, here=limit != "cluster") as engine:
        engine.stream("http://e/s", stream)
        query = engine.register(QUERY)
        engine.start(once=True)
        until_engine(engine, lambda: engine.progress().line() == "Spark is starting")
        begin.go.set()
        assert [report.time for report in query.results()] == ALL
    assert begin.jobs > 0


def test_large_static_data_wait(stream: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_driver, "MOST_STATIC_HERE", 5)
    begin = Start()
    with LateEngine(begin) as engine:
        engine.static(["<http://e/a> <http://e/in> <http://e/b>"])
        engine.stream("http://e/s", stream)
        query = engine.register(QUERY)
        engine.start(once=True)
        assert not engine.await_end(0.3)
        begin.go.set()
        assert [report.time for report in query.results()] == ALL


def test_a_stop_while_an_epoch_waits_leaves_it_to_the_next_run(
    stream: Path, tmp_path: Path
) -> None:
    with LateEngine(Start(), here=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream("http://e/s", stream)
        engine.register(QUERY, name="q")
        engine.start(once=True)
        while not (tmp_path / "ck" / "intentions" / "open").exists():
            assert not engine.await_end(0.01)
        engine.stop(PATIENCE)
        assert not engine.running
    assert (tmp_path / "ck" / "intentions" / "open").exists(), "it is written ahead as it was"
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream("http://e/s", stream)
        query = engine.register(QUERY, name="q")
        engine.start(once=True)
        assert [report.time for report in query.results()] == ALL
    assert not (tmp_path / "ck" / "intentions" / "open").exists()


def test_the_master_none_is_no_spark(stream: Path) -> None:
    with Engine(master="none") as engine:
        assert times(engine, stream) == ALL
        assert engine._driver is not None and engine._driver._late is None
