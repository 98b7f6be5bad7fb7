"""Events by WebSocket: the server-sent ones, with the same ids; refused as requests are."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from levada.server.live import result_feed as feed_module
from levada.server.live import sse as events_module
from levada.server.security.bounded_websocket import BoundedSocket
from levada.server.security.tokens import add_token
from levada.server.settings import Limits, Settings
from support.http_server import EVENTS, GRAPHS, Run, events, last_report, served
from support.polling import PATIENCE, until


def opened(client: httpx.Client, path: str, **said: Any) -> ClientConnection:
    return connect(f"ws://{client.base_url.netloc.decode()}{path}", proxy=None, **said)


def test_the_same_events_with_the_same_ids(client: httpx.Client, run: Run) -> None:
    run.engine.register(GRAPHS, name="made")
    run.feed(4)
    until(lambda: last_report(client, "hot") == 6000 and last_report(client, "made"))
    for path, n in (
        ("/queries/hot/results?after=2000", 4),
        ("/events?query=hot&query=made&after=hot=4000,made=0", 3),
    ):
        with opened(client, path) as open_socket:
            messages = [json.loads(open_socket.recv(timeout=PATIENCE)) for _ in range(n)]
        with client.stream("GET", path, headers=EVENTS) as answer:
            same = events(answer.iter_lines(), n)
        for message, event in zip(messages, same, strict=True):
            lines = [json.loads(line) for line in event["data"].split("\n")]
            assert message == {"id": event["id"], "event": "report", "data": lines}


def test_a_socket_goes_on_with_what_comes(client: httpx.Client, run: Run) -> None:
    with opened(client, "/events", additional_headers={"Last-Event-ID": "hot=3000"}) as open_socket:
        assert json.loads(open_socket.recv(timeout=PATIENCE))["id"] == "hot=4000"
        open_socket.send("what a client says is not looked at")
        run.feed(2)
        assert json.loads(open_socket.recv(timeout=PATIENCE))["id"] == "hot=5000"
    assert client.get("/health").status_code == 200


def refused(client: httpx.Client, path: str, **said: Any) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as error, opened(client, path, **said):
        pass
    answer = error.value.response
    return answer.status_code, json.loads(answer.body or b"{}").get("detail", "")


def test_what_is_refused(client: httpx.Client) -> None:
    assert refused(client, "/events?query=hut") == (404, "There is no query hut.")
    assert refused(client, "/queries/hut/results") == (404, "There is no query hut.")
    assert refused(client, "/queries/hot/results?after=noon")[0] == 400
    for path in ("/queries/hot/results?aftr=0", "/queries/hot/results?format=nt", "/events?q=hot"):
        assert (refused(client, path)[0], "has no parameter" in refused(client, path)[1]) == (
            400, True
        )  # fmt: skip
    assert refused(client, "/status")[0] == 403
    told = "A page of another origin asks, which is not answered."
    assert refused(client, "/events", origin="http://evil.example") == (403, told)
    assert refused(client, "/events", additional_headers={"Last-Event-ID": "4000"})[0] == 400


KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
V13 = b"Sec-WebSocket-Version: 13"


@pytest.mark.long
@pytest.mark.parametrize(
    ("line", "headers", "status", "told"),
    [
        (b"GET", [KEY, V13], 101, ""),
        (b"GET", [KEY, b"Sec-WebSocket-Version: 8"], 426, "version 13 only"),
        (b"GET", [KEY, b"Sec-WebSocket-Version: x"], 426, "version 13 only"),
        (b"GET", [KEY], 400, "one Sec-WebSocket-Version"),
        (b"GET", [KEY, V13, V13], 400, "one Sec-WebSocket-Version"),
        (b"GET", [V13], 400, "one Sec-WebSocket-Key"),
        (b"GET", [KEY, KEY, V13], 400, "one Sec-WebSocket-Key"),
        (b"GET", [b"Sec-WebSocket-Key: c2hvcnQ=", V13], 400, "16 bytes in base64"),
        (b"GET", [b"Sec-WebSocket-Key: \xc3\xa4!", V13], 400, "16 bytes in base64"),
        (b"POST", [KEY, V13], 400, "begins with a GET"),
        (b"GET", [KEY, V13, b"Content-Length: 5"], 400, "has no body"),
        (b"GET", [KEY, V13, b"Transfer-Encoding: chunked"], 400, "has no body"),
        (b"GET", [KEY, V13, *[b"X: y"] * 300], 431, "at most 100 headers"),
        (b"GET", [KEY, V13, b"X: " + b"y" * 9000], 431, "of at most 8,000 bytes"),
    ],
)
def test_a_handshake_that_is_none(
    client: httpx.Client, line: bytes, headers: list[bytes], status: int, told: str
) -> None:
    """As RFC 6455 says, 4.2.1 and 4.4; told as every other mistake is."""
    host = client.base_url.netloc
    head = [line + b" /events HTTP/1.1", b"Host: " + host, b"Connection: Upgrade"]
    asked = b"\r\n".join([*head, b"Upgrade: websocket", *headers, b"", b""])
    name, port = host.decode().split(":")
    with socket.create_connection((name, int(port)), timeout=PATIENCE) as made:
        made.sendall(asked)
        answer = http.client.HTTPResponse(made)
        answer.begin()
        assert answer.status == status
        if status == 101:
            return
        assert answer.getheader("Content-Type") == "application/problem+json"
        if status == 426:
            said = answer.getheader("Upgrade"), answer.getheader("Sec-WebSocket-Version")
            assert said == ("websocket", "13")
        body = json.loads(answer.read())
    assert body["status"] == status and told in body["detail"]


def test_tokens_and_how_much_is_open_of_one(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    read, push = add_token(path, "r", "read"), add_token(path, "p", "push")
    limits = Limits(own_connections=2)
    with served(Settings(run.root, port=0, tokens=path, limits=limits)) as url:
        bearer = {"Authorization": f"Bearer {read}"}
        client = httpx.Client(base_url=url, timeout=PATIENCE, headers=bearer)
        until(lambda: client.get("/queries/hot").status_code == 200)
        assert refused(client, "/events")[0] == 401
        other = {"Authorization": f"Bearer {push}"}
        assert refused(client, "/events", additional_headers=other)[0] == 403
        with opened(client, "/events", additional_headers=bearer) as one:
            with opened(client, "/events", additional_headers=bearer):
                found = client.get("/queries")
                assert (found.status_code, found.headers["retry-after"]) == (429, "1")
                assert found.json()["detail"] == "The token r has 2 requests open, which is all."
            until(lambda: client.get("/queries").status_code == 200)
            one.close()


def shaken(client: httpx.Client, path: str = "/events") -> socket.socket:
    """A WebSocket whose answers are not read by anybody."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.settimeout(PATIENCE)
    made.connect((client.base_url.host, client.base_url.port))
    head = [b"GET %b HTTP/1.1" % path.encode(), b"Host: localhost", b"Connection: Upgrade"]
    made.sendall(b"\r\n".join([*head, b"Upgrade: websocket", KEY, V13, b"", b""]))
    assert made.recv(12) == b"HTTP/1.1 101"
    return made


