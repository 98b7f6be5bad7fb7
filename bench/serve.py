"""``serve``: a thousand clients of server-sent events, each of which gets every report: ten a
second of some 400 bytes. Engine, server and clients are three processes; elements come in real
time. CPU and memory are the server's; a latency is from the commit of a report's epoch, as the
index says it (ms), to its arrival at a client, the clients' own process included. Then a tenth of
the clients stops reading, and the same is measured of the others (``stopped``).
"""

from __future__ import annotations

import asyncio
import json
import re
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bench.result import Result, check_count
from levada.checkpoint.result_index import Cursor, Entry
from levada.engine.engine import Engine

CLIENTS = 1000
REPORTS = 200  # that are measured
WARM = 30  # reports that come before
TICK = 0.1  # s between two reports
QUERY = """PREFIX : <http://e/>
SELECT ?a ?n FROM NAMED WINDOW :w ON :s [RANGE PT0.1S STEP PT0.1S]
WHERE { WINDOW :w { ?a :p ?n } }"""
ROOT = Path(__file__).parents[1]
_ID = re.compile(rb"^id: (-?\d+)$", re.MULTILINE)


def run(scale: float, stepped: bool) -> Result:
    """``scale`` is of clients and of reports; ``stepped`` or not, the engine is in this process."""
    clients, reports = max(int(CLIENTS * scale), 2), max(int(REPORTS * min(scale, 1.0)), 20)
    _more_files()
    with tempfile.TemporaryDirectory(prefix="levada-serve-") as folder:
        root = Path(folder)
        (root / "s").mkdir()
        with Engine(spark=False, checkpoint=root / "ck", keep_results=False, keep="1h") as engine:
            engine.stream("http://e/s", root / "s")
            engine.register(QUERY, name="hot")
            engine.start()
            with _feeding(root / "s"), _served(root / "ck") as (process, port):
                measured = _measure(process, port, clients, reports)
        index = Cursor(root / "ck").read_new()
        first, then = (_told(found, index, reports) for found in measured)
        return Result("serve", first | {"stopped": then})


