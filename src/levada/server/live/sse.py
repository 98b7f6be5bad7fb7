"""Server-sent events: the reports of one query, or of several on one connection
(https://html.spec.whatwg.org/multipage/server-sent-events.html).

    id: 4000                                   of one query
    id: hot=4000,cold=3000                     of several: the position of each

    event: report    data: the line, or lines, of NDJSON
    event: gap       data: {"query": "hot", "after": 1000, "before": 4000}: the reports between were
                     deleted

``Last-Event-ID`` (or ``?after=``) sets the position. Without it events begin with the next report.
The code is plain ASGI: with a thousand clients each layer would need another core.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping, Sequence
from urllib.parse import quote, unquote

import msgspec
from starlette.types import Message, Receive, Scope, Send

from levada.server.content_negotiation import whole
from levada.server.live.event_pages import Event
from levada.server.live.result_feed import NEVER, SILENCE, Feed, Topic
from levada.server.problem_json import Problem

RETRY = b"retry: 1000\n\n"
FARTHEST = 2**62
_START: Message = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ],
}


class EventStream:
    """An endless answer to one client, from its position on. ``after``: by query, the last id that
    the client has; None begins with the next report.
    """

    def __init__(self, feed: Feed, after: Mapping[str, int | None], *, one: bool) -> None:
        self._feed, self._one = feed, one
        self._wanted = after
        self._topics: dict[str, Topic] = {}
        self._at: dict[str, int] = {}
        self._loop = asyncio.get_running_loop()
        self._waits: asyncio.Future[None] | None = None
        self._over = self._woken = self._revoked = False
        self._sent = self._looked = 0.0
        self._token = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends events until the client, its token or a query goes. Answers HEAD with the headers
        only.
        """
        if scope.get("method") == "HEAD":
            await send(_START)
            await self._end(send)
            return
        self._token = scope["token"].name
        gone = asyncio.create_task(self._await_end(receive))
        self._feed.clients += 1
        try:
            for query, after in self._wanted.items():
                self._topics[query] = self._feed.listen(query, self._wake)
                self._at[query] = self._topics[query].newest if after is None else after
            await self._begin(send)
            while not self._over:
                if not self._may_go_on(scope):
                    await self._end(send)
                    return
                blocks = await self._next()
                if blocks:
                    await self._send(send, blocks)
                elif self._loop.time() - self._sent >= SILENCE:
                    await self._send(send, [b":\n\n"])
                else:
                    await self._wait()
        finally:
            self._feed.clients -= 1
            gone.cancel()
            for query, topic in self._topics.items():
                self._feed.leave(query, topic, self._wake)

    def _may_go_on(self, scope: Scope) -> bool:
        """Returns whether its token and its queries still exist. Checks the token every few seconds
        only.
        """
        now = self._loop.time()
        if now - self._looked < SILENCE / 3:
            return not any(topic.over for topic in self._topics.values())
        self._looked, self._revoked = now, not scope["holds"]()
        return not self._revoked and all(itertools.starmap(self._feed.stands, self._topics.items()))

    async def _begin(self, send: Send) -> None:
        self._looked = self._loop.time()
        await send(_START)
        await self._send(send, [RETRY])

    async def _end(self, send: Send) -> None:
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send, blocks: Sequence[bytes]) -> None:
        self._sent = self._loop.time()
        data = b"".join(blocks)
        await send({"type": "http.response.body", "body": data, "more_body": True})

    async def _await_end(self, receive: Receive) -> None:
        try:
            while not (await receive())["type"].endswith(".disconnect"):
                pass
        except Problem:
            pass  # the client's body is too large or too slow
        finally:
            self._over = True
            self._wake()

    def _wake(self) -> None:
        self._woken = True
        if self._waits is not None and not self._waits.done():
            self._waits.set_result(None)

    async def _wait(self) -> None:
        if not self._woken:
            self._waits = self._loop.create_future()
            await self._waits
            self._waits = None
        self._woken = False

    async def _next(self) -> list[bytes]:
        """Returns the new events of all queries, serialized."""
        self._woken = False
        parts: list[bytes] = []
        for query, topic in self._topics.items():
            ring = topic.behind(self._at[query])
            events = ring if ring is not None else await self._from_disk(query, topic, parts)
            for event in events:
                self._at[query] = event.id
                parts.append(b"id: %b\n%b" % (self._id(), event.body))
        return parts

    async def _from_disk(self, query: str, topic: Topic, parts: list[bytes]) -> Sequence[Event]:
        """Returns the next events of a client that is behind. Adds a gap to ``parts`` first if
        reports before them were deleted.
        """
        pages, at = self._feed.pages, self._at[query]
        async with pages.turns.slot(self._token):
            events = await asyncio.to_thread(pages.behind, query, at, topic.since)
        gone = self._feed.archive.last_deleted(query, topic.since)
        if gone is not None and gone > at and (not events or events[0].id > gone):
            before = events[0].id if events else None
            said = {"query": query, "after": None if at == NEVER else at, "before": before}
            parts.append(b"event: gap\ndata: %b\n\n" % msgspec.json.encode(said))
            self._at[query] = gone
        if not events:
            self._at[query] = max(self._at[query], topic.floor)
        self._woken = True  # there may be more
        return events

    def _id(self) -> bytes:
        if self._one:
            return b"%d" % next(iter(self._at.values()))
        return ",".join(
            f"{quote(q, '')}={at}" for q, at in self._at.items() if at != NEVER
        ).encode()


def parse_positions(
    queries: Sequence[str], said: str | None, *, one: bool
) -> dict[str, int | None]:
    """Parses a ``Last-Event-ID`` into the client's position by query, None where it has none.
    Raises ``Problem`` 400.

    >>> parse_positions(["hot", "cold"], "hot=4000", one=False)
    {'hot': 4000, 'cold': None}
    """
    after: dict[str, int | None] = dict.fromkeys(queries)
    if not said:
        return after
    if one:
        return {queries[0]: _id(said)}
    for part in said.split(","):
        name, equals, number = part.partition("=")
        if not equals:
            raise Problem(400, "The id of these events is QUERY=TIME,QUERY=TIME.")
        if unquote(name) in after:
            after[unquote(name)] = _id(number)
    return after


def _id(text: str) -> int:
    return whole(text, "Last-Event-ID", -FARTHEST, FARTHEST)
