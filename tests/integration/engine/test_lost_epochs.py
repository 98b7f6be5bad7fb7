"""An epoch whose tasks are lost is run again: what is published is right, what the attempts have
left goes while the engine runs, and each is told.
"""

from pathlib import Path
from typing import Any

import pytest

from levada.checkpoint.manifest import Manifest
from levada.connectors.serialization.serialize import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.engine import Engine
from levada.engine.status.status import read_status
from levada.errors import LostTaskError
from levada.runtime import epoch_pipeline
from levada.runtime.driver import stream_progress
from levada.runtime.executor import Job, LocalExecutor
from levada.testing.compare import read_ndjson
from levada.testing.stream_builders import write_lines
from support.fault_injection import nobody
from support.query_dsl import S, element, judge, query, step

QUERY = query(
    "SELECT ?a (SUM(?n) AS ?m)", "WINDOW :w { ?a :p ?n }", tail=" GROUP BY ?a", name="sum",
    windows={"w": (S, step(2000, 1000))},
)  # fmt: skip
ELEMENTS = [element(300 * i, f"a{i % 3} p {i}") for i in range(40)]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("levada.engine.epoch_loop.PAUSES", (0.0, 0.0, 0.0))
    monkeypatch.setattr(stream_progress, "find_crashes", nobody)
    monkeypatch.setattr(epoch_pipeline, "rehearse", lambda job: None)
    write_lines(tmp_path / "s.nt", ELEMENTS)
    sink = FileSink(tmp_path / "out", Format.NDJSON)
    with Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=10, sink=sink) as made:
        made.stream(S, tmp_path / "s.nt")
        made.register(QUERY.text, name="sum")
        yield made


def losing(monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """The second job does all of its work, and its outcomes are lost, so many times."""
    jobs, run = iter([False] + [True] * times + [False] * 99), LocalExecutor.run

    def lose(self: LocalExecutor, job: Job) -> list[bytes]:
        outcomes = run(self, job)
        if next(jobs):
            raise LostTaskError("Spark could not run the epoch: Executor 1 is gone.")
        return outcomes

    monkeypatch.setattr(LocalExecutor, "run", lose)


def test_the_epoch_is_run_again(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ck, counts = tmp_path / "ck", []

    def look(manifest: Manifest) -> None:
        counts.append((len(list((ck / "state").iterdir())), len(manifest.files)))

    engine._on_epoch(look)
    losing(monkeypatch, 3)
    engine.start(once=True)
    told = "Epoch 2 has lost tasks {}, and is run again: Spark could not run the epoch: Executor 1"
    with pytest.warns(UserWarning, match=told.format("3 times")):
        engine.await_end()
    names = sorted((tmp_path / "out" / "sum").iterdir())
    judge([QUERY], {S: ELEMENTS}, read_ndjson(line for p in names for line in p.open()))
    there, named = counts[1]
    assert there <= named + counts[0][1], "what three attempts have left is gone"
    assert read_status(ck).lost_tasks == "", "it is over"


def test_a_fourth_loss_ends_the_engine(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losing(monkeypatch, 4)
    engine.start(once=True)
    with pytest.raises(LostTaskError, match="Executor 1 is gone"):
        engine.await_end()
    assert read_status(tmp_path / "ck").lost_tasks == (
        "Epoch 2 has lost tasks 4 times, and has ended the engine: "
        "Spark could not run the epoch: Executor 1 is gone."
    )
