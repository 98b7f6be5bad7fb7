"""The cluster of the tests: it waits for a master that is not ready, and leaves no process
behind.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import pytest
from hosts import Place

import cluster

WORKERS = {"workers": [{"state": "ALIVE"}, {"state": "DEAD"}, {"state": "ALIVE"}]}


@contextmanager
def master(*answers: bytes) -> Iterator[int]:
    """The port of a page that answers so, one after the other, and says the last again and
    again.
    """
    left = list(answers)

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.wfile.write(left.pop(0) if len(left) > 1 else left[0])

        def log_message(self, *said: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_what_is_no_json_yet_is_no_worker() -> None:
    ok = b"HTTP/1.0 200 OK\r\n\r\n"
    early = [
        b"nonsense\r\n\r\n",
        b"",
        ok,
        ok + b"<html>Spark Master</html>",
        ok + b'{"url": "spark://"}',
        ok + b"[]",
    ]
    with master(*early, ok + json.dumps(WORKERS).encode()) as web:
        found = [cluster.count_alive(f"http://127.0.0.1:{web}") for _ in range(len(early) + 2)]
    assert found == [0] * len(early) + [2, 2]
    assert cluster.count_alive(f"http://127.0.0.1:{web}") == 0  # nobody is there


def processes_of(folder: Path) -> list[psutil.Process]:
    return [
        p
        for p in psutil.process_iter(["cwd"])
        if p.info["cwd"] == str(folder) and p.status() != "zombie"
    ]


@pytest.mark.long
@pytest.mark.spark
def test_a_cluster_that_does_not_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def broken(url: str, place: Place) -> int:
        seen.append(len(processes_of(tmp_path)))
        if len(seen) > 2:
            raise RuntimeError("what nobody thought of")
        return 0

    monkeypatch.setattr(cluster, "count_alive", broken)
    with pytest.raises(RuntimeError, match="what nobody thought of"):
        cluster.Cluster(tmp_path, 2)
    assert seen[-1] >= 3  # a master and two workers were there
    assert processes_of(tmp_path) == []


@pytest.mark.long
@pytest.mark.spark
def test_a_process_that_ends_is_told_with_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "free_port", lambda: 70_000)
    with pytest.raises(AssertionError, match=r"(?s)nobody ends.*master\.log: .+"):
        cluster.Cluster(tmp_path, 1)
    assert processes_of(tmp_path) == []
