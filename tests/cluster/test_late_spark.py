"""Spark that comes late: what a run publishes is what one without Spark does, by file and row,
wherever it switches, and whatever is killed around that.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
from levada_kill import THERE
from msgspec.structs import replace

from levada.checkpoint.manifest import Manifest, StreamRecord
from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.file_sink import FileSink
from levada.engine.engine import Engine
from levada.runtime.executor import Executor
from levada.runtime.spark.spark_executor import SparkExecutor
from levada.runtime.warmup_executor import WarmupExecutor
from support.polling import PATIENCE

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1500)]

QUERIES = {
    "join": """PREFIX : <http://e/>
REGISTER RSTREAM :o AS SELECT ?a ?n ?m
FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT2S STEP PT1S]
FROM NAMED WINDOW :v ON <http://e/t> [RANGE PT3S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?n } WINDOW :v { ?a :q ?m } }""",
    "sum": """PREFIX : <http://e/>
REGISTER RSTREAM :o AS SELECT ?a (SUM(?n) AS ?s) ?room
FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT4S STEP PT2S]
WHERE { WINDOW :w { ?a :p ?n } ?a :in ?room } GROUP BY ?a ?room""",
}
EPOCHS = 16


def lines(predicate: str, rng: random.Random) -> str:
    return "".join(
        f"<http://e/a{rng.randint(0, 9)}> <http://e/{predicate}> "
        f'"{rng.randint(0, 99)}"^^<http://www.w3.org/2001/XMLSchema#integer> {40 * i} .\n'
        for i in range(50 * EPOCHS)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("late")
    rng = random.Random(11)
    (folder / "s.nt").write_text(lines("p", rng))
    (folder / "t.nt").write_text(lines("q", rng))
    rooms = (f"<http://e/a{i}> <http://e/in> <http://e/r{i % 3}> .\n" for i in range(10))
    (folder / "rooms.nt").write_text("".join(rooms))
    for name, text in QUERIES.items():
        (folder / f"{name}.rq").write_text(text)
    return folder


class After:
    """The start of an executor that is there when ``go`` is set."""

    def __init__(self, executor: Executor) -> None:
        self.executor, self.go = executor, threading.Event()

    def find(self) -> None:
        pass

    def start(self) -> Executor:
        assert self.go.wait(600)
        return self.executor

    def check(self) -> None:
        pass

    def end(self) -> None:
        self.go.set()


class LateEngine(Engine):
    """An engine whose Spark comes with the manifest of an epoch."""

    def __init__(self, session: Any, comes: int, **given: Any) -> None:
        super().__init__(**given)
        self.after, self.comes = After(SparkExecutor(session)), comes
        self._on_epoch(self._passed)

    def _executor(self) -> Executor:
        self.late = WarmupExecutor(self.after, here=True)
        self._held.callback(self.late.end)
        return self.late

    def _passed(self, manifest: Any) -> None:
        if manifest.epoch == self.comes:
            self.after.go.set()
            self.late.await_warm()


def content(folder: Path) -> dict[str, bytes]:
    """The files below a folder, each with its rows in their order."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix == ".ndjson"
    }


def rows(folder: Path) -> dict[str, list[tuple[int, list[str]]]]:
    """The reports of each file, each with its rows: their order goes by the checkpoint's seed."""
    found = {}
    for name, data in content(folder).items():
        reports = [json.loads(line) for line in data.splitlines()]
        found[name] = [
            (r["report"], sorted(map(json.dumps, r["results"]["bindings"]))) for r in reports
        ]
    return found


def published(engine: Engine, folder: Path, out: Path) -> dict[str, bytes]:
    for name in "st":
        engine.stream(f"http://e/{name}", folder / f"{name}.nt")
    engine.static(folder / "rooms.nt")
    for name, text in QUERIES.items():
        engine.register(text, name=name)
    engine.start(once=True)
    engine.await_end()
    return content(out)


def last_of(engine: Engine) -> Manifest:
    assert engine._driver is not None, "it has been started"
    return engine._driver.last


def streams_of(manifest: Manifest) -> dict[str, StreamRecord]:
    """The records of streams, without the clock of the epochs that read their latest elements."""
    return {
        name: replace(record, lead=record.lead and replace(record.lead, wall_ms=0))
        for name, record in manifest.streams.items()
    }


def options(out: Path) -> dict[str, Any]:
    sink = FileSink(out, Format.NDJSON)
    return {"sink": sink, "epoch_rows": 100, "partitions": 2, "seed": 5}


@pytest.mark.parametrize(
    "comes", [1, *(pytest.param(i, marks=pytest.mark.long) for i in (2, 7)), EPOCHS]
)
def test_results_are_the_same_wherever_spark_comes(
    spark: Any, folder: Path, tmp_path: Path, comes: int
) -> None:
    with Engine(spark=False, **options(tmp_path / "here")) as engine:
        expected = published(engine, folder, tmp_path / "here")
        manifest = last_of(engine)
        assert manifest.epoch >= EPOCHS
    with LateEngine(spark, comes, **options(tmp_path / "late")) as engine:
        assert published(engine, folder, tmp_path / "late") == expected
        late = last_of(engine)
        assert engine._driver is not None and engine._driver._late is not None
        assert engine._driver._late.is_warm
    assert (late.epoch, late.totals, streams_of(late)) == (
        manifest.epoch,
        manifest.totals,
        streams_of(manifest),
    )
    assert len(expected) > EPOCHS


def start(folder: Path, root: Path, here: int, *more: str) -> subprocess.Popen[str]:
    """A run of the command line; so many of its jobs run before Spark is there."""
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    given = [str(folder / f"{name}.rq") for name in QUERIES]
    for name in "st":
        given += ["--stream", f"http://e/{name}={folder}/{name}.nt"]
    given += ["--static", f"{folder}/rooms.nt", "--epoch-rows", "100", "--epoch", "0", "--close"]
    given += ["--checkpoint", f"{root}/ck", "--out", f"{root}/out", *more]
    return subprocess.Popen(
        [sys.executable, "-m", "levada_kill", "run", *given],
        env={**os.environ, "PYTHONPATH": path, "LEVADA_JOBS_HERE": str(here)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.long
def test_results_are_the_same_whatever_is_killed_around_the_switch(
    folder: Path, tmp_path: Path, random_seed: int
) -> None:
    rng = random.Random(random_seed)
    calm = start(folder, tmp_path / "calm", 0, "--master", "none")
    _, said = calm.communicate(timeout=400)
    assert calm.returncode == 0, said
    expected = rows(tmp_path / "calm" / "out")
    assert len(expected) > EPOCHS
    for _ in range(2):
        process = start(folder, tmp_path / "late", rng.randint(0, 6), "--master", "local[2]")
        assert process.stderr is not None
        if not any(THERE in line for line in process.stderr):
            assert process.wait(PATIENCE) == 0  # fewer jobs were left than were to run before
            break
        time.sleep(rng.uniform(0, 0.3))
        family = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        _, alive = psutil.wait_procs(family, timeout=PATIENCE)
        assert not alive
        if b'"ended":true' in _last_manifest(tmp_path / "late" / "ck"):
            break
    last = start(folder, tmp_path / "late", rng.randint(0, 6), "--master", "local[2]")
    _, said = last.communicate(timeout=400)
    assert last.returncode == 0, said
    assert rows(tmp_path / "late" / "out") == expected


def _last_manifest(checkpoint: Path) -> bytes:
    found = [p for p in (checkpoint / "manifests").glob("*") if p.name.isdigit()]
    return max(found, key=lambda p: int(p.name)).read_bytes() if found else b""
