"""``push``: clients that post rows to a server, each answered when it is on the disk.

    many      a thousand lines a request, eight clients
    single    a line a request, a hundred clients
    deliver   10,000 messages a second, a request every ten ms, on their way to a client of
              server-sent events: epochs of 100 ms, windows that close every 100 ms

Engine, server and clients are three processes on one machine. Counted first: every line that was
answered has been read by the engine. CPU is the server's, and the engine's beside it. Times of
``deliver`` are those of the clock: a latency is from a report's time, when the element is made with
which it is due, to the report's arrival.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bench.result import Result, check_count
from levada.connectors.config.input_formats import PUSH
from levada.connectors.config.stream_config import StreamConfig
from levada.engine.engine import Engine
from levada.server.run_server import ServerSupervisor, bind_socket
from levada.server.settings import Settings

STREAM = "http://e/s"
LINES = 1_000_000  # of ``many``
A_REQUEST = 1000
SINGLE = 20_000  # requests
RATE, TICK, LASTS = 10_000, 0.01, 20.0  # messages a second, s between two requests, s
STEP = 100  # ms between two reports
QUERY = """PREFIX : <http://e/>
SELECT ?a (COUNT(?n) AS ?c) FROM NAMED WINDOW :w ON :s [RANGE PT0.1S STEP PT0.1S]
WHERE { WINDOW :w { ?a :p ?n } } GROUP BY ?a"""
PATIENCE = 120.0  # s
ROOT = Path(__file__).parents[1]
Reports = dict[int, tuple[float, int]]
"""When a report came (s), and how many it counted."""


def run(scale: float, stepped: bool) -> Result:
    """``scale`` is of lines, of requests and of seconds; ``stepped`` or not, the engine is in this
    process.
    """
    many = _posting("many", max(int(LINES * scale) // A_REQUEST, 4), posters=8, lines=A_REQUEST)
    single = _posting("single", max(int(SINGLE * scale), 20), posters=100, lines=1)
    return Result("push", {"many": many, "single": single, "deliver": _delivered(LASTS * scale)})


def _posting(name: str, requests: int, *, posters: int, lines: int) -> dict[str, Any]:
    """So many requests with so many lines each."""
    with served() as (engine, process, port):
        clients(port, "post", 2 * posters, posters, lines)  # what is loaded and compiled is there
        await_all(engine, 2 * posters * lines)
        cpu, own = sum(process.cpu_times()[:2]), time.process_time()
        told = clients(port, "post", requests, posters, lines)
        spent = sum(process.cpu_times()[:2]) - cpu
        check_count(f"push, {name}", told["taken"], requests * lines)
        await_all(engine, (2 * posters + requests) * lines)
        engines = time.process_time() - own
    count = requests * lines
    return {
        "count": count,
        "requests_per_s": round(requests / told["wall"]),
        "lines_per_s": round(count / told["wall"]),
        "lines_per_cpu_s": round(count / spent),
        "requests_per_cpu_s": round(requests / spent),
        "cpu_us_a_request": round(1e6 * spent / requests),
        "with_engine_per_cpu_s": round(count / (spent + engines)),
        "later": told["later"],
        "cpu_s": round(spent, 2),
        "wall_s": round(told["wall"], 2),
    }


def _delivered(seconds: float) -> dict[str, Any]:
    """Reports from the post that makes them due to a client."""
    with served() as (engine, process, port):
        clients(port, "deliver", 2)
        before = read_so_far(engine)
        cpu, own = sum(process.cpu_times()[:2]), time.process_time()
        told = clients(port, "deliver", max(int(seconds), 2))
        spent = sum(process.cpu_times()[:2]) - cpu
        await_all(engine, before + told["taken"])
        engines = time.process_time() - own
    return delivered_side(told, spent, engines)


def delivered_side(told: dict[str, Any], server: float, engine: float) -> dict[str, Any]:
    """What the clients saw of reports, counted first, and CPU-seconds beside it."""
    took = 1000 * np.array(told["took"])
    p50, p99 = np.percentile(took, [50, 99]).tolist()
    check_count("reports", sum(told["counts"]), told["counted"])
    return {
        "reports": len(took),
        "messages_per_s": round(told["taken"] / told["wall"]),
        "p50_ms": round(p50, 1),
        "p99_ms": round(p99, 1),
        "server_cores": round(server / told["wall"], 3),
        "engine_cores": round(engine / told["wall"], 3),
    }


@contextmanager
def served(path: str = PUSH, **options: Any) -> Iterator[tuple[Engine, psutil.Process, int]]:
    """An engine with a stream, which is pushed or comes from elsewhere, and a server beside it."""
    with tempfile.TemporaryDirectory(prefix="levada-push-") as folder:
        root = Path(folder) / "ck"
        with Engine(
            spark=False, checkpoint=root, keep_results=False, keep="1h", epoch="100ms"
        ) as engine:
            engine.stream(STREAM, StreamConfig.from_options(STREAM, path, **options))
            engine.register(QUERY, name="q")
            engine.start()
            made = bind_socket("127.0.0.1", 0)
            beside = ServerSupervisor(
                Settings(root, port=0), made, lambda told: print(told, file=sys.stderr)
            )
            with made, beside.running():
                port = made.getsockname()[1]
                _until(lambda: _process() is not None)
                found = _process()
                assert found is not None, "it has been started"
                yield engine, found, port


def _process() -> psutil.Process | None:
    own = psutil.Process().children()
    return next((p for p in own if "levada.server" in p.cmdline()), None)


def clients(port: int, what: str, *more: int | str, module: str = "push") -> dict[str, Any]:
    """What the clients' process has to tell."""
    command = [sys.executable, "-m", f"bench.{module}", what, str(port), *map(str, more)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def read_so_far(engine: Engine) -> int:
    return sum(record.elements for record in engine._records().values())


def await_all(engine: Engine, count: int) -> None:
    """What has been answered has been read."""
    _until(lambda: read_so_far(engine) >= count)
    check_count("push, the engine", read_so_far(engine), count)


def _until(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("it has not come about")
        time.sleep(0.02)


# -- the clients' process --


class Poster(asyncio.Protocol):
    """One client with a connection that stays. It reads of an answer what a client must, and no
    more: on the machine's cores it is beside the server.
    """

    def __init__(self, port: int) -> None:
        self._port, self.taken, self.later = port, 0, 0
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._came = b""

    def data_received(self, data: bytes) -> None:
        """A part of an answer."""
        self._came += data
        head, _, body = self._came.partition(b"\r\n\r\n")
        size = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if size is not None and len(body) == int(size[1]) and self._answer is not None:
            self._answer.set_result(self._came)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is made again for what follows."""
        self._transport = None
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or ConnectionError("the server closed"))

    async def post(self, body: bytes, lines: int) -> None:
        """Posts until it is taken."""
        while True:
            answer = await self._ask(body)
            if answer.startswith(b"HTTP/1.1 202"):
                self.taken += lines
                return
            if not answer.startswith((b"HTTP/1.1 429", b"HTTP/1.1 404")):
                raise RuntimeError(answer.decode())
            self.later += 1  # the engine is behind, or has not said yet which streams there are
            await asyncio.sleep(0.05)

    async def _ask(self, body: bytes) -> bytes:
        loop = asyncio.get_running_loop()
        if self._transport is None or self._transport.is_closing():
            self._transport, _ = await loop.create_connection(lambda: self, "127.0.0.1", self._port)
        head = (
            f"POST /streams/{STREAM} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n"
            f"Content-Type: application/n-quads\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._came, self._answer = b"", loop.create_future()
        self._transport.write(head.encode() + body)
        return await self._answer


def line_at(sensor: int, n: int, ms: int) -> str:
    return f'<http://e/sensor{sensor % 20}> <http://e/p> "{n}" {ms} .\n'


async def _post(port: int, requests: int, clients: int, lines: int) -> None:
    """So many requests by so many clients."""
    now = time.time_ns() // 1_000_000
    body = "".join(line_at(i, i, now) for i in range(lines)).encode()
    left = iter(range(requests))
    made = [Poster(port) for _ in range(clients)]

    async def go(poster: Poster) -> None:
        for _ in left:
            await poster.post(body, lines)

    began = time.perf_counter()
    await asyncio.gather(*map(go, made))
    took = time.perf_counter() - began
    taken, later = sum(p.taken for p in made), sum(p.later for p in made)
    print(json.dumps({"taken": taken, "later": later, "wall": took}))


async def _deliver(port: int, seconds: int) -> None:
    """Messages in time, each with the instant at which it is made, and when each report came."""
    seen: Reports = {}
    there = asyncio.Event()
    listening = asyncio.create_task(listen(port, seen, there))
    await there.wait()
    poster, done = Poster(port), 0
    began = time.time_ns() // 1_000_000  # ms; the i-th is made i / RATE s later
    count = seconds * RATE
    while done < count:
        await asyncio.sleep(TICK - time.time() % TICK)
        due = min(int(time.time() * 1000 - began) * RATE // 1000, count)
        lines = (line_at(i, i, began + i * 1000 // RATE) for i in range(done, due))
        if due > done:
            await poster.post("".join(lines).encode(), due - done)
        done = due
    await told_when_all(seen, listening, began, count, poster.taken)


async def told_when_all(
    seen: Reports, listening: asyncio.Task[None], began: int, count: int, taken: int
) -> None:
    """Prints what came, once the reports on ``count`` messages since ``began`` (ms) are there."""
    wall = time.time() - began / 1000
    last = began + (count - 1) * 1000 // RATE
    reports = [r for r in range(began // STEP * STEP, last + 1, STEP) if r - STEP >= began]
    end = time.monotonic() + PATIENCE
    while not all(report in seen for report in reports) and time.monotonic() < end:
        await asyncio.sleep(0.02)
    listening.cancel()
    told = {
        "taken": taken,
        "wall": wall,
        "took": [seen[r][0] - r / 1000 for r in reports],
        "counts": [seen[r][1] for r in reports],
        "counted": len(reports) * STEP * RATE // 1000,
    }
    print(json.dumps(told))


async def listen(port: int, seen: Reports, there: asyncio.Event) -> None:
    """What comes, until nobody wants more."""
    head = b"GET /queries/q/results HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream"
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head + b"\r\n\r\n")
        if (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200"):
            break
        writer.close()  # the engine has not said yet which queries there are
        await asyncio.sleep(0.05)
    there.set()
    report = 0
    while line := await reader.readline():
        if line.startswith(b"id: "):
            report, came = int(line[4:]), time.time()
        elif line.startswith(b"data: "):
            rows = json.loads(line[6:])["results"]["bindings"]
            seen[report] = came, sum(int(row["c"]["value"]) for row in rows)


if __name__ == "__main__":
    kinds = {"post": _post, "deliver": _deliver}
    asyncio.run(kinds[sys.argv[1]](*map(int, sys.argv[2:])))