def _measure(
    process: psutil.Process, port: int, clients: int, reports: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the clients saw, and what that cost the server; all of them, then without those that
    have stopped reading.
    """
    _warm(port)
    before = process.memory_info().rss
    command = [sys.executable, "-m", "bench.serve", str(port), str(clients), str(reports)]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as them:
        assert them.stdin is not None and them.stdout is not None, "they are pipes"
        assert them.stdout.readline() == "connected\n", "all have had some events"
        return _round(them, process, before), _round(them, process, before)


def _round(them: Any, process: psutil.Process, before: int) -> dict[str, Any]:
    """So many reports to each; ``before``: what the server held without clients."""
    cpu, began = sum(process.cpu_times()[:2]), time.perf_counter()
    them.stdin.write("count\n")
    them.stdin.flush()
    assert them.stdout.readline() == "counted\n", "all have had all events"
    spent, took = sum(process.cpu_times()[:2]) - cpu, time.perf_counter() - began
    held = process.memory_info().rss - before
    found: dict[str, Any] = json.loads(them.stdout.readline())
    return found | {"cpu": spent, "wall": took, "held": held}


def _warm(port: int) -> None:
    """One client has had some events: what the server imports and compiles for it is there."""
    with socket.create_connection(("127.0.0.1", port)) as made:
        made.sendall(_head(port))
        found = b""
        while len(_ID.findall(found)) < WARM:
            found += made.recv(1 << 16)


def _head(port: int) -> bytes:
    head = b"GET /queries/hot/results HTTP/1.1\r\nAccept: text/event-stream\r\n"
    return head + b"Host: 127.0.0.1:%d\r\n\r\n" % port


def _told(seen: dict[str, Any], index: list[Entry], reports: int) -> dict[str, Any]:
    """Counts first: each client has every report from its first to its last, once."""
    clients = len(seen["counts"])
    check_count("serve", sum(seen["counts"]), clients * reports)
    check_count("serve, out of order", seen["disordered"], 0)
    committed: dict[int, int] = {}
    for entry in index:
        if "hot" in entry.queries:
            first, last, _ = entry.queries["hot"]
            committed |= dict.fromkeys(range(first, last + 1), entry.wall_ms)
    at = np.array([committed[report] for report, _ in seen["arrived"]], np.float64)
    took = np.array([when for _, when in seen["arrived"]]) * 1000 - at
    p50, p99 = np.percentile(took, [50, 99]).tolist()
    return {
        "clients": clients,
        "count": clients * reports,
        "bytes_a_report": round(seen["bytes"] / (clients * reports)),
        "reports_per_s": round(clients * reports / seen["wall"]),
        "cores": round(seen["cpu"] / seen["wall"], 3),
        "cpu_us_a_report": round(1e6 * seen["cpu"] / (clients * reports), 1),
        "p50_ms": round(p50, 1),
        "p99_ms": round(p99, 1),
        "bytes_a_client": round(seen["held"] / clients),
        "cpu_s": round(seen["cpu"], 2),
        "wall_s": round(seen["wall"], 2),
    }


@contextmanager
def _feeding(folder: Path) -> Iterator[None]:
    """Three elements every tenth of a second, until nobody wants more."""
    over = threading.Event()

    def feed() -> None:
        k, began = 0, time.monotonic()
        while not over.wait(max(began + k * TICK - time.monotonic(), 0)):
            lines = [f'<http://e/a{i}> <http://e/p> "{k}" {100 * k} .\n' for i in range(3)]
            hidden = folder / ".new"
            hidden.write_text("".join(lines))
            hidden.rename(folder / f"{k:08d}.nt")
            k += 1

    thread = threading.Thread(target=feed)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _served(checkpoint: Path) -> Iterator[tuple[psutil.Process, int]]:
    command = [sys.executable, "-m", "levada", "serve", "--read-only", str(checkpoint)]
    with subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None, "it is a pipe"
            said = process.stderr.readline()
            yield psutil.Process(process.pid), int(re.findall(r":(\d+)", said)[-1])
        finally:
            process.terminate()


def _more_files() -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


# -- the clients' process --


class Client(asyncio.Protocol):
    """One client: what came, and when."""

    def __init__(self, port: int) -> None:
        self._head = _head(port)
        self._rest = b""
        self.size = 0
        self.arrived: list[tuple[int, float]] = []

    def connection_made(self, transport: Any) -> None:
        """Asks."""
        transport.write(self._head)

    def data_received(self, data: bytes) -> None:
        """Takes the events that are whole."""
        now = time.time()
        whole, end, self._rest = (self._rest + data).rpartition(b"\n\n")
        self.size += len(whole) + len(end)
        self.arrived += [(int(report), now) for report in _ID.findall(whole)]


async def _clients(port: int, n: int, reports: int) -> None:
    """Connects all, says so, and counts what comes: to all of them, then to nine tenths, while the
    others do not read.
    """
    loop = asyncio.get_running_loop()
    made: list[tuple[Any, Client]] = []
    idle = max(n // 10, 1)  # that will stop reading: their buffers are small, so that it counts
    for k in range(n):
        own = socket.socket()
        if k < idle:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        own.setblocking(False)
        await loop.sock_connect(own, ("127.0.0.1", port))
        made.append(await loop.create_connection(lambda: Client(port), sock=own))
    await _until(lambda: all(len(client.arrived) >= WARM for _, client in made))
    print("connected", flush=True)
    await _count([client for _, client in made], reports)
    for transport, _ in made[:idle]:
        transport.pause_reading()
    await _count([client for _, client in made[idle:]], reports)


async def _count(made: list[Client], reports: int) -> None:
    """After a word, the reports that come to each of the clients."""
    loop, n = asyncio.get_running_loop(), len(made)
    await loop.run_in_executor(None, sys.stdin.readline)
    start = max(client.arrived[-1][0] for client in made)
    last = start + 100 * reports
    await _until(lambda: all(client.arrived[-1][0] >= last for client in made))
    print("counted", flush=True)
    own = [[pair for pair in client.arrived if start < pair[0] <= last] for client in made]
    seen = sum(len(client.arrived) for client in made)
    ids = [[report for report, _ in each] for each in own]
    told = {
        "counts": [len(set(each)) for each in ids],
        "disordered": sum(each != sorted(set(each)) for each in ids),
        "bytes": sum(client.size for client in made) * n * reports / seen,
        "arrived": [pair for each in own[:: max(n // 100, 1)] for pair in each],
    }
    print(json.dumps(told), flush=True)


async def _until(condition: Any) -> None:
    while not condition():
        await asyncio.sleep(0.02)


if __name__ == "__main__":
    _more_files()
    asyncio.run(_clients(*map(int, sys.argv[1:4])))
