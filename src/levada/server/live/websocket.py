"""The same events by WebSocket (RFC 6455): each is a text message of JSON.

    {"id": "4000", "event": "report", "data": [the line, or lines, of NDJSON]}
    {"event": "gap", "data": [{"query": "hot", "after": 1000, "before": 4000}]}

``?after=`` (or ``Last-Event-ID``) sets the position. The server ignores messages of the client and
detects a lost one by pings. A client that does not read holds its connection's buffer, as with
server-sent events.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from starlette.types import Send
from starlette.websockets import WebSocket

from levada.server.app_state import state_of
from levada.server.live.sse import EventStream, parse_positions
from levada.server.result_routes import names_of, plan_of_query

DONE, REVOKED = 1000, 1008  # RFC 6455, 7.4.1: normal closure; policy violation


class EventSocket(EventStream):
    """An event stream that sends WebSocket messages."""

    async def _begin(self, send: Send) -> None:
        self._looked = self._loop.time()
        await send({"type": "websocket.accept"})

    async def _end(self, send: Send) -> None:
        await send({"type": "websocket.close", "code": REVOKED if self._revoked else DONE})

    async def _send(self, send: Send, blocks: Sequence[bytes]) -> None:
        self._sent = self._loop.time()
        for block in blocks:
            if block.startswith((b"id: ", b"event: ")):
                await send({"type": "websocket.send", "text": message(block)})


def message(block: bytes) -> str:
    """Converts an event into a message.

    >>> message(b'id: 4000\\nevent: report\\ndata: {"report": 4000}\\n\\n')
    '{"id": "4000", "event": "report", "data": [{"report": 4000}]}'
    """
    said: dict[str, list[str]] = {}
    for line in block.decode().split("\n"):
        name, _, text = line.partition(": ")
        said.setdefault(name, []).append(text)
    id_ = f'"id": "{said["id"][0]}", ' if "id" in said else ""
    return f'{{{id_}"event": "{said["event"][0]}", "data": [{", ".join(said["data"])}]}}'


async def query_socket(socket: WebSocket) -> None:
    """Sends the events of one query."""
    query = await asyncio.to_thread(plan_of_query, socket)
    await _follow(socket, [query.name], one=True)


async def events_socket(socket: WebSocket) -> None:
    """Sends the events of several queries."""
    names = await asyncio.to_thread(names_of, socket)
    await _follow(socket, names, one=False)


async def _follow(socket: WebSocket, names: Sequence[str], *, one: bool) -> None:
    said = socket.headers.get("last-event-id") or socket.query_params.get("after")
    stream = EventSocket(state_of(socket).feed, parse_positions(names, said, one=one), one=one)
    await stream(socket.scope, socket.receive, socket.send)
