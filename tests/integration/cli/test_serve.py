"""``levada serve`` and ``levada token``, as one types them."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from levada.checkpoint.request_files import engine_runs
from levada.cli.main import main
from support.polling import PATIENCE, until

QUERY = """PREFIX : <http://e/>
SELECT ?a ?n FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?n } }
"""


def last(client: httpx.Client) -> int | None:
    try:
        return client.get("/queries/hot").json().get("last_report")
    except httpx.TransportError:
        return None


@pytest.mark.long
def test_an_engine_with_a_server_beside(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "hot.rq").write_text(QUERY)
    for i in range(8):
        (tmp_path / "s" / f"{i}.nt").write_text(f'<http://e/a> <http://e/p> "{i}" {500 * i} .\n')
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "levada", "serve", "hot.rq", "--stream", "s=s"),
            *("--master", "none", "--epoch", "0", "--checkpoint", "ck", "--listen", "127.0.0.1:0"),
        ],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        url = process.stderr.readline().split(" at ")[1].strip().removesuffix(".")
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        assert until(lambda: last(client)) == 3000
        (server,) = psutil.Process(process.pid).children()
        server.send_signal(signal.SIGKILL)
        assert until(lambda: last(client)) == 3000, "it is started again, on the same port"
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode == 0
        assert "The server ended with -9, and is started again." in said
        assert "8 elements" in said
        assert not psutil.pid_exists(server.pid)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.long
def test_a_client_does_not_fill_the_log_of_an_engine(tmp_path: Path) -> None:
    """A long query with many warnings, and many short ones; the process of the engine and that of
    the server write to one file.
    """
    command = [sys.executable, "-m", "levada", "serve", "--stream", "s=push:", "--master", "none"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--checkpoint", "ck", "--listen", "127.0.0.1:0"], cwd=tmp_path, stderr=log
        )
    try:
        first = until(lambda: (tmp_path / "log").read_text().split("\n")[0], process=process)
        url = first.split(" at ")[1].strip().removesuffix(".")
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        until(lambda: (tmp_path / "ck" / "manifests").exists(), process=process)
        until(lambda: engine_runs(tmp_path / "ck"))
        names = " ".join(f"?x{i}" for i in range(3000))
        texts = [QUERY.replace("?a", names, 1) + "#" + "y" * 200_000]
        texts += [QUERY.replace("?a", f"?{i}{'z' * 3000} ?{i}x ?{i}y", 1) for i in range(60)]
        sent = 0
        for i, text in enumerate(texts):
            place, media = f"/queries/q{i}", {"Content-Type": "application/sparql-query"}
            assert client.put(place, content=text, headers=media).status_code == 201
            assert client.delete(place).status_code == 200
            sent += len(text)
        logged = (tmp_path / "log").read_text()
        assert logged.count("q0: Warning: ") == 11
        assert len(logged) < 64_000
        assert "More messages are left out here: there are too many." in logged
    finally:
        process.kill()
        process.communicate()


def test_what_cannot_be_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hot.rq").write_text(QUERY)
    (tmp_path / "s.nt").write_text("")
    run = ["serve", "hot.rq", "--stream", "s=s.nt"]
    for command, said in (
        (run, "The server and the engine meet in a checkpoint."),
        ([*run, "--checkpoint", "ck", "--listen", "0.0.0.0:0"], "there are no tokens."),
        ([*run, "--checkpoint", "ck", "--listen", "here"], "--listen is HOST:PORT, not here."),
        ([*run, "--checkpoint", "ck", "--keep", "soon"], "soon does not say how much is kept."),
        ([*run, "--checkpoint", "ck", "--tokens", "no"], "The tokens no cannot be read"),
        (["serve"], "The server and the engine meet in a checkpoint."),
        (["serve", "--read-only", "ck"], "ck is not a checkpoint of Levada."),
        (
            ["serve", "q.rq", "--read-only", "ck", "--checkpoint", "c", "--keep", "1h"],
            "without an engine: q.rq, --checkpoint, --keep says nothing to it.",
        ),
        (["run", "hot.rq", "--stream", "s=s.nt", "--keep", "1h"], "--keep is for a checkpoint"),
    ):
        assert main(command) in (1, 2), command
        assert said in capsys.readouterr().err


def test_without_the_libraries_the_line_that_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = importlib.util.find_spec

    def find(name: str, *more: Any) -> Any:
        return None if name == "starlette" else found(name, *more)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    assert main(["serve", "--read-only", str(tmp_path)]) == 2
    told = "levada serve needs starlette, which is not installed. pip install 'levada[server]'"
    assert told in capsys.readouterr().err


def test_a_token_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["token", "tokens", "anna", "--roles", "read,push"]) == 0
    token = capsys.readouterr().out.strip()
    assert len(token) >= 43
    kept = (tmp_path / "tokens").read_text()
    assert kept.startswith("anna read,push sha256:")
    assert token not in kept
    assert os.stat("tokens").st_mode & 0o077 == 0
    for command, said in (
        (["token", "tokens", "anna"], "There is a token anna already."),
        (["token", "tokens", "bob", "--roles", "reed"], "Did you mean read?"),
        (["token", "tokens", "b b"], "is no name of a token"),
    ):
        assert main(command) == 2
        assert said in capsys.readouterr().err
