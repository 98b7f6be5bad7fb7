"""Streams that are pulled: events and WebSockets, of servers that die and come again."""

from __future__ import annotations

import http.server
import io
import itertools
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console
from websockets.sync.server import Server, ServerConnection, serve

from levada.cli.status import show
from levada.connectors.spool import feed_spool
from levada.engine.engine import Engine
from levada.engine.status.status import read_status
from levada.errors import SourceError
from levada.server.settings import Settings
from support.http_server import GRAPHS, served, until
from support.polling import PATIENCE

S = "http://e/s"
ALL: list[Events] = []
TEXT = """PREFIX : <http://e/> SELECT ?a ?n
FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S] WHERE { WINDOW :w { ?a :q ?n } }"""


def statement(k: int) -> str:
    return f'<http://e/a> <http://e/q> "{k}" {100 * k} .'


class Events(http.server.ThreadingHTTPServer):
    """A server of numbered events that dies when it has sent so many of one answer."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.events: list[str] = []
        self.most = 1_000_000  # events of an answer
        self.asked: list[str | None] = []  # the ids from which
        self.tokens: list[str | None] = []
        self.open: list[socket.socket] = []
        self.over = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        ALL.append(self)

    def die(self) -> None:
        if self.over.is_set():
            return
        self.over.set()
        self.hang_up()
        self.shutdown()
        self.server_close()

    def hang_up(self) -> None:
        for each in self.open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    @property
    def path(self) -> str:
        return f"sse+http://127.0.0.1:{self.server_address[1]}/events"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Events

    def log_message(self, *said: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.path != "/events":
            self.send_error(404)
            return
        own = self.server
        own.open.append(self.connection)
        last = self.headers.get("Last-Event-ID")
        own.asked.append(last)
        own.tokens.append(self.headers.get("Authorization"))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        at = 0 if last is None else int(last) + 1
        with suppress(OSError):
            self._write(": hello\n\nretry: 10\n\n")
            for _ in range(own.most):
                while at >= len(own.events):
                    if own.over.wait(0.005):
                        return
                data = "".join(f"data: {line}\r\n" for line in own.events[at].split("\n"))
                self._write(f"id: {at}\r\nevent: x\r\n{data}\r\n")
                at += 1
            self._write(f"id: {at}\r\ndata: half an eve")

    def _write(self, text: str) -> None:
        self.wfile.write(text.encode())
        self.wfile.flush()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("levada.connectors.spool.receivers.pull_loop.FIRST_RETRY_PAUSE", 0.01)
    monkeypatch.setattr("levada.connectors.spool.receivers.pull_loop.MAX_RETRY_PAUSE", 0.05)
    yield
    while ALL:
        ALL.pop().die()


@contextmanager
def listening(path: str, **options: Any) -> Iterator[tuple[Engine, Any]]:
    checkpoint = options.pop("checkpoint", None)
    with Engine(spark=False, checkpoint=checkpoint, partitions=2, epoch="5ms") as engine:
        engine.stream(S, path, **{"format": "nt", **options})
        asked = engine.register(TEXT, name="q")
        engine.start()
        yield engine, asked


def elements(engine: Engine) -> int:
    record = engine._records().get(S)
    assert record is None or not record.late + record.dead_letters, record
    return 0 if record is None else record.elements


def test_each_event_is_taken_once_whoever_dies(tmp_path: Path) -> None:
    server = Events()
    server.events = [statement(k) for k in range(20)]
    server.most = 7  # then the answer ends within an event
    root = tmp_path / "ck"
    with listening(server.path, checkpoint=root) as (engine, _):
        until(lambda: elements(engine) == 20)
        assert server.asked[:3] == [None, "6", "13"]
        server.die()
        until(lambda: "waits for 127.0.0.1" in engine.progress().waiting_for)
        server, before = Events(server.server_address[1]), server
        server.events = [*before.events, statement(20) + "\n" + statement(20).replace("a>", "b>")]
        until(lambda: elements(engine) == 21)
        until(lambda: not engine.progress().waiting_for)
        assert server.asked == ["19"]
    server.events.append(statement(22))
    with listening(server.path, checkpoint=root) as (engine, _):
        until(lambda: elements(engine) == 22)
        assert server.asked == ["19", "20"]


def test_who_is_away_is_told_since_when_and_why(tmp_path: Path) -> None:
    """By the engine, by its checkpoint, over HTTP; and no more once it is there again."""
    server = Events()
    server.events = [statement(k) for k in range(20)]
    root = tmp_path / "ck"
    with listening(server.path, checkpoint=root) as (engine, _):
        until(lambda: elements(engine) == 20)
        assert engine.status().unavailable_streams == ()
        server.die()
        until(lambda: bool(read_status(root).unavailable_streams))
        (found,) = read_status(root).unavailable_streams
        port = server.server_address[1]
        assert found.stream == S
        assert found.reason.startswith(f"The stream {S} waits for 127.0.0.1:{port}: ")
        (told,) = engine.status().unavailable_streams
        assert told.since_ms == found.since_ms, "since it is away, and not since it was looked at"
        assert f"{found.reason[:-1]}, since 20" in printed(root)
        with (
            served(Settings(root, port=0)) as url,
            httpx.Client(base_url=url, timeout=PATIENCE) as client,
        ):
            (said,) = client.get("/status").json()["unavailable_streams"]
            assert (said["stream"], said["since_ms"], said["age_seconds"] >= 0) == (
                S,
                found.since_ms,
                True,
            )
            assert (
                f'levada_stream_unavailable_seconds{{stream="{S}"}}' in client.get("/metrics").text
            )
            server, before = Events(port), server
            server.events = before.events
            until(lambda: client.get("/status").json()["unavailable_streams"] == [])
            assert "levada_stream_unavailable_seconds{" not in client.get("/metrics").text


def printed(root: Path) -> str:
    """What ``levada status`` prints, on one line."""
    console = Console(width=100, file=io.StringIO())
    with console.capture() as caught:
        console.print(show(read_status(root)))
    return " ".join(caught.get().split())


def test_lines_of_an_event_and_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENTS_TOKEN", "tok-1")
    server = Events()
    server.events = ["\n".join(map(statement, range(5)))]
    given = {"element": "line", "password": "env:EVENTS_TOKEN"}
    with listening(server.path, **given) as (engine, _):
        until(lambda: elements(engine) == 5)
    with listening(server.path, **given, user="me") as (engine, _):
        until(lambda: elements(engine) == 5)
    assert server.tokens == ["Bearer tok-1", "Basic bWU6dG9rLTE="]


def test_a_token_that_is_none_is_told_and_not_said(tmp_path: Path) -> None:
    server, file = Events(), tmp_path / "token"
    given = {"password": f"file:{file}"}
    for told in ("with the password cannot be read", "The password is no token"):
        with pytest.raises(SourceError, match=told) as caught, listening(server.path, **given):
            pass
        assert "canary" not in str(caught.value)
        file.write_text("canary 7\n")
    server.die()


def test_a_token_that_is_away_for_a_while_is_waited_for(tmp_path: Path) -> None:
    """As where a file of secrets is replaced just when the connection breaks."""
    server, file = Events(), tmp_path / "token"
    file.write_text("one\n")
    server.events = [statement(k) for k in range(5)]
    with listening(server.path, password=f"file:{file}") as (engine, _):
        until(lambda: elements(engine) == 5)
        file.unlink()
        server.hang_up()
        until(lambda: "cannot be read" in engine.progress().waiting_for)
        server.events += [statement(k) for k in range(5, 9)]
        file.write_text("other\n")
        until(lambda: elements(engine) == 9)
    assert {server.tokens[0], server.tokens[-1]} == {"Bearer one", "Bearer other"}


def test_what_is_no_stream_of_events_is_told() -> None:
    server = Events()
    with (
        pytest.raises(SourceError, match="it answers with 404 Not Found"),
        listening(f"{server.path}s"),
    ):
        pass
    server.die()


@contextmanager
def socket_of(sent: list[str | bytes], port: int = 0) -> Iterator[Server]:
    """A WebSocket that sends what is in a list from where it was."""
    over = threading.Event()

    def talk(connection: ServerConnection) -> None:
        with suppress(Exception):
            while not over.wait(0.002):
                while sent:
                    connection.send(sent.pop(0))

    server = serve(talk, "127.0.0.1", port)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        over.set()
        server.shutdown()


def test_a_websocket_that_dies_and_comes_again() -> None:
    sent: list[str | bytes] = [statement(1), statement(2).encode()]
    with ExitStack() as held:
        with socket_of(sent) as server:
            port = server.socket.getsockname()[1]
            engine, _ = held.enter_context(listening(f"ws://127.0.0.1:{port}/any?x=1"))
            until(lambda: elements(engine) == 2)
        until(lambda: "waits for" in engine.progress().waiting_for)
        until(lambda: [one.stream for one in engine.status().unavailable_streams] == [S])
        with socket_of([statement(3)], port):
            until(lambda: elements(engine) == 3)
            until(lambda: not engine.progress().waiting_for)
            until(lambda: not engine.status().unavailable_streams)


def test_messages_that_wait_to_be_written_are_bounded_in_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feed_spool, "BUFFER_BYTES", 10_000)
    full = [True]
    monkeypatch.setattr(feed_spool.Log, "full", lambda log: full[0])
    large = "x" * 1000
    sent: list[str | bytes] = [f"{statement(k)} # {large}" for k in range(200)]
    with socket_of(sent) as server:
        port = server.socket.getsockname()[1]
        with listening(f"ws://127.0.0.1:{port}/any") as (engine, _):
            spool = engine._spools.spool_of(S)
            assert isinstance(spool, feed_spool.FeedSpool)
            until(lambda: spool._bytes >= 10_000)
            assert spool._bytes == sum(each.size for each in spool._buffer) < 12_000
            full[0] = False
            until(lambda: elements(engine) == 200)


def reports(asked: Any) -> list[Any]:
    """The first reports, without their names of queries."""
    return [(r.time, sorted(map(str, r.rows.rows()))) for r in itertools.islice(asked.results(), 8)]


def test_what_one_engine_makes_another_one_reads(tmp_path: Path) -> None:
    file = tmp_path / "s.nt"
    file.write_text("".join(f'<http://e/a> <http://e/p> "{k}" {500 * k} .\n' for k in range(40)))
    with Engine(spark=False, checkpoint=tmp_path / "ck", keep="1h") as engine:
        engine.stream("s", file)
        engine.register(GRAPHS, name="made")
        here = engine.register(TEXT.replace(":s [", "<made> ["), name="here")
        engine.start()
        found = reports(here)
        assert any(rows for _, rows in found)
        with served(Settings(tmp_path / "ck", port=0)) as url:
            path = f"sse+{url}/queries/made/results?format=nt&after=0"
            with listening(path, element="line") as (_, there):
                assert reports(there) == found
