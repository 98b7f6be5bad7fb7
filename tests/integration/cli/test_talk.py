"""A second process talks to an engine that runs: the commands as one types them."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from levada.cli.main import main
from levada.testing.compare import read_ndjson
from support.polling import PATIENCE, until

QUERY = """PREFIX : <http://e/>
SELECT ?a ?n FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?n } }
"""
NUMBERS = itertools.count()


def feed(folder: Path, n: int) -> None:
    """So many more elements, half a second apart."""
    for i in itertools.islice(NUMBERS, n):
        (folder / ".new").write_text(f'<http://e/a> <http://e/p> "{i}" {500 * i} .\n')
        (folder / ".new").rename(folder / "s" / f"{i:06d}.nt")


def levada(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "levada", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "s").mkdir()
    (tmp_path / "hot.rq").write_text(QUERY)
    (tmp_path / "warm.rq").write_text(QUERY.replace("PT2S", "PT4S"))
    monkeypatch.chdir(tmp_path)
    feed(tmp_path, 4)
    return tmp_path


@pytest.fixture
def running(folder: Path) -> Iterator[subprocess.Popen[str]]:
    options = ["--master", "none", "--epoch", "0", "--checkpoint", "ck", "--out", "out"]
    process = levada(folder, "run", "hot.rq", "--stream", "s=s", *options)
    until(lambda: any((folder / "ck" / "manifests").glob("[0-9]*")))
    yield process
    process.kill()
    process.communicate()


def entries(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main(["ps", ".", "--json"]) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.long
def test_a_second_terminal(
    folder: Path, running: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    tail = levada(folder, "tail", "ck", "--from-start", "hot")
    until(lambda: any((folder / "ck").glob("tails/[0-9a-f]*")))
    assert main(["add", "ck", "warm.rq", "--report", "nonempty"]) == 0
    assert capsys.readouterr().out.startswith("warm: added, from 1970-01-01T00:00:0")
    (folder / "bad.rq").write_text(QUERY.replace("WHERE", "WERE"))
    assert main(["add", "ck", "bad.rq"]) == 2
    assert capsys.readouterr().err.startswith("levada: bad: line 3, column 1: WERE cannot stand")
    until(lambda: entries(capsys)[0]["queries"] == ["hot", "warm"])
    feed(folder, 20)
    until(lambda: any((folder / "out" / "warm").glob("*.ndjson")))
    (one,) = entries(capsys)
    assert (one["state"], one["pid"], one["streams"]) == ("running", running.pid, ["s"])
    assert main(["drop", "ck", "hut"]) == 2
    assert "Did you mean hot?" in capsys.readouterr().err
    assert main(["tail", "ck", "hut"]) == 2
    assert "Did you mean hot?" in capsys.readouterr().err
    assert main(["drop", "ck", "hot"]) == 0
    assert capsys.readouterr().out.startswith("hot: dropped after epoch ")
    feed(folder, 1)
    said, told = tail.communicate(timeout=PATIENCE)
    assert (tail.returncode, told) == (0, "levada: The queries have left.\n")
    files = sorted((folder / "out" / "hot").glob("*.ndjson"))
    published = read_ndjson(line for path in files for line in path.read_text().splitlines())
    assert read_ndjson(said.splitlines()) == published
    running.send_signal(signal.SIGTERM)
    _, summary = running.communicate(timeout=PATIENCE)
    assert running.returncode == 0
    assert "warm" in summary
    assert entries(capsys)[0]["state"] == "stopped"
    assert main(["add", "ck", "warm.rq"]) == 1
    assert "No engine runs on the checkpoint ck." in capsys.readouterr().err
    assert not os.listdir(folder / "ck" / "tails")


def test_what_cannot_be_asked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["add", "ck", "hot.rq"], ["drop", "ck", "hot"], ["tail", "ck"]):
        assert main(command) == 1
        assert "ck is not a checkpoint of Levada." in capsys.readouterr().err
    assert main(["ps", "nowhere"]) == 2
    assert main(["add", "ck", "hot.rq", "warm.rq", "--name", "q"]) == 2
    assert "--name is for one query, these are 2." in capsys.readouterr().err
    assert main(["add", "ck", "hot.rq", "--t0", "noon"]) == 2
    assert main(["tail", "ck", "--format", "parquet"]) == 2


@pytest.mark.long
def test_status_that_goes_on(folder: Path, running: subprocess.Popen[str]) -> None:
    watch = levada(folder, "status", "ck", "--watch", "--json")
    assert watch.stdout is not None
    first = json.loads(watch.stdout.readline())
    feed(folder, 4)
    second = json.loads(watch.stdout.readline())
    assert second["epoch"] > first["epoch"]
    watch.send_signal(signal.SIGINT)
    watch.communicate(timeout=PATIENCE)
    assert watch.returncode == 0


@pytest.mark.long
def test_a_run_without_query_files_goes_on_with_what_was_added(
    folder: Path, running: subprocess.Popen[str], capsys: pytest.CaptureFixture[str]
) -> None:
    feed(folder, 4)
    assert main(["add", "ck", "warm.rq"]) == 0
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=PATIENCE)
    feed(folder, 12)
    again = ["run", "--stream", "s=s", "--master", "none", "--close", "--checkpoint"]
    capsys.readouterr()
    assert main([*again, "ck", "--format", "csv"]) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]]
    newest = max(int(path.stem) for path in (folder / "s").iterdir())
    assert {a for _, a, _ in rows} == {"http://e/a"} and max(int(n) for *_, n in rows) == newest
    # without a query that was added there is nothing to do
    for folder_ in ("ck2", "new"):
        assert main([*again, folder_]) == 2
        said = f"levada: There is no query, and none was added to the checkpoint {folder_}. "
        assert capsys.readouterr().err == said + "Give query files, or an app file with --app.\n"
        assert main(["run", "hot.rq", *again[1:], "ck2"]) == 0
        capsys.readouterr()


def test_streams_come_and_go(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Paths are those of the one who asks, who stands in another folder than the engine."""
    other = folder / "elsewhere"
    other.mkdir()
    options = ["--master", "none", "--epoch", "0", "--checkpoint", "../ck", "--out", "../out"]
    process = levada(other, "run", "../hot.rq", "--stream", "s=../s", *options)
    try:
        until(lambda: any((folder / "ck" / "manifests").glob("[0-9]*")), process=process)
        (folder / "t").mkdir()
        (folder / "t" / "1.nt").write_text('<http://e/b> <http://e/p> "1" 1000 .\n')
        (folder / "cool.rq").write_text(QUERY.replace("ON :s", "ON :t"))
        assert main(["add-stream", "ck", "t=t,lateness=1s"]) == 0
        assert capsys.readouterr().out == "t: added, from the next epoch on\n"
        assert main(["add", "ck", "cool.rq"]) == 0
        until(lambda: streams_told(capsys).get("t", {}).get("elements") == 1)
        assert main(["status", "ck", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["runtime_streams"] == ["t"]
        assert main(["status", "ck"]) == 0
        assert "t was added while an engine ran." in capsys.readouterr().out
        assert main(["add-stream", "ck", "t=t"]) == 2
        assert "There are two streams t." in capsys.readouterr().err
        assert main(["add-stream", "ck", "u=gone.nt"]) != 0
        assert "gone.nt" in capsys.readouterr().err
        assert main(["drop-stream", "ck", "t"]) == 2
        assert "The stream t is read by cool." in capsys.readouterr().err
        assert main(["drop", "ck", "cool"]) == 0
        assert main(["drop-stream", "ck", "t"]) == 0
        until(lambda: set(streams_told(capsys)) == {"s"})
    finally:
        process.kill()
        process.communicate()


def streams_told(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, object]]:
    """What the status says of the streams."""
    capsys.readouterr()
    assert main(["status", "ck", "--json"]) == 0
    found: dict[str, dict[str, object]] = json.loads(capsys.readouterr().out)["streams"]
    return found
