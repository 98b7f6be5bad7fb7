"""Receives server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): the
data of each event are a message.

An event may have ``LARGEST`` bytes. The rest of a larger one is skipped, in the same connection,
and the event is a dead letter as soon as it is too large, since it may never end. A request begins
after the id of the last durable event (``Last-Event-ID``), which is in the same file of the log as
the event. So if each event has an id of its own and the server resumes by it, each event is
received exactly once, whichever process crashes. An event without data is ignored.
"""

from __future__ import annotations

import re
import socket
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any

from levada.connectors.spool.feed_spool import FeedSpool
from levada.connectors.spool.message_log import Message
from levada.connectors.spool.receivers.pull_loop import (
    LARGEST,
    OPENING,
    Puller,
    RefusedError,
    authorization,
    missing,
    tls_of,
)
from levada.core.clock import CLOCK

_ALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
]
_TEMPORARY = (408, 425, 429)
_LINE_END = re.compile(rb"\r\n|\r|\n")
_ID = re.compile(r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f])?")
LONGEST_ID = 4096  # the most characters in a header


class EventDecoder:
    r"""Decodes a body that arrives in blocks into messages: one for each event with data.

    >>> events = EventDecoder()
    >>> [m.payload for m in [*events.decode(b"id: 7\ndata: a\nda"), *events.decode(b"ta: b\n\n")]]
    [b'a\nb']
    """

    def __init__(self) -> None:
        self._line, self._data = bytearray(), bytearray()
        self._event, self._id = "", ""
        self._begins, self._after_return, self._is_dropped = True, False, False

    def decode(self, block: bytes) -> Iterator[Message]:
        """Decodes a block; returns the events that end in it, and one that becomes too large."""
        if self._after_return and block.startswith(b"\n"):
            block = block[1:]
        self._after_return = block.endswith(b"\r")
        *ended, rest = _LINE_END.split(block)
        for line in ended:
            yield from self._extend(line)
            yield from self._end_line()
        yield from self._extend(rest)

    def _extend(self, part: bytes) -> Iterator[Message]:
        """Appends to a line. If the line is too large, only its first byte stays, its kind."""
        if len(self._line) + len(self._data) + len(part) <= LARGEST:
            self._line += part
            return
        self._line = bytearray((self._line or part)[:1])
        if self._is_dropped or self._line == b":":  # the size of comments is unlimited
            return
        self._is_dropped = True
        self._data.clear()
        yield self._message(
            b"", fault=f"the event has more than {LARGEST >> 20} MB: it is not taken"
        )

    def _end_line(self) -> Iterator[Message]:
        line = bytes(self._line)
        self._line.clear()
        if self._begins:
            line, self._begins = line.removeprefix(BOM_UTF8), False
        if line:
            self._take(line)
            return
        if payload := bytes(self._data[:-1]):
            yield self._message(_utf8(payload))
        self._data.clear()
        self._event, self._is_dropped = "", False

    def _take(self, line: bytes) -> None:
        """Handles a field of an event."""
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data" and not self._is_dropped:
            self._data += value + b"\n"
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id":
            said = value.decode("utf-8", "replace")
            if not said or is_header(said):  # others cannot be sent back
                self._id = said

    def _message(self, payload: bytes, fault: str = "") -> Message:
        now = CLOCK()
        return Message(payload, self._event or "message", now, note=self._id, fault=fault)


def is_header(text: str) -> bool:
    """Whether a header can have this value.

    >>> is_header("a 1"), is_header("a\x0b1"), is_header(" 1")
    (True, False, False)
    """
    return len(text) <= LONGEST_ID and _ID.fullmatch(text) is not None


def _utf8(data: bytes) -> bytes:
    return data if data.isascii() else data.decode("utf-8", "replace").encode()


class Events:
    """One connection to a server of events."""

    def __init__(self, line: FeedSpool) -> None:
        self._line, self._feed = line, line.feed
        self._httpx, self._events = _libraries()
        self._tls = tls_of(self._feed) if self._feed.tls else True
        self._socket: Any = None
        self._last = line.note

    def listen(self) -> None:
        """Listens until the server ends the connection."""
        headers: dict[str, str | bytes] = {**authorization(self._feed)}
        headers["Accept-Encoding"] = "identity"
        if is_header(self._last):
            headers["Last-Event-ID"] = self._last.encode()
        timeout = self._httpx.Timeout(OPENING)
        transport = self._httpx.HTTPTransport(verify=self._tls, socket_options=_ALIVE)
        with (
            self._httpx.Client(transport=transport, timeout=timeout) as client,
            self._events.connect_sse(client, "GET", self._feed.url, headers=headers) as source,
        ):
            _check(source.response)
            source.response.request.extensions["timeout"]["read"] = None  # events may be rare
            stream = source.response.extensions["network_stream"]
            self._socket = stream.get_extra_info("socket")
            self._line.up()
            events = EventDecoder()
            for block in source.response.iter_bytes():
                for message in events.decode(block):
                    self._last = message.note or self._last
                    self._line.put(message)

    def close(self) -> None:
        """Wakes the thread that waits for an event."""
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


def sse_receiver(line: FeedSpool) -> Puller:
    """Makes the receiver of a server of events."""
    return Puller(line, Events(line))


def _libraries() -> tuple[ModuleType, ModuleType]:
    try:
        import httpx
        import httpx_sse
    except ImportError as error:
        raise missing("httpx-sse") from error
    return httpx, httpx_sse
