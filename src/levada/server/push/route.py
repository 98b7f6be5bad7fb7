"""POST ``/streams/{s}`` feeds a stream that is pushed."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from levada.errors import LevadaError
from levada.runtime.spool.push import PushLog, is_pushed
from levada.server.problems import Json, Problem
from levada.server.push.gate import check_media, whole_lines
from levada.server.push.pusher import Pusher
from levada.server.served import Served, body_of, off_loop, served
from levada.streams.stream_config import StreamConfig

LONGEST = 200  # of an Idempotency-Key


async def push_rows(request: Request) -> Response:
    """Rows for a stream: 202 when they are durable; with a mistake in one, none is taken."""
    own, config = served(request), _stream(request)
    check_media(config, request.headers.get("content-type", ""))
    key = request.headers.get("idempotency-key", "")
    if len(key) > LONGEST:
        raise Problem(400, f"An Idempotency-Key has at most {LONGEST} characters.")
    pusher = await _pusher(own, config)
    limits = own.settings.limits
    if await off_loop(pusher.log.backlog) > limits.backlog:
        raise Problem(
            429,
            f"The engine has {limits.backlog:,} bytes of {config.name} before it.",
            headers={"Retry-After": "1"},
        )
    data = await body_of(request, limits.body, "A body")
    async with own.planning:
        text, rows = await off_loop(lambda: whole_lines(config, data))
    try:
        new = await pusher.add(text, key) if rows else True
    except (LevadaError, OSError):
        _stream(request)  # it may have been taken away
        raise
    if new:
        own.counts[config.name] += rows
    return Json({"stream": config.name, "rows": rows if new else 0, "again": not new}, 202)


def _stream(request: Request) -> StreamConfig:
    """The pushed stream that the path names. Raises ``Problem`` 403, 404, 409."""
    own, name = served(request), request.path_params["stream"]
    if own.settings.read_only:
        raise Problem(403, "This server is read-only.")
    config = own.facts.now().streams.get(name)
    if config is None:
        raise Problem(
            404,
            f"There is no stream {name[:200]}.",
            hint="PUT makes one that can be fed here.",
        )
    if not is_pushed(config):
        raise Problem(409, f"The stream {name} is not pushed: its rows come from elsewhere.")
    return config


async def _pusher(own: Served, config: StreamConfig) -> Pusher:
    if config.path not in own.pushers:
        log = await off_loop(lambda: PushLog(Path(config.path), config.format))
        own.pushers.setdefault(config.path, Pusher(log))
    return own.pushers[config.path]
