"""Requests to a server of events, or to a WebSocket, and its answers are lost or cut, and the
connection is reset, or falls silent before it answers: each event is taken once.
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from test_pulled import Events, _quick, elements, listening, socket_of, statement

from levada.errors import SourceError
from support.fault_proxy import FaultProxy, http, lines
from support.http_server import until

assert _quick, "a fixture for each test here"
MESSAGES = ["connect", "> GET", "< HTTP", "< : hello", "< id: 3", "< id: 9", "< id: 17"]


@pytest.mark.parametrize("fault", ["reset", "cut", "hang"])
def test_a_fault_at_each_message_takes_each_event_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr("levada.connectors.spool.receivers.sse.OPENING", 1.0)
    server = Events()
    server.events = [statement(k) for k in range(20)]
    faults = [(f"^{message}", fault) for message in (MESSAGES[:3] if fault == "hang" else MESSAGES)]
    with FaultProxy(server.server_address[1], lines, faults) as proxy:
        url = server.path.replace(str(server.server_address[1]), str(proxy.port))
        with listening(url, checkpoint=tmp_path / "ck") as (engine, _):
            until(lambda: elements(engine) == 20)
            assert not proxy.faults
            server.events.append(statement(20))  # behind it nothing comes twice
            until(lambda: elements(engine) >= 21)
            assert elements(engine) == 21
    resumed = [int(each) for each in server.asked if each is not None]
    assert resumed == sorted(resumed), "each answer begins behind the last event"


@pytest.mark.parametrize("fault", ["reset", "cut", "hang"])
def test_a_fault_at_each_message_of_a_handshake_delays_a_websocket(
    monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr("levada.connectors.spool.receivers.websocket.OPENING", 1.0)
    sent: list[str | bytes] = []
    faults = [(f"^{message}", fault) for message in MESSAGES[:3]]
    with (
        socket_of(sent) as server,
        FaultProxy(server.socket.getsockname()[1], http, faults) as proxy,
        listening(f"ws://127.0.0.1:{proxy.port}/any") as (engine, _),
    ):

        def is_heard() -> bool:
            sent.append(statement(len(proxy.labels)))  # a server may send to a connection that died
            return elements(engine) > 0

        until(is_heard)
        assert not proxy.faults


@pytest.mark.parametrize("place", ["http://localhost:{}/events", "file:///etc/passwd"])
def test_a_redirect_is_not_followed_and_gets_no_password(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another host would get the password."""
    monkeypatch.setattr("levada.connectors.spool.feed_spool.PATIENCE", 1.0)
    monkeypatch.setenv("WORD", "word")
    other = Events()
    other.events = [statement(1)]

    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", place.format(other.server_address[1]))
            self.end_headers()

        def log_message(self, *said: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"sse+http://127.0.0.1:{server.server_address[1]}/events"
        with (
            pytest.raises(SourceError, match="answers with 302"),
            listening(url, user="u", password="env:WORD"),
        ):
            pass
        server.shutdown()
    assert not other.asked
