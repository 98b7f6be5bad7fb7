"""An operator that ends its process twice: then its query is suspended, and the others go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from levada.checkpoint.crash_counter import DEATHS
from levada.checkpoint.verify import SUSPENDED, verify
from levada.engine.status.status import read_status
from levada.engine.watchdog import EXIT_CODE
from support.free_ports import free_port
from support.polling import until

ABORTS = """
import os
import levada.operators.operator_registry as table
evaluate = table.evaluate
def deadly(node, frames, env):
    if type(node.step).__name__ == "Panes" and int(env.progress.new.max()) > 2500:
        os.abort()
    return evaluate(node, frames, env)
table.evaluate = deadly
"""
ENDLESS = ABORTS.replace("os.abort()", "while True: pass")
HOLDING = ABORTS.replace("os.abort()", "import itertools; sum(itertools.repeat(0))")
ENDLESS_READING = """
import levada.runtime.task.ingest_task as intake
statements = intake.IntakeTask._statements
def endless(self, config, found, bounds):
    while 1 < found.reference.start < 700: pass
    return statements(self, config, found, bounds)
intake.IntakeTask._statements = endless
"""
RUN = """
import json, os, sys
from pathlib import Path
import levada
from levada.connectors.serialization.result_formats import Format
from levada.errors import LevadaError
from levada.runtime.executor import LocalExecutor
from levada.connectors.sinks.file_sink import FileSink

root, names, killed = Path(sys.argv[1]), sys.argv[2].split(","), int(sys.argv[3])
HEAD = "PREFIX : <http://e/> SELECT %s FROM NAMED WINDOW :w ON <http://e/S> [RANGE PT1S STEP PT1S] "
TEXTS = {
    "plain": HEAD % "?s ?o" + "WHERE { WINDOW :w { ?s :p ?o } }",
    "sums": HEAD % "?s (SUM(?o) AS ?n)" + "WHERE { WINDOW :w { ?s :p ?o } } GROUP BY ?s",
}
run = LocalExecutor.run
def doomed(self, job):
    if json.loads(job.context)["epoch"] == killed:
        os.kill(os.getpid(), 9)
    return run(self, job)
LocalExecutor.run = doomed
try:
    sink = FileSink(root / "out", Format.CSV)
    with levada.Engine(
        spark=False, checkpoint=root / "c", epoch_rows=5, sink=sink, watchdog=True
    ) as engine:
        engine.stream("http://e/S", root.parent / "s.nt")
        for name in names:
            engine.register(TEXTS[name], name=name)
        engine.start(once=True)
        engine.await_end()
    print(json.dumps(sorted(
        line for path in (root / "out" / "plain").glob("*.csv")
        for line in path.read_text().splitlines()[1:]
    )))
except LevadaError as error:
    print(json.dumps(str(error)))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    lines = (
        f'<http://e/a{i % 3}> <http://e/p> "{i}"^^<{integer}> {1000 + 200 * i} .\n'
        for i in range(25)
    )
    (tmp_path / "s.nt").write_text("".join(lines))
    return tmp_path


def start(root: Path, names: str, killed: int = -1, *, bare: str = "") -> tuple[int, Any]:
    """An engine in a process of its own; its status and what it says."""
    tools = root.parent / f"tools{len(bare)}"
    tools.mkdir(exist_ok=True)
    (tools / "sitecustomize.py").write_text(bare)
    run = subprocess.run(
        [sys.executable, "-c", RUN, str(root), names, str(killed)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tools), *filter(None, sys.path)])},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    return run.returncode, json.loads(run.stdout) if run.stdout else run.stderr


@pytest.mark.long
def test_an_operator_that_ends_the_process_does_so_twice(folder: Path) -> None:
    status, whole = start(folder / "whole", "plain,sums")
    assert status == 0 and len(whole) > 10
    root = folder / "root"
    for _ in range(2):
        assert start(root, "plain,sums", bare=ABORTS)[0] == -signal.SIGABRT
    assert start(root, "plain,sums", bare=ABORTS) == (0, whole)
    (why,) = read_status(root / "c").suspended_queries.values()
    assert "The query sums is suspended" in why
    assert "it ended each process that evaluated it (SIGABRT)" in why
    assert not verify(root / "c").damaged
    assert start(root, "plain", bare=ABORTS) == (0, whole)
    assert not (root / "c" / DEATHS).exists()


