"""``POST /streams/{s}``: the route of rows that clients push."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from xxhash import xxh3_128_hexdigest

from levada.connectors.config.message_metadata import WATERMARK
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.lateness import future
from levada.connectors.sources.message_headers import time_said
from levada.connectors.spool.push_spool import PushLog, is_pushed
from levada.core.clock import CLOCK
from levada.core.event_time import MIN
from levada.errors import LevadaError
from levada.server.app_state import ServerState, body_of, limits_of, off_loop, slot_of, state_of
from levada.server.problem_json import Json, Problem, refusal_response
from levada.server.push.push_validation import as_lines, format_of_body, rows_of, whole_lines
from levada.server.push.push_writer import Body, Pusher
from levada.server.route import Endpoint

LONGEST = 200  # characters of an Idempotency-Key
SMALL_BODY_BYTES = 4096


async def push_rows(request: Request) -> Response:
    """Adds rows to a stream: 202 when they are durable. A mistake in one row rejects them all."""
    server, config = state_of(request), _stream(request)
    form = format_of_body(config, request.headers.get("content-type", ""))
    complete = _complete(request, config)
    key = request.headers.get("idempotency-key", "")
    if len(key) > LONGEST:
        raise Problem(400, f"An Idempotency-Key has at most {LONGEST} characters.")
    limits = limits_of(request)
    with _unless_gone(request):
        pusher = await _pusher(server, config)
        full = await pusher.is_full(limits.backlog)
    data = await body_of(request, limits.body, "A body")  # an unread one would reset the connection
    if full:
        raise Problem(
            429,
            f"The engine has {limits.backlog:,} bytes of {config.name} before it.",
            headers={"Retry-After": "1"},
        )
    if form or len(data) > SMALL_BODY_BYTES:
        async with slot_of(request, server.parsing):
            body = await off_loop(
                lambda: _validated_body(config, data, form, key, complete=complete)
            )
    else:  # the writer parses small bodies together
        body = Body(config, whole_lines(config, data), key, complete)
    if key:
        body = replace(body, sent=xxh3_128_hexdigest(data))
    with _unless_gone(request):
        rows = await pusher.add(body)
    if rows:
        server.counts[config.name] += rows
    return Json({"stream": config.name, "rows": rows or 0, "is_repeated": rows is None}, 202)


@contextmanager
def _unless_gone(request: Request) -> Iterator[None]:
    """Raises ``Problem`` 404 for an error in the block that comes from the deletion of the
    stream.
    """
    try:
        yield
    except (LevadaError, OSError) as error:
        _stream(request)  # raises if the stream was deleted
        if isinstance(error, FileNotFoundError):
            name = request.path_params["stream"]
            raise Problem(404, f"The stream {name} is being taken away.") from None
        raise


def _validated_body(
    config: StreamConfig, data: bytes, form: str, key: str, *, complete: int
) -> Body:
    text = whole_lines(config, as_lines(data, form) if form else data)
    return Body(config, text, key, complete, rows_of(config, text))


def _complete(request: Request, config: StreamConfig) -> int:
    """Returns the time (ms) before which the client sends nothing more; MIN without that header.
    Raises ``Problem`` 400.
    """
    said = request.headers.get(WATERMARK)
    if said is None:
        return MIN
    time = time_said(said.encode())
    if time == MIN:
        raise Problem(400, f"The header Levada-Watermark is no time: {said[:100]}.")
    if time > CLOCK() + config.future_ms:
        wrong = future(config.future_ms)
        raise Problem(400, f"The header Levada-Watermark: {wrong}: {said[:100]}.")
    return time


def _stream(request: Request) -> StreamConfig:
    """Returns the pushed stream that the path names. Raises ``Problem`` 403, 404, 409."""
    server, name = state_of(request), request.path_params["stream"]
    if server.settings.read_only:
        raise Problem(403, "This server is read-only.")
    config = server.facts.now().streams.get(name)
    if config is None:
        raise Problem(
            404,
            f"There is no stream {name[:200]}.",
            hint="PUT makes one that can be fed here.",
        )
    if config.path not in server.pushers and not is_pushed(config):
        raise Problem(409, f"The stream {name} is not pushed: its rows come from elsewhere.")
    return config


async def _pusher(server: ServerState, config: StreamConfig) -> Pusher:
    if config.path not in server.pushers:
        log = await off_loop(lambda: PushLog(Path(config.path), config.format))
        server.pushers.setdefault(config.path, Pusher(log))
    return server.pushers[config.path]


# The short path of pushed rows, past the router. The framework's layers and its table of routes
# took a third of the time of a posted line.
#
# It does their work for one route: it checks the endpoint's role and answers refusals and faults.
# All other requests go to the router, whose table has this route, too.


OnFault = Callable[[Request, Exception], Awaitable[Response]]


class FastPathMiddleware:
    """An ASGI application around one with a router. ``path`` ends in its one parameter, the rest of
    the request's path: ``/streams/{stream:path}``.
    """

    def __init__(self, app: Starlette, path: str, post: Endpoint, on_fault: OnFault) -> None:
        self._app, self._post, self._on_fault = app, post, on_fault
        self._prefix, _, rest = path.partition("{")
        self._name = rest.removesuffix(":path}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a POST below the path, and passes other requests on."""
        short = scope["type"] == "http" and scope["method"] == "POST"
        if not short or not scope["path"].startswith(self._prefix):
            await self._app(scope, receive, send)
            return
        scope["app"] = self._app
        scope["path_params"] = {self._name: scope["path"][len(self._prefix) :]}
        request = Request(scope, receive)
        try:
            response = await self._post(request)
        except Exception as error:
            if (answer := refusal_response(request, error)) is None:
                await (await self._on_fault(request, error))(scope, receive, send)
                raise  # for the log
            response = answer
        await response(scope, receive, send)
