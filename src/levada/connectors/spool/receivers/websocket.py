"""Receives WebSockets (RFC 6455): each message, text or binary, is one. WebSocket streams cannot
resume: messages sent while nobody listens are lost, which the status reports.
"""

from __future__ import annotations

from contextlib import suppress
from types import ModuleType
from typing import Any

from levada.connectors.spool.feed_spool import FeedSpool
from levada.connectors.spool.message_log import Message
from levada.connectors.spool.receivers.pull_loop import (
    CLOSED,
    LARGEST,
    OPENING,
    Puller,
    RefusedError,
    authorization,
    missing,
    tls_of,
)
from levada.core.clock import CLOCK

_TOO_BIG = 1009  # the close code for a message that is too large
_ALIVE = 20  # s between two pings
_REFUSED = range(400, 500)
_QUEUE = 4  # messages that the library holds


class Messages:
    """One connection to a WebSocket."""

    def __init__(self, line: FeedSpool) -> None:
        self._line, self._feed = line, line.feed
        self._client, self._exceptions = _libraries()
        self._tls = tls_of(self._feed) if self._feed.tls else None
        self._socket: Any = None

    def listen(self) -> None:
        """Listens until the other side ends the connection."""
        with self._connect() as self._socket:
            self._line.up()
            try:
                while True:  # the parser refuses texts that are not UTF-8
                    payload = self._socket.recv(decode=False)
                    self._line.put(Message(payload, "", CLOCK()))
            except self._exceptions.ConnectionClosed as error:
                self._tell_dropped(error)
                raise
        raise ConnectionError(CLOSED)

    def _connect(self) -> Any:
        try:
            return self._client.connect(
                self._feed.url, ssl=self._tls, additional_headers=authorization(self._feed),
                open_timeout=OPENING, max_size=LARGEST, max_queue=_QUEUE, ping_interval=_ALIVE,
                ping_timeout=_ALIVE, proxy=None,
            )  # fmt: skip
        except Exception as error:
            code = getattr(getattr(error, "response", None), "status_code", 0)
            if code in _REFUSED:
                raise RefusedError(f"it answers with {code}") from error
            raise

    def _tell_dropped(self, error: Any) -> None:
        """Adds a dead letter for a message that was too large and ended the connection."""
        if error.sent is not None and error.sent.code == _TOO_BIG:
            why = f"the message has more than {LARGEST >> 20} MB: it is not taken"
            self._line.put(Message(b"", "", CLOCK(), fault=why))

    def close(self) -> None:
        """Ends the connection from another thread."""
        with suppress(Exception):
            self._socket.close()


def websocket_receiver(line: FeedSpool) -> Puller:
    """Makes the receiver of a WebSocket."""
    return Puller(line, Messages(line))


def _libraries() -> tuple[ModuleType, ModuleType]:
    try:
        import websockets.exceptions
        import websockets.sync.client
    except ImportError as error:
        raise missing("websockets") from error
    return websockets.sync.client, websockets.exceptions
