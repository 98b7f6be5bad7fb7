"""An output that goes away and comes back: an engine at half load whose reports go to PostgreSQL,
and a server of it that is stopped for a sixth of the time. Memory stays as it was, the disk comes
back to where it was, the lag goes to zero, and the table has each row once.

    make sinks      half an hour, the server away for five minutes; SINKS=3m for less
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from feed import BEGIN, Load

from awaiting import PATIENCE, until
from levada.engine.telling.status import Status, read_status
from levada.errors import CheckpointError
from levada.model.durations import parse_duration
from postgres_server import PASSWORD, Server

SAID = os.environ.get("SINKS", "")
LASTS = parse_duration(SAID or "30m") / 1000  # s
LOAD = int(os.environ.get("SINKS_LOAD", "20000"))  # lines a second
TICK = 0.25  # s
LOOK = 2.0  # s between two looks
STEP = 1000  # ms
KEPT = int(1.5 * LASTS / 6 * LOAD * 10)  # bytes, some more than waits for a server that is away
pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(int(3 * LASTS) + 1200),
    pytest.mark.skipif(not SAID, reason="it takes long: make sinks"),
]
TEXT = f"""PREFIX : <http://e/>
SELECT ?n FROM NAMED WINDOW :w ON :load [RANGE PT{STEP // 1000}S STEP PT{STEP // 1000}S]
WHERE {{ WINDOW :w {{ ?a :p ?n }} FILTER(STRENDS(STR(?n), "7")) }}"""
SLACK_MB, SLACK = 60, 1.3  # of memory
SLACK_DISK_MB = 8


@dataclass
class Seen:
    """What was seen, each with the second at which it was."""

    memory: list[tuple[float, float]] = field(default_factory=list)  # MB
    disk: list[tuple[float, float]] = field(default_factory=list)  # MB
    behind: list[tuple[float, int]] = field(default_factory=list)  # reports

    def look(self, at: float, process: psutil.Process, root: Path) -> None:
        own = [process, *process.children(recursive=True)]
        self.memory.append((at, sum(each.memory_info().rss for each in own) / 1e6))
        self.disk.append((at, size(root) / 1e6))
        said = status(root)
        if said is not None:
            self.behind.append((at, said.outputs[0].behind))

    def line(self, server: str) -> str:
        behind = self.behind[-1][1] if self.behind else "none yet"
        memory, disk = self.memory[-1][1], self.disk[-1][1]
        at = self.memory[-1][0]
        return f"{at:6.0f} s  {server:5}  {memory:6.0f} MB  disk {disk:7.1f} MB  behind {behind}"


def size(root: Path) -> int:
    found = 0
    for path in root.rglob("*"):
        try:
            found += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # it has gone
    return found


def status(root: Path) -> Status | None:
    try:
        return read_status(root)
    except (CheckpointError, OSError):
        return None


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("LEVADA_PG", PASSWORD)
    made = Server()
    yield made
    made.close()


@pytest.fixture
def engine(tmp_path: Path, server: Server) -> Iterator[psutil.Popen]:
    (tmp_path / "q.rq").write_text(TEXT)
    (tmp_path / "load").mkdir()
    command = [
        sys.executable, "-m", "levada", "run", "q.rq", "--stream", "load=load",
        "--checkpoint", "ck", "--keep", f"{KEPT}B", "--master", "none",
        "--to", f"q={server.url},table=sevens,password=env:LEVADA_PG",
    ]  # fmt: skip
    with (tmp_path / "log").open("wb") as log:
        process = psutil.Popen(command, cwd=tmp_path, stdout=log, stderr=log)
    yield process
    if process.poll() is None:
        process.kill()
        process.wait()


def test_an_output_that_is_away(tmp_path: Path, server: Server, engine: psutil.Popen) -> None:
    (tmp_path / "load").rmdir()
    load, seen = Load(tmp_path, LOAD), Seen()
    gone, back = LASTS / 3, LASTS / 2
    load.write(LOAD)
    until(lambda: status(tmp_path / "ck"), "an epoch: kernels are compiled before", process=engine)
    began, looked = time.monotonic(), 0.0
    while (now := time.monotonic() - began) < LASTS:
        assert engine.poll() is None, (tmp_path / "log").read_text()[-3000:]
        load.write(LOAD + int(now * LOAD))
        if server.process is not None and gone <= now < back:
            server.stop(signal.SIGQUIT)
        elif server.process is None and now >= back:
            server.start()
        if now - looked >= LOOK:
            looked = now
            seen.look(now, engine, tmp_path / "ck")
            if len(seen.memory) % 5 == 0:
                print(seen.line("there" if server.process else "away"), flush=True)
            forget(load, tmp_path / "ck")
        time.sleep(TICK)
    last = (load.ts(load.done - 1)) // STEP * STEP
    there = f"SELECT count(*) > 0 FROM sevens WHERE report = {last}"
    until(lambda: server.rows(there) == [(True,)])
    until(lambda: (s := status(tmp_path / "ck")) is not None and not s.outputs[0].behind)
    check_rows(server, load, last)
    check_seen(seen, gone, back)
    engine.send_signal(signal.SIGINT)
    assert engine.wait(PATIENCE) == 0, (tmp_path / "log").read_text()[-3000:]


def forget(load: Load, root: Path) -> None:
    """Files that the engine has read, and has committed that it has, go."""
    said = status(root)
    if said is not None and "load" in said.streams:
        load.forget(said.streams["load"].watermark - 3000)


def check_rows(server: Server, load: Load, last: int) -> None:
    """Each report has what is counted here, once."""
    found = server.rows(
        "SELECT report::bigint, count(*), sum(n::bigint) FROM sevens GROUP BY 1 ORDER BY 1"
    )
    wanted: dict[int, tuple[int, int]] = {}
    for i in range(7, load.done, 10):
        report = (load.ts(i) // STEP + 1) * STEP
        n, total = wanted.get(report, (0, 0))
        wanted[report] = n + 1, total + i
    assert {r: (n, int(total)) for r, n, total in found} == {
        report: said for report, said in wanted.items() if report <= last
    }
    assert len(found) > (last - BEGIN) // STEP - 2


def check_seen(seen: Seen, gone: float, back: float) -> None:
    """Away it was; and all is as it was before."""
    most = max(n for at, n in seen.behind if gone < at < back + LOOK)
    assert most > (back - gone) * 1000 / STEP / 2, "it was away, and reports waited for it"
    for what, slack, own in (
        ("memory", SLACK_MB, seen.memory),
        ("disk", SLACK_DISK_MB, seen.disk),
    ):
        before = [value for at, value in own if gone / 2 < at < gone]
        after = [value for at, value in own if at > LASTS - (LASTS - back) / 3]
        first, then = statistics.median(before), statistics.median(after)
        peak = max(value for at, value in own if gone <= at)
        print(f"{what}: {first:.1f} MB before, {peak:.1f} at most, {then:.1f} after")
        assert then < first * SLACK + slack, what
    print(f"behind: {most} reports at most")
