"""The state that all routes share: the checkpoint, its readers, and the checks of tokens."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from starlette.requests import ClientDisconnect, HTTPConnection, Request

from levada.engine.status.result_archive import Archive
from levada.server.checkpoint_catalog import Facts
from levada.server.checks.check_tasks import Task
from levada.server.checks.check_workers import CheckWorkers
from levada.server.live.result_feed import Feed
from levada.server.problem_json import Problem
from levada.server.push.push_writer import Pusher
from levada.server.security.request_limits import FairSlots
from levada.server.security.tokens import Role, Token
from levada.server.settings import Limits, Settings

T = TypeVar("T")
CHECKS = 4  # texts that are checked at once, each in a process


@dataclass
class ServerState:
    """The state of a server of one checkpoint. ``checks``: slots for texts that ``workers`` check.
    ``asking``: slots for requests to the engine. ``reading``: slots for answers that are read and
    written. ``parsing``: slots for large bodies and files. ``sparql``: slots for queries at
    ``/sparql``.

    ``counts``: pushed rows by stream, for ``/metrics``. ``pushers``: writers by the path of the
    stream. ``coming``: queries and streams that the engine has yet to add, with the token's name.
    ``turns``: locks by the name of the query or stream that a request changes.
    """

    settings: Settings
    archive: Archive
    feed: Feed
    facts: Facts
    checks: FairSlots = field(default_factory=lambda: FairSlots(CHECKS, 2))
    asking: FairSlots = field(default_factory=lambda: FairSlots(8, 4))
    reading: FairSlots = field(default_factory=lambda: FairSlots(8, 4))
    parsing: FairSlots = field(default_factory=lambda: FairSlots(4, 2))
    sparql: FairSlots = field(default_factory=lambda: FairSlots(4, 2))
    workers: CheckWorkers = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)
    pushers: dict[str, Pusher] = field(default_factory=dict)
    coming: dict[str, str] = field(default_factory=dict)
    turns: MutableMapping[str, asyncio.Lock] = field(default_factory=WeakValueDictionary)

    def __post_init__(self) -> None:
        settings = self.settings
        folders = filter(None, (settings.root, settings.letters, settings.tokens))
        self.workers = CheckWorkers(settings.root, [*folders], CHECKS)


def state_of(request: HTTPConnection) -> ServerState:
    """Returns the server's state for a request."""
    state = request.app.state.served
    assert isinstance(state, ServerState), "the application has been given one"
    return state


def token_of(request: HTTPConnection) -> Token:
    """Returns the token of a request."""
    token = request.scope["token"]
    assert isinstance(token, Token), "the door has let it in"
    return token


def limits_of(request: HTTPConnection) -> Limits:
    """Returns the limits for a request's token."""
    return state_of(request).settings.limits.limits_of_token(token_of(request))


def check_role(request: HTTPConnection, role: Role) -> None:
    """Raises ``Problem`` 403 if the token lacks the role."""
    token = token_of(request)
    if not token.may(role):
        raise Problem(403, f"The token {token.name} has not the role {role}.")


async def off_loop(call: Callable[[], T]) -> T:
    """Runs a slow call on another thread. Returns its result."""
    return await asyncio.to_thread(call)


@asynccontextmanager
async def slot_of(request: Request, slots: FairSlots) -> AsyncIterator[None]:
    """Takes a slot for the request's token while the block runs. Raises ``Problem`` 408 if the
    client disconnects first.
    """
    token = token_of(request).name
    if not slots.enter_now(token):
        await while_there(request, slots.enter(token))
    try:
        yield
    finally:
        slots.leave(token)


async def while_there(request: Request, run: Coroutine[Any, Any, T]) -> T:
    """Returns the result of ``run``, which is cancelled when the client disconnects. Needs a
    request whose body was read. Raises ``Problem`` 408.
    """
    task = asyncio.ensure_future(run)
    gone = asyncio.ensure_future(_await_disconnect(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Problem(408, "The client has gone.")
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _await_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def run_check(request: Request, task: Task) -> Any:
    """Runs a task in a process that checks texts. Returns the answer. Raises ``Problem``."""
    server, limits = state_of(request), limits_of(request)

    async def run() -> Any:
        async with server.checks.slot(token_of(request).name, limits.checks_waiting):
            return await server.workers.run(task, limits)

    return await while_there(request, run())


async def text_of(request: Request) -> str:
    """Returns the text of a query in a request's body. Raises ``Problem`` 400, 413."""
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
    """Returns a request's body. Raises ``Problem`` 413, with the limit's name, if it is longer than
    ``most`` bytes, and 408 if the client disconnects.
    """
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
async def one_by_one(server: ServerState, name: str) -> AsyncIterator[None]:
    """Serializes the changes of one name: the block runs alone, so its checks stay valid until its
    change.
    """
    turn = server.turns.setdefault(name, asyncio.Lock())  # it exists while a block uses it
    async with turn:
        yield
