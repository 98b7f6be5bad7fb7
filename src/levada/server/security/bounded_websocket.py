"""A WebSocket on a connection: uvicorn's, and bounds that it has not. A client that sends pings and
reads no answer, or does not read events, holds no more than one buffer, and is gone when it has not
answered a ping; a handshake is answered, or the connection closed.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from levada.server.security.log_budget import BUDGET

INVALID_DATA = 1007  # RFC 6455, 7.4.1
UNREAD = 64 << 10  # bytes that wait to be read, with which no ping is answered any more


class BoundedSocket(WebSocketsSansIOProtocol):
    """A connection of a WebSocket."""

    def data_received(self, data: bytes) -> None:
        """The handshake, which is whole, or frames."""
        BUDGET.receive(len(data))
        super().data_received(data)
        if not self.handshake_initiated:  # it is none that is known
            self.transport.abort()

    def send_receive_event_to_app(self) -> None:
        """Ends a connection with a text that is not UTF-8; nobody looks at what it says."""
        data, self.frames = b"".join(self.frames), []
        text = self.curr_msg_data_type == "text" and not self.close_sent
        if text and not _is_utf8(data):
            self.conn.send_close(INVALID_DATA)
            self.handle_parser_exception()
            return
        self.frames = [data]
        super().send_receive_event_to_app()

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


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
