"""``isolation``: one token adds and removes expensive queries in a loop, while a query of another
token reports and a third token asks the server.

``delay`` is from the time of a report to its arrival at a client of server-sent events, in ms. The
query reports each 200 ms of the clock. ``answer`` is the time of ``GET /queries``, in ms. ``alone``
has nobody in the loop, and ``text`` of the others names the query in the loop. ``later`` is what
its median delay adds. ``keeps`` says that a text keeps the limits of issue 35: reports are later by
at most 50 ms or 20 %, whichever is more, and requests are answered within a second. ``load`` is
that of the machine over a minute, before and after: figures of a busy machine say little.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx

from bench.result import Result
from levada.server.run_server import bind_socket
from levada.server.security.tokens import add_token

LASTS = 20.0  # s of each text
WARM = 5.0  # s before
TICK = 0.05  # s between two elements
PATIENCE = 60.0  # s
LATER_MS, LATER_SHARE, ANSWER_MS = 50, 0.2, 1000
SPARQL, CQL = "application/sparql-query", "application/cql"
WINDOW = "FROM NAMED WINDOW <w> ON <s> [RANGE PT0.2S STEP PT0.2S]"
NEIGHBOUR = f"SELECT (COUNT(*) AS ?n) {WINDOW} {{ WINDOW <w> {{ ?a ?b ?c }} }}"
ROWS = "T [Range 1 s Slide 1 s]"


def _sparql(group: str) -> str:
    return f"SELECT * {WINDOW} {{ WINDOW <w> {{ ?a ?b ?c {group} }} }}"


TEXTS = {
    "nested_exists": (SPARQL, _sparql("FILTER NOT EXISTS { ?a <p> ?c " * 100 + "}" * 100)),
    "patterns": (SPARQL, _sparql(" ".join(f". ?a <p{i}> ?o{i}" for i in range(480)))),
    "path": (SPARQL, _sparql(f". ?a !({'|'.join(f'<p{i}>' for i in range(1900))}) ?d")),
    "constants": (SPARQL, _sparql(f"FILTER(?c IN ({', '.join(map(str, range(1900)))}))")),
    "joins": (
        CQL,
        f"Rstream(Select a.v From {ROWS} a "
        + " ".join(f"Left Join {ROWS} t{i} On t{i}.v > a.v" for i in range(6))
        + ")",
    ),
    "values": (SPARQL, _sparql(f"VALUES ?c {{ {' '.join(map(str, range(30_000)))} }}")),
}


def run(scale: float, stepped: bool) -> Result:
    """Measures each text. ``scale`` is of seconds; the server is a process of its own,
    ``stepped`` or not.
    """
    lasts, before = max(LASTS * scale, 1.0), os.getloadavg()[0]
    with _served() as (url, tokens), _posting(url, tokens["push"]):
        _measure(url, tokens, max(WARM * scale, 1.0))
        alone = _measure(url, tokens, lasts)
        sides: dict[str, Any] = {"alone": alone}
        for name, (media, text) in TEXTS.items():
            with _repeating(url, tokens["loop"], media, text) as statuses:
                side = _measure(url, tokens, lasts)
            later = side["delay_p50"] - alone["delay_p50"]
            keeps = later <= max(LATER_MS, LATER_SHARE * alone["delay_p50"])
            side |= {"later": later, "keeps": keeps and side["answer_max"] <= ANSWER_MS}
            sides[name] = side | {"statuses": statuses}
    return Result("isolation", sides | {"load": [before, os.getloadavg()[0]]})


@contextmanager
def _served() -> Iterator[tuple[str, dict[str, str]]]:
    """Runs a server with a token for each client, two streams and the neighbour's query."""
    with tempfile.TemporaryDirectory(prefix="levada-isolation-") as folder:
        file = Path(folder) / "tokens"
        roles = {"push": "push", "loop": "register", "read": "read", "operator": "admin"}
        tokens = {name: add_token(file, name, role) for name, role in roles.items()}
        with bind_socket("127.0.0.1", 0) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        command = [sys.executable, "-m", "levada", "serve", "--master", "none", "--no-progress"]
        command += ["--checkpoint", f"{folder}/ck", "--tokens", str(file), "--listen", address]
        with subprocess.Popen([*command, "--epoch", "100ms", "--partitions", "1"]) as process:
            try:
                with _client(f"http://{address}", tokens["operator"]) as client:
                    _await(lambda: client.get("/health/ready").status_code == 200)
                    client.put("/streams/s").raise_for_status()
                    schema = {"format": "ndjson", "schema": {"v": "integer"}}
                    client.put("/streams/T", json=schema).raise_for_status()
                    _put(client, "neighbour", SPARQL, NEIGHBOUR).raise_for_status()
                yield f"http://{address}", tokens
            finally:
                process.terminate()