@pytest.mark.long
def test_a_process_that_is_killed_again_and_again_goes_on(folder: Path) -> None:
    _, whole = start(folder / "whole", "plain,sums")
    root = folder / "root"
    for _ in range(4):
        assert start(root, "plain,sums", killed=3)[0] == -signal.SIGKILL
    assert json.loads((root / "c" / DEATHS).read_text().splitlines()[0])["times"] == 3
    assert start(root, "plain,sums") == (0, whole)


@pytest.mark.long
def test_an_operator_without_an_end_is_suspended_at_the_next_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEVADA_WATCHDOG", "1.5")
    _, whole = start(folder / "whole", "plain,sums")
    root = folder / "root"
    assert start(root, "plain,sums", bare=ENDLESS)[0] == EXIT_CODE
    assert start(root, "plain,sums", bare=ENDLESS) == (0, whole)
    (why,) = read_status(root / "c").suspended_queries.values()
    assert "it ended each process that evaluated it (SIGXCPU)" in why


@pytest.mark.long
def test_native_code_that_holds_the_interpreter_is_ended_and_suspended(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No thread of Python can watch it; the process ends all the same, twice as any other does."""
    monkeypatch.setenv("LEVADA_WATCHDOG", "1")
    _, whole = start(folder / "whole", "plain,sums")
    root = folder / "root"
    for _ in range(2):
        assert start(root, "plain,sums", bare=HOLDING)[0] == EXIT_CODE
    assert start(root, "plain,sums", bare=HOLDING) == (0, whole)
    (why,) = read_status(root / "c").suspended_queries.values()
    assert "it ended each process that evaluated it (SIGXCPU)" in why


@pytest.mark.long
def test_reading_without_an_end_sets_the_records_aside_at_the_next_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEVADA_WATCHDOG", "1.5")
    status, whole = start(folder / "whole", "plain")
    root = folder / "root"
    assert start(root, "plain", bare=ENDLESS_READING)[0] == EXIT_CODE
    again, found = start(root, "plain", bare=ENDLESS_READING)
    assert status == again == 0
    assert set(found) < set(whole) and len(found) == len(whole) - 5
    assert read_status(root / "c").streams["http://e/S"].dead_letters == 1


HEAD = "PREFIX : <http://e/> SELECT %s FROM NAMED WINDOW :w ON <http://e/S> [RANGE PT1S STEP PT1S] "


def plain_results(status: dict[str, Any]) -> int:
    return next((q["results"] for q in status["queries"] if q["name"] == "plain"), 0)


@pytest.mark.long
def test_a_server_starts_its_engine_again_without_the_query(folder: Path) -> None:
    tools, port = folder / "tools", free_port()
    tools.mkdir()
    (tools / "sitecustomize.py").write_text(ENDLESS)
    plain, sums = HEAD % "?s ?o", HEAD % "?s (SUM(?o) AS ?n)"
    (folder / "plain.rq").write_text(plain + "WHERE { WINDOW :w { ?s :p ?o } }")
    (folder / "sums.rq").write_text(sums + "WHERE { WINDOW :w { ?s :p ?o } } GROUP BY ?s")
    command = [
        sys.executable, "-m", "levada", "serve", "plain.rq", "sums.rq", "--checkpoint", "ck",
        "--stream", "http://e/S=s.nt", "--master", "none", "--epoch-rows", "5",
        "--listen", f"127.0.0.1:{port}",
    ]  # fmt: skip
    path = os.pathsep.join([str(tools), *filter(None, sys.path)])
    environ = {**os.environ, "PYTHONPATH": path, "LEVADA_WATCHDOG": "1.5"}
    with (folder / "err").open("w") as err:
        process = subprocess.Popen(command, cwd=folder, env=environ, stderr=err, stdout=err)
        try:
            until((folder / "ck" / SUSPENDED).exists, process=process)
            url = f"http://127.0.0.1:{port}/status"
            until(lambda: "sums" in httpx.get(url).json()["suspended_queries"], process=process)
            until(lambda: plain_results(httpx.get(url).json()) > 10, process=process)
            assert "Levada starts again." in (folder / "err").read_text()
        finally:
            process.terminate()
            assert process.wait(60) == 0
