"""A WebSocket on a connection: uvicorn's, and bounds that it has not. A client that sends pings and
reads no answer, or does not read events, holds no more than one buffer, and is gone when it has not
answered a ping; a handshake is answered, or the connection closed.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

UNREAD = 64 << 10  # bytes that wait to be read, with which no ping is answered any more


class BoundedSocket(WebSocketsSansIOProtocol):
    """A connection of a WebSocket."""

    def data_received(self, data: bytes) -> None:
        """The handshake, which is whole, or frames."""
        super().data_received(data)
        if not self.handshake_initiated:  # it is none that is known
            self.transport.abort()

    def handle_ping(self) -> None:
        """Answers, unless the answers are not read."""
        if self.transport.get_write_buffer_size() > UNREAD:
            self.transport.abort()
        else:
            super().handle_ping()

    def keepalive_timeout(self) -> None:
        """Nobody answers: what has not been read by now is not waited for."""
        super().keepalive_timeout()
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    async def send(self, message: Any) -> None:
        """Sends, and waits until all but one buffer of it has been read."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            self.handshake_complete = True  # it was refused, which is told
        await self.writable.wait()
