"""Streams that clients make, feed and take away, on an engine that began with none."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from levada import Engine
from levada.checkpoint.request_files import engine_runs
from levada.server.run_server import ServerConfig
from levada.server.security.tokens import add_token
from levada.server.settings import Settings
from support.http_server import TEXT, last_report, served
from support.polling import PATIENCE, until, until_engine

OBS = TEXT.replace("ON :s", "ON :obs")


def line(n: int) -> str:
    return f'<http://e/a> <http://e/p> "{n}" {500 * n} .\n'


@contextmanager
def running(folder: Path) -> Iterator[Engine]:
    with Engine(spark=False, checkpoint=folder / "ck", keep_results=False, keep="1h") as engine:
        engine.start()
        yield engine


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    with running(tmp_path), served(Settings(tmp_path / "ck", port=0)) as url:
        yield httpx.Client(base_url=url, timeout=PATIENCE)


def elements(client: httpx.Client, stream: str) -> int:
    found: int = client.get(f"/streams/{stream}").json().get("elements", 0)
    return found


def test_a_stream_is_made_fed_read_and_taken_away(client: httpx.Client) -> None:
    assert client.get("/streams").json() == {"streams": []}
    assert client.post("/streams/obs", content=line(1)).status_code == 404
    made = client.put("/streams/obs")
    assert (made.status_code, made.headers["Location"]) == (201, "/streams/obs")
    assert client.put("/streams/obs").status_code == 200
    assert client.put("/streams/obs", json={"format": "nq"}).status_code == 200
    other = client.put("/streams/obs", json={"lateness": "1s"})
    assert (other.status_code, other.json()["detail"]) == (
        409, "There is a stream obs with other options."
    )  # fmt: skip
    assert client.put("/queries/hot", content=OBS).status_code == 201
    body = "".join(map(line, range(8)))
    assert client.post("/streams/obs", content=body).json()["rows"] == 8
    until(lambda: last_report(client) == 3000)
    assert client.get("/streams/obs").json()["accepts_rows"] is True
    refused = client.delete("/streams/obs")
    assert (refused.status_code, refused.json()["detail"]) == (
        409, "The stream obs is read by hot. Take out what reads it first."
    )  # fmt: skip
    assert client.delete("/queries/hot").status_code == 200
    assert client.delete("/streams/obs").status_code == 200
    assert client.get("/streams/obs").status_code == 404
    assert client.delete("/streams/obs").status_code == 404
    assert client.post("/streams/obs", content=line(9)).status_code == 404


def test_another_stream_of_the_name_is_new(client: httpx.Client) -> None:
    key = {"Idempotency-Key": "one"}
    client.put("/streams/obs")
    client.post("/streams/obs", content=line(90), headers=key)
    until(lambda: elements(client, "obs") == 1)
    client.delete("/streams/obs")
    assert client.put("/streams/obs").status_code == 201
    assert client.put("/queries/hot", content=OBS).status_code == 201
    body = "".join(map(line, range(8)))
    again = client.post("/streams/obs", content=body, headers=key)
    assert again.json() == {"stream": "obs", "rows": 8, "is_repeated": False}
    until(lambda: elements(client, "obs") == 8)
    assert client.get("/streams/obs").json()["late"] == 0, "nor does it know the time of the other"
    until(lambda: last_report(client) == 3000)


def test_a_table(client: httpx.Client) -> None:
    options = {"schema": {"k": "integer", "v": "double"}, "time": "field:at"}
    assert client.put("/streams/rows", json=options | {"format": "ndjson"}).status_code == 201
    assert client.put("/streams/rows", json=options | {"format": "ndjson"}).status_code == 200
    client.post("/streams/rows", content='{"at": 1, "k": 1, "v": 2.5}\n')
    until(lambda: elements(client, "rows") == 1)


def test_stream_of_a_client_has_the_servers_limit_of_future_times(tmp_path: Path) -> None:
    hour = 3_600_000
    settings = Settings(tmp_path / "ck", port=0, max_future=hour)
    assert ServerConfig.from_settings(settings, 3, 7).settings == settings
    ahead = f"<http://e/a> <http://e/p> <http://e/b> {int(time.time() * 1000) + 2 * hour} .\n"
    with running(tmp_path) as engine:
        for future in (hour, 3 * hour):
            with served(replace(settings, max_future=future)) as url:
                client = httpx.Client(base_url=url, timeout=PATIENCE)
                created = client.put("/streams/obs").status_code
                assert created == (201 if future == hour else 200)
                assert client.put("/streams/far", json={"max_future": "3h"}).status_code == created
                for name in ("obs", "far"):
                    client.post(f"/streams/{name}", content=ahead)
                assert client.put("/streams/obs", json={"max_future": "3h"}).status_code == 409
        until(lambda: engine.status().streams["far"].elements == 2)
        until(lambda: engine.status().streams["obs"].dead_letters == 2)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("obs", {"path": "/etc/passwd"}, "has no option path"),
        ("obs", {"mapping": "/etc/passwd"}, "has no option mapping"),
        ("obs", {"lateness": "soon"}, "lateness of the stream obs"),
        ("obs", {"format": "ttl"}, "obs"),
        ("obs", {"format": "csv", "schema": "k:integer"}, "is pushed, and comes as"),
        ("obs", {"format": "ndjson"}, "needs a schema"),
        ("obs", {"time": ["graph"]}, "The options of a stream are a JSON object"),
        ("a b", {}, "is not a name of a stream"),
        ("x" * 501, {}, "at most 500 characters"),
    ],
)
def test_what_cannot_be(
    client: httpx.Client, name: str, options: dict[str, Any], said: str
) -> None:
    found = client.put(f"/streams/{name}", json=options)
    assert found.status_code == 400
    assert said in found.json()["detail"]
    assert client.get("/streams").json() == {"streams": []}


def test_bodies_that_are_no_options(client: httpx.Client) -> None:
    assert client.put("/streams/obs", content=b"{").status_code == 400
    assert client.put("/streams/obs", content=b'"\xff"').status_code == 400
    turtle = client.put("/streams/obs", content=b"{}", headers={"Content-Type": "text/turtle"})
    assert turtle.status_code == 415


def test_streams_of_files_are_the_operators(tmp_path: Path) -> None:
    (tmp_path / "s.nt").write_text(line(1))
    with running(tmp_path) as engine, served(Settings(tmp_path / "ck", port=0)) as url:
        engine.stream("s", tmp_path / "s.nt")
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        until(lambda: client.get("/streams/s").status_code == 200)
        for found in (client.put("/streams/s"), client.delete("/streams/s")):
            assert found.status_code == 409
            assert "is not pushed" in found.json()["detail"]


def test_roles(tmp_path: Path) -> None:
    tokens = {
        name: {"Authorization": f"Bearer {add_token(tmp_path / 'tokens', name, roles)}"}
        for name, roles in (("p", "push"), ("a", "register"), ("b", "register"), ("c", "admin"))
    }
    settings = Settings(tmp_path / "ck", port=0, tokens=tmp_path / "tokens")
    with running(tmp_path), served(settings) as url:
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        assert client.put("/streams/obs", headers=tokens["p"]).status_code == 403
        assert client.put("/streams/obs", headers=tokens["a"]).status_code == 201
        assert client.post("/streams/obs", content=line(1), headers=tokens["p"]).status_code == 202
        assert client.put("/streams/obs", headers=tokens["b"]).status_code == 200
        other = client.delete("/streams/obs", headers=tokens["b"])
        assert (other.status_code, other.json()["detail"]) == (
            403, "The token b has not added the stream obs."
        )  # fmt: skip
        assert client.delete("/streams/obs", headers=tokens["a"]).status_code == 200
        assert client.put("/streams/obs", headers=tokens["a"]).status_code == 201
        assert client.delete("/streams/obs", headers=tokens["c"]).status_code == 200


PROGRAM = """
import sys, threading
from levada import Engine
engine = Engine(spark=False, checkpoint=sys.argv[1], keep_results=False, epoch=sys.argv[2])
engine.start()
threading.Event().wait()
"""


@contextmanager
def killed(root: Path, epoch: str) -> Iterator[httpx.Client]:
    """A server over an engine in another process, which is killed at the end."""
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(root), epoch])
    try:
        until(lambda: (root / "engine.json").exists() and engine_runs(root), process=process)
        with served(Settings(root, port=0)) as url:
            yield httpx.Client(base_url=url, timeout=PATIENCE)
            process.kill()
            assert process.wait(PATIENCE) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()


@pytest.mark.long
def test_killed_before_an_epoch_has_it(tmp_path: Path) -> None:
    """What was answered holds, though no epoch has been since: the engine makes none."""
    root = tmp_path / "ck"
    with killed(root, "100000h") as client:
        assert client.put("/streams/obs").status_code == 201
        assert client.post("/streams/obs", content=line(1) + line(2)).status_code == 202
        assert client.put("/streams/other").status_code == 201
        assert client.put("/queries/hot", content=OBS).status_code == 201
    with killed(root, "100000h") as client:
        assert client.put("/streams/obs").status_code == 200
        assert client.delete("/streams/other").status_code == 200
        assert client.post("/streams/obs", content=line(8) + line(12)).status_code == 202
    with running(tmp_path) as engine:
        assert (engine.streams(), engine.queries()) == (["obs"], ["hot"])
        until_engine(engine, lambda: "obs" in engine._records())
        until_engine(engine, lambda: engine._records()["obs"].elements == 4)
        until_engine(engine, lambda: engine.status().queries[0].results > 0)
