"""What the routes share: the checkpoint, its readers, who may."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from weakref import WeakValueDictionary

from starlette.requests import ClientDisconnect, HTTPConnection, Request

from levada.engine.telling.archive import Archive
from levada.server.guard.tokens import Role, Token
from levada.server.known import Facts
from levada.server.live.feed import Feed
from levada.server.problems import Problem
from levada.server.push.pusher import Pusher
from levada.server.settings import Limits, Settings

T = TypeVar("T")


@dataclass
class Served:
    """A checkpoint as it is served. ``planning``: texts that are planned at once; ``asking``:
    requests to the engine at once; ``reading``: answers that are read and written at once;
    ``sparql``: queries over what is there, of which ``waiting`` are asked. ``counts``: what
    ``/metrics`` tells of the server. ``pushers``: by the paths of streams. ``coming``: queries and
    streams that the engine is asked to add, and the token that asks. ``turns``: of those who change
    what has a name.
    """

    settings: Settings
    archive: Archive
    feed: Feed
    facts: Facts
    planning: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))
    asking: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(4))
    reading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(4))
    sparql: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))
    waiting: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    pushers: dict[str, Pusher] = field(default_factory=dict)
    coming: dict[str, str] = field(default_factory=dict)
    turns: MutableMapping[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)


def served(request: HTTPConnection) -> Served:
    """The checkpoint that a request is about."""
    found = request.app.state.served
    assert isinstance(found, Served), "the application has been given one"
    return found


def token_of(request: HTTPConnection) -> Token:
    """Who asks."""
    found = request.scope["token"]
    assert isinstance(found, Token), "the door has let it in"
    return found


def limits_of(request: HTTPConnection) -> Limits:
    """How much is taken of who asks."""
    return served(request).settings.limits.of(token_of(request))


def check_role(request: HTTPConnection, role: Role) -> None:
    """Raises ``Problem`` 403 for a token that may not."""
    token = token_of(request)
    if not token.may(role):
        raise Problem(403, f"The token {token.name} has not the role {role}.")


async def off_loop(call: Callable[[], T]) -> T:
    """What takes long, on another thread."""
    return await asyncio.to_thread(call)


async def text_of(request: Request) -> str:
    """The text of a query in a request's body. Raises ``Problem`` 400, 413."""
    data = await body_of(request, limits_of(request).text, "The text of a query", limit="text")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        raise Problem(400, "The text is not UTF-8.", line=line, column=column) from None
    if not text.strip():
        raise Problem(400, "There is no text.", hint="Send the query as the request's body.")
    return text


async def body_of(request: Request, most: int, what: str, *, limit: str = "body") -> bytes:
    """A request's body. Raises ``Problem`` 413, with the name of the limit."""
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise Problem(413, f"{what} has at most {most:,} bytes.", limit=limit)
            parts.append(part)
    except ClientDisconnect:
        raise Problem(408, "The client has gone before its body was whole.") from None
    return b"".join(parts)


@asynccontextmanager
async def one_by_one(own: Served, name: str) -> AsyncIterator[None]:
    """Who changes what has this name goes after those who do so, so that what he has looked at is
    still so when he does.
    """
    turn = own.turns.setdefault(name, asyncio.Lock())  # kept as long as somebody has it
    async with turn:
        yield
