"""HTTP/1.1 on a connection: uvicorn's protocol with further bounds. They limit the size and time of
a request's head, the connections, and the queued requests of a connection. They also limit the time
for which an answer waits for a reader. Event streams wait without a limit: they hold one buffer.
"""

from __future__ import annotations

import binascii
import resource
from asyncio import TimerHandle
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Any, NamedTuple

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from levada.core.frozen import frozen
from levada.server.security.log_budget import BUDGET

# The check whether an upgrade request is a WebSocket handshake (RFC 6455, 4.2.1). It runs before
# the WebSocket library, so that mistakes are answered like all others.
#
# Another version gets a 426 with the supported one (4.4), all other faults a 400. ``request_guard``
# checks origin and token.


VERSION = "13"
HEADERS, LINE = 100, 8000  # a little less than the WebSocket library reads
_KEY = 16  # bytes


class Fault(NamedTuple):
    """The answer to a faulty handshake."""

    status: str
    detail: str
    headers: Mapping[str, str] = {}


def fault_of(method: str, http: str, headers: Iterable[tuple[bytes, bytes]]) -> Fault | None:
    """Returns the fault of a request with ``Upgrade: websocket``; None for a valid one.

    >>> said = [(b"sec-websocket-key", b"AAAAAAAAAAAAAAAAAAAAAA==")]
    >>> fault_of("GET", "1.1", [*said, (b"sec-websocket-version", b"13")])
    >>> fault_of("GET", "1.1", [*said, (b"sec-websocket-version", b"8")]).status
    '426 Upgrade Required'
    """
    header_list = list(headers)
    keys, versions = (
        _header_values(header_list, name) for name in (b"sec-websocket-key", _VERSION)
    )
    if (method, http) != ("GET", "1.1"):
        return _bad_request("A WebSocket begins with a GET of HTTP/1.1.")
    if len(versions) != 1:
        return _bad_request(f"A WebSocket says one Sec-WebSocket-Version, which is {VERSION}.")
    if versions[0] != VERSION.encode():
        detail = f"A WebSocket is spoken here in version {VERSION} only."
        said = {"upgrade": "websocket", "sec-websocket-version": VERSION}
        return Fault("426 Upgrade Required", detail, said)
    if _header_values(header_list, b"content-length") + _header_values(
        header_list, b"transfer-encoding"
    ):
        return _bad_request("The request that begins a WebSocket has no body.")
    if len(header_list) > HEADERS or any(
        len(name) + len(value) > LINE for name, value in header_list
    ):
        detail = f"A WebSocket begins with at most {HEADERS} headers of at most {LINE:,} bytes."
        return Fault("431 Request Header Fields Too Large", detail)
    if len(keys) != 1 or not _is_key(keys[0]):
        return _bad_request(
            f"A WebSocket says one Sec-WebSocket-Key, which is {_KEY} bytes in base64."
        )
    return None


_VERSION = b"sec-websocket-version"


def _bad_request(detail: str) -> Fault:
    return Fault("400 Bad Request", detail)


def _header_values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value.strip() for said, value in headers if said == name]


def _is_key(value: bytes) -> bool:
    try:
        return len(binascii.a2b_base64(value, strict_mode=True)) == _KEY
    except binascii.Error:
        return False


MIN_READ_BYTES = 16 << 10  # bytes of an answer that a client must read within ``Bounds.unread``
QUEUED = 32  # requests of a connection that wait for those before them
SPARE = 256  # open files of a server other than connections
EVENTS = "events"  # in a request's state: its answer is endless, and may wait for its reader
_ANSWER = (
    "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\nconnection: close\r\n"
    "content-length: {size}\r\n{headers}\r\n{body}"
)


@frozen
class Bounds:
    """The bounds of connections. ``head``: bytes of a request's head, and of the framing between
    two pieces of its body. ``seconds``: time for the head. ``unread``: seconds in which a client
    must read on. ``refused``: answers of the protocol itself, by status.
    """

    head: int
    seconds: float
    connections: int
    unread: float
    refused: Counter[int] = field(default_factory=Counter)


