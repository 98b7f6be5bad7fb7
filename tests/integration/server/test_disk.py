"""A disk that is full, or cannot be used: the client is told to come again, and no path; what was
refused can be sent again.
"""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil
import pytest

from levada import Engine
from levada.errors import CheckpointError, EngineError, SinkError, SourceError
from levada.server.problem_json import problem_of
from levada.server.settings import Settings
from support.http_server import TEXT, served
from support.polling import PATIENCE, until

SPARQL = {"Content-Type": "application/sparql-query"}
TURTLE = {"Content-Type": "text/turtle"}
ROW = '<http://e/a> <http://e/p> "1" {} .\n'


def writes(client: httpx.Client) -> dict[str, httpx.Response]:
    """The answers to requests that write."""
    return {
        "rows": client.post("/streams/s", content=ROW.format(5000) * 100),
        "rows with a key": client.post(
            "/streams/s", content=ROW.format(5500) * 100, headers={"Idempotency-Key": "k"}
        ),
        "a query": client.put("/queries/new", content=TEXT, headers=SPARQL),
        "no query": client.delete("/queries/hot"),
        "a stream": client.put("/streams/new"),
        "no stream": client.delete("/streams/t"),
        "a graph": client.put(
            "/static/http://e/g", content="<http://e/a> <http://e/p> 2 .", headers=TURTLE
        ),
    }


def check_refused(found: dict[str, httpx.Response], status: int, root: Path) -> None:
    for what, answer in found.items():
        assert answer.status_code == status, (what, answer.text)
        assert int(answer.headers["Retry-After"]) > 0, what
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert str(root) not in answer.text and "spool" not in answer.text, what
        assert "Levada" not in answer.text, "it is no fault of Levada"


def check_made(found: dict[str, httpx.Response]) -> None:
    codes = {what: answer.status_code for what, answer in found.items()}
    assert codes == {
        "rows": 202, "rows with a key": 202, "a query": 201, "no query": 200, "a stream": 201,
        "no stream": 200, "a graph": 200,
    }  # fmt: skip
    assert not found["rows with a key"].json()["is_repeated"], "what was refused has not been taken"


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    made = subprocess.run(mount, capture_output=True, text=True) if shutil.which("mount") else None
    if made is None or made.returncode:
        pytest.skip("a file system cannot be mounted here: that takes root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_on_a_full_disk_a_client_is_told_to_come_again(tmp_path: Path, small: Path) -> None:
    root = small / "ck"
    (tmp_path / "g.ttl").write_text("<http://e/a> <http://e/p> 1 .")
    with Engine(spark=False, checkpoint=root, keep_results=False, keep="1h") as engine:
        for name in ("s", "t"):
            engine.stream(name, "push:", format="nq")
        engine.static(tmp_path / "g.ttl", graph="http://e/g", reload=True)
        engine.register(TEXT, name="hot")
        engine.start()
        until(lambda: (root / "manifests").is_dir() and any((root / "manifests").iterdir()))
        with (
            served(Settings(root, port=0)) as url,
            httpx.Client(base_url=url, timeout=PATIENCE) as client,
        ):
            until(lambda: client.get("/queries/hot").status_code == 200)
            assert client.post("/streams/s", content=ROW.format(1000)).status_code == 202
            until(lambda: client.get("/status").json()["streams"]["s"]["elements"] == 1)
            until(lambda: is_settled(root))
            with filled(small):
                check_refused(writes(client), 507, root)
                assert client.get("/queries").status_code == 200, "what only reads goes on"
            check_made(writes(client))


def is_settled(root: Path) -> bool:
    """Whether the engine deletes nothing for a while: deleted files make room on a full disk."""
    before = {path for path in root.rglob("*") if path.is_file()}
    time.sleep(0.5)
    return before == {path for path in root.rglob("*") if path.is_file()}


@contextmanager
def filled(place: Path) -> Iterator[None]:
    """The disk is full."""
    with (place / "filler").open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError as error:
                assert error.errno == errno.ENOSPC
    try:
        yield
    finally:
        (place / "filler").unlink()


@pytest.mark.long
def test_a_server_whose_files_may_not_grow_tells_a_client_to_come_again(tmp_path: Path) -> None:
    """The limit of a process in place of a disk's: it takes no root."""
    (tmp_path / "g.ttl").write_text("<http://e/a> <http://e/p> 1 .")
    (tmp_path / "hot.rq").write_text(TEXT)
    streams = [word for name in "st" for word in ("--stream", f"{name}=push:,format=nq")]
    static = ["--static", "g.ttl,graph=http://e/g,reload=true"]
    command = [sys.executable, "-m", "levada", "serve", "hot.rq", *streams, *static]
    process = subprocess.Popen(
        [*command, "--master", "none", "--checkpoint", "ck", "--listen", "127.0.0.1:0"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        url = process.stderr.readline().split(" at ")[1].strip().removesuffix(".")
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        until(lambda: client.get("/queries/hot").status_code == 200, process=process)
        assert client.post("/streams/s", content=ROW.format(1000)).status_code == 202
        (server,) = psutil.Process(process.pid).children()
        _, most = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (0, most))
        check_refused(writes(client), 507, tmp_path)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (most, most))
        check_made(writes(client))
    finally:
        process.kill()
        process.communicate()


def caused(error: Exception, number: int) -> Exception:
    error.__cause__ = OSError(number, os.strerror(number), "/ck/spool/x")
    return error


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (caused(SinkError("The disk that holds /ck/spool is full."), errno.ENOSPC), 507),
        (caused(CheckpointError("The checkpoint /ck cannot be written."), errno.EDQUOT), 507),
        (OSError(errno.EFBIG, "File too large", "/ck/x"), 507),
        (caused(SinkError("/ck/spool may not be written to."), errno.EROFS), 503),
        (caused(CheckpointError("The checkpoint's file /ck/x cannot be read."), errno.EIO), 503),
        (OSError(errno.EMFILE, "Too many open files", "/ck/x"), 503),
        (PermissionError(errno.EACCES, "Permission denied", "/ck/x"), 503),
        (CheckpointError("The checkpoint's file /ck/x cannot be read: it is altered."), 500),
        (SourceError("The static file /data/x.ttl cannot be read."), 500),
        (EngineError("No engine runs on the checkpoint /ck."), 409),
    ],
)
def test_no_answer_has_a_path(error: Exception, status: int) -> None:
    problem = problem_of(error, Path("/ck"))
    assert problem is not None and problem.status == status
    assert "/ck" not in problem.body().decode() and "/data" not in problem.body().decode()
    assert ("Retry-After" in problem.headers) == (status in (503, 507))


def test_other_errors_of_the_system_are_faults_of_levada() -> None:
    assert problem_of(FileNotFoundError(errno.ENOENT, "No such file", "/ck/x"), Path("/ck")) is None
    assert problem_of(ValueError("x"), Path("/ck")) is None