def test_pings_whose_answers_are_not_read_end_it(serve: Callable[..., httpx.Client]) -> None:
    client = serve()
    until(lambda: last_report(client) == 4000)
    ping = b"\x89" + bytes([0x80 | 125]) + bytes(4) + b"x" * 125
    with shaken(client) as deaf, pytest.raises(OSError, match=r"reset|Broken pipe"):
        while True:  # what the system holds is bounded, and so is what the server does
            deaf.sendall(ping * 1000)
    assert client.get("/health").status_code == 200


def test_who_answers_no_ping_is_gone(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    began = BoundedSocket.connection_made

    def begin(own: BoundedSocket, way: Any) -> None:
        made.append(own)
        began(own, way)

    monkeypatch.setattr(BoundedSocket, "connection_made", begin)
    with shaken(client):
        own = until(lambda: made and made[0])
        until(lambda: own.handshake_complete)
        own.loop.call_soon_threadsafe(own.transport.write, bytes(1 << 24))
        until(lambda: own.transport.get_write_buffer_size())
        own.loop.call_soon_threadsafe(own.keepalive_timeout)
        until(lambda: own.disconnected)


def test_a_token_that_is_taken_back_ends_its_events(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_module, "SILENCE", 0.3)
    monkeypatch.setattr(events_module, "SILENCE", 0.3)
    path = tmp_path / "tokens"
    bearer = {"Authorization": f"Bearer {add_token(path, 'r', 'read')}"}
    with served(Settings(run.root, port=0, tokens=path)) as url:
        client = httpx.Client(base_url=url, timeout=PATIENCE, headers=bearer)
        until(lambda: last_report(client) == 4000)  # nothing comes after that
        stream = client.stream("GET", "/queries/hot/results", headers=EVENTS)
        with stream as answer, opened(client, "/events", additional_headers=bearer) as one:
            lines = answer.iter_lines()
            assert [next(lines) for _ in range(3)] == ["retry: 1000", "", ":"]
            path.write_text("# nobody\n")
            assert set(lines) <= {"", ":"}, "and then it ends"
            with pytest.raises(ConnectionClosed) as closed:
                one.recv(timeout=PATIENCE)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008


def test_a_socket_that_says_too_much_is_closed(serve: Callable[..., httpx.Client]) -> None:
    client = serve()
    until(lambda: last_report(client) == 4000)
    with opened(client, "/events") as open_socket:
        open_socket.send("x" * 100_000)
        with pytest.raises(Exception, match=r"1009|too big|closed"):
            open_socket.recv(timeout=PATIENCE)
    assert client.get("/health").status_code == 200


@pytest.mark.parametrize("data", [b"\xff", b"caf\xe9", b"\xed\xa0\x80", b"\xc3"])
def test_a_text_that_is_not_utf8_ends_a_socket_and_is_not_logged(
    client: httpx.Client, capfd: pytest.CaptureFixture[str], data: bytes
) -> None:
    frame = bytes([0x81, 0x80 | len(data)]) + bytes(4) + data
    with shaken(client) as made:
        made.sendall(frame)
        received = b""
        while piece := made.recv(1000):
            received += piece
    assert received.endswith(b"\x88\x02" + (1007).to_bytes(2, "big"))
    assert client.get("/health").status_code == 200
    assert capfd.readouterr().err == ""
