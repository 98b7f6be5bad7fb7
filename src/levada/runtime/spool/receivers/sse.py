"""Server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): the data of
each event are a message.

What is asked for begins behind the id of the last event that is durable (``Last-Event-ID``), which
is in the same file of the log as the event: where each event has an id of its own and the server
resumes by it, each event is taken exactly once, whoever dies. An event without data is none.
"""

from __future__ import annotations

import socket
import time
from contextlib import suppress
from types import ModuleType
from typing import Any

from levada.runtime.spool.feed import Line
from levada.runtime.spool.log import Message
from levada.runtime.spool.receivers.pulled import (
    OPENING,
    Puller,
    RefusedError,
    authorization,
    missing,
    tls_of,
)

_ALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
]
_TEMPORARY = (408, 425, 429)


class Events:
    """One connection to a server of events."""

    def __init__(self, line: Line) -> None:
        self._line, self._feed = line, line.feed
        self._httpx, self._events = _libraries()
        self._tls = tls_of(self._feed) if self._feed.tls else True
        self._socket: Any = None
        self._last = line.note

    def listen(self) -> None:
        """Until the server ends it."""
        headers = {**authorization(self._feed), "Accept-Encoding": "identity"}
        if self._last:
            headers["Last-Event-ID"] = self._last
        timeout = self._httpx.Timeout(OPENING, read=None)
        transport = self._httpx.HTTPTransport(verify=self._tls, socket_options=_ALIVE)
        with (
            self._httpx.Client(transport=transport, timeout=timeout) as client,
            self._events.connect_sse(client, "GET", self._feed.url, headers=headers) as source,
        ):
            _check(source.response)
            stream = source.response.extensions["network_stream"]
            self._socket = stream.get_extra_info("socket")
            self._line.up()
            for event in source.iter_sse():
                if event.data:
                    self._take(event)

    def _take(self, event: Any) -> None:
        now = time.time_ns() // 1_000_000
        self._last = event.id or self._last
        self._line.put(Message(event.data.encode(), event.event, now, note=event.id))

    def close(self) -> None:
        """Wakes who waits for an event."""
        with suppress(OSError, AttributeError):
            self._socket.shutdown(socket.SHUT_RDWR)


def _check(response: Any) -> None:
    code = response.status_code
    kind = response.headers.get("content-type", "").partition(";")[0].strip()
    if code == 200 and kind == "text/event-stream":
        return
    if code == 200:
        raise RefusedError(f"it answers with {kind or 'nothing'} and not with text/event-stream")
    if code in _TEMPORARY or code >= 500:
        raise OSError(f"it answers with {code} {response.reason_phrase}")
    raise RefusedError(f"it answers with {code} {response.reason_phrase}")


def sse_receiver(line: Line) -> Puller:
    """What listens to a server of events."""
    httpx, events = _libraries()
    return Puller(line, Events(line), (httpx.HTTPError, httpx.StreamError, events.SSEError))


def _libraries() -> tuple[ModuleType, ModuleType]:
    try:
        import httpx
        import httpx_sse
    except ImportError as error:
        raise missing("httpx-sse") from error
    return httpx, httpx_sse