def _client(url: str, token: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.Client(base_url=url, headers=headers, timeout=PATIENCE)


def _put(client: httpx.Client, name: str, media: str, text: str) -> httpx.Response:
    return client.put(f"/queries/{name}", content=text, headers={"Content-Type": media})


def _await(condition: Callable[[], bool]) -> None:
    """Waits for the server."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with suppress(httpx.HTTPError):
            if condition():
                return
        time.sleep(0.1)
    raise TimeoutError("the server does not answer")


@contextmanager
def _repeating_thread(step: Callable[[], None]) -> Iterator[None]:
    """Repeats a step on a thread until the block ends."""
    ended = threading.Event()

    def repeat() -> None:
        while not ended.is_set():
            step()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def _posting(url: str, token: str) -> Iterator[None]:
    """Posts elements with the time of the clock."""
    with _client(url, token) as client:

        def post() -> None:
            now = time.time_ns() // 1_000_000
            line = f'<http://e/a> <http://e/t> "{now % 9}" {now} .\n'
            row = json.dumps({"v": now % 9, "ts": now}) + "\n"
            for name, media, content in (("s", "n-quads", line), ("T", "x-ndjson", row)):
                headers = {"Content-Type": f"application/{media}"}
                client.post(f"/streams/{name}", content=content, headers=headers).raise_for_status()
            time.sleep(TICK)

        with _repeating_thread(post):
            yield


@contextmanager
def _repeating(url: str, token: str, media: str, text: str) -> Iterator[dict[str, int]]:
    """Adds and removes a query again and again. Counts the statuses of the answers."""
    statuses: dict[str, int] = {}
    with _client(url, token) as client:

        def add() -> None:
            status = str(_put(client, "loop", media, text).status_code)
            statuses[status] = statuses.get(status, 0) + 1
            client.delete("/queries/loop")

        with _repeating_thread(add):
            yield statuses


def _measure(url: str, tokens: dict[str, str], seconds: float) -> dict[str, Any]:
    """Returns the delays of reports and the times of answers, in ms."""
    answers: list[float] = []
    delays: list[float] = []
    with _client(url, tokens["read"]) as reader, _client(url, tokens["read"]) as asker:

        def ask() -> None:
            began = time.perf_counter()
            asker.get("/queries")
            answers.append(1000 * (time.perf_counter() - began))
            time.sleep(0.1)

        events = {"Accept": "text/event-stream"}
        end = time.monotonic() + seconds
        path = "/queries/neighbour/results"
        with _repeating_thread(ask), reader.stream("GET", path, headers=events) as stream:
            for line in stream.iter_lines():
                if line.startswith("data:"):
                    report = json.loads(line[5:])["report"]
                    delays.append(time.time_ns() / 1e6 - report)
                if time.monotonic() > end:
                    break
    return {**_figures("delay", delays), **_figures("answer", answers)}


def _figures(name: str, values: list[float]) -> dict[str, float]:
    ordered = sorted(values) or [float("nan")]
    p99 = ordered[min(len(ordered) * 99 // 100, len(ordered) - 1)]
    median = statistics.median(ordered)
    return {
        f"{name}_count": len(values),
        f"{name}_p50": round(median, 1),
        f"{name}_p99": round(p99, 1),
        f"{name}_max": round(ordered[-1], 1),
    }
