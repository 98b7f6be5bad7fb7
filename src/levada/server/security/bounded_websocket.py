"""A WebSocket on a connection: uvicorn's protocol with further bounds. A client that does not read
events or answers to its pings holds at most one buffer. It is disconnected when it does not answer
a ping. A handshake is answered, or the connection is closed.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from levada.server.security.log_budget import BUDGET

INVALID_DATA = 1007  # RFC 6455, 7.4.1
UNREAD = 64 << 10  # unread bytes above which a ping aborts the connection


class BoundedSocket(WebSocketsSansIOProtocol):
    """A connection that carries a WebSocket."""

    def data_received(self, data: bytes) -> None:
        """Reads the handshake, which comes whole, or frames."""
        BUDGET.receive(len(data))
        super().data_received(data)
        if not self.handshake_initiated:  # not a valid handshake
            self.transport.abort()

    def send_receive_event_to_app(self) -> None:
        """Ends a connection with a text that is not UTF-8. The application ignores the content of
        messages.
        """
        data, self.frames = b"".join(self.frames), []
        text = self.curr_msg_data_type == "text" and not self.close_sent
        if text and not _is_utf8(data):
            self.conn.send_close(INVALID_DATA)
            self.handle_parser_exception()
            return
        self.frames = [data]
        super().send_receive_event_to_app()

    def handle_ping(self) -> None:
        """Answers a ping, or aborts the connection of a client that does not read."""
        if self.transport.get_write_buffer_size() > UNREAD:
            self.transport.abort()
        else:
            super().handle_ping()

    def keepalive_timeout(self) -> None:
        """Ends a connection without an answer to a ping, at once if the client has unread bytes."""
        super().keepalive_timeout()
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    async def send(self, message: Any) -> None:
        """Sends a message, and waits until the client has read all but one buffer of it."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            self.handshake_complete = True  # the refusal was sent
        await self.writable.wait()


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