class BoundedHttpProtocol(HttpToolsProtocol):
    """A connection whose heads arrive one after the other, each within its bounds."""

    bounds: Bounds
    _head = _between = _size = 0
    _timer: TimerHandle | None = None
    _unread: TimerHandle | None = None
    _crowded = False

    def connection_made(self, transport: Any) -> None:
        """Starts the time for the head, or refuses a connection beyond the limit."""
        super().connection_made(transport)
        if len(self.connections) > self.bounds.connections:
            self._refuse("503 Service Unavailable", "Too many connections.")
            return
        self._await_head()

    def _await_head(self) -> None:
        self._head = 0
        self._timer = self.loop.call_later(self.bounds.seconds, self._refuse_late)

    def _refuse_late(self) -> None:
        if self._head:
            self._refuse("408 Request Timeout", "The request's head did not come in time.")
        elif not self.transport.is_closing():
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Counts bytes until the head is complete. Also counts trailers and chunk headers, which
        have no other bound.
        """
        if self.transport.is_closing():
            return
        BUDGET.receive(len(data))
        if self._timer is not None:
            self._head += len(data)
        self._between += len(data)
        super().data_received(data)
        most, closing = self.bounds.head, self.transport.is_closing()
        if self._timer is not None and self._head > most:
            self._refuse_head()
        elif self._timer is None and self._between > most and not closing:
            self._refuse(
                "431 Request Header Fields Too Large",
                f"Between two pieces of a body are at most {most:,} bytes.",
            )

    def on_url(self, url: bytes) -> None:
        """Counts the URL, because a head in one piece is bounded by its parts."""
        self._count_bytes(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Counts a line of the head or the trailers."""
        self._count_bytes(name, value)
        super().on_header(name, value)

    def _count_bytes(self, *parts: bytes) -> None:
        self._size += sum(map(len, parts)) + len(": \r\n")
        if self._size > self.bounds.head:
            raise ValueError(
                "The head is too large."
            )  # the parser ends, and this is answered below

    def on_body(self, body: bytes) -> None:
        """Resets the count of framing bytes after a piece of the body."""
        self._between = 0
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        """Answers malformed HTTP in the same form as other errors."""
        if self._crowded:  # an answer here would cut the current one
            self.bounds.refused[429] += 1
            self.transport.abort()
        elif self._size > self.bounds.head:
            self._refuse_head()
        else:
            self._refuse("400 Bad Request", "This is no request of HTTP/1.1.")

    def _refuse_head(self) -> None:
        most = self.bounds.head
        detail = f"The head of a request has at most {most:,} bytes."
        self._refuse("431 Request Header Fields Too Large", detail)

    def on_headers_complete(self) -> None:
        """Stops the time for the head."""
        self._settle()
        self._between = 0
        super().on_headers_complete()

    def on_message_begin(self) -> None:
        """Starts the time for another request's head. Raises ``ValueError``, which ends the parser,
        if too many requests wait.
        """
        if len(self.pipeline) >= QUEUED:
            self._crowded = True
            raise ValueError("Too many requests wait.")  # the parser ends
        super().on_message_begin()
        self._size = 0
        if self._timer is None:
            self._await_head()

    def pause_writing(self) -> None:
        """Begins to watch a client that reads too slowly."""
        super().pause_writing()
        self._look(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        """Stops the watch, because the client has read the buffered bytes."""
        super().resume_writing()
        self._end_look()

    def _look(self, before: int) -> None:
        """Checks later whether the client has read on, and aborts the connection if it has not."""
        self._end_look()

        def late() -> None:
            left = self.transport.get_write_buffer_size()
            if before - left >= MIN_READ_BYTES or self.cycle.scope["state"].get(EVENTS):
                self._look(left)
            else:
                self.transport.abort()

        self._unread = self.loop.call_later(self.bounds.unread, late)

    def _end_look(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
        self._unread = None

    def timeout_keep_alive_handler(self) -> None:
        """Closes an idle connection, at once if the client has not read its answer."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().timeout_keep_alive_handler()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops all timers."""
        self._settle()
        self._end_look()
        self.pipeline.clear()
        super().connection_lost(exc)

    def _settle(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None

    def handle_websocket_upgrade(self) -> None:
        """Hands the connection to the WebSocket protocol, or answers a faulty handshake."""
        fault = fault_of(self.scope["method"], self.scope["http_version"], self.headers)
        if fault is None:
            self._end_look()
            super().handle_websocket_upgrade()
        else:
            self._refuse(*fault)

    def _refuse(
        self, status: str, detail: str, headers: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._settle()
        number, title = status.split(" ", 1)
        body = f'{{"title": "{title}", "status": {number}, "detail": "{detail}"}}\n'
        more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        answer = _ANSWER.format(status=status, size=len(body), headers=more, body=body)
        self.bounds.refused[int(number)] += 1
        self.transport.write(answer.encode())
        self.transport.close()


def room(connections: int) -> int:
    """Returns ``connections``, or as many as the open files of this process allow. Raises the
    system's soft limit for them. A server without free files could open nothing else.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + SPARE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections if soft == resource.RLIM_INFINITY else min(connections, soft - SPARE)


def protocol(bounds: Bounds) -> type[BoundedHttpProtocol]:
    """Returns the protocol class of a server with these bounds."""
    return type("Protocol", (BoundedHttpProtocol,), {"bounds": bounds})
