"""The table of routes, and the application that serves them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import fields
from functools import partial, wraps
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from levada.checkpoint.request_files import (
    ServerReport,
    read_server_report,
    write_server_report,
)
from levada.engine.status.status import Status
from levada.errors import CheckpointError, LevadaError
from levada.server import openapi, page, query_routes, result_routes, status_routes
from levada.server.app_state import ServerState, check_role, off_loop
from levada.server.dead_letter_routes import letters
from levada.server.live.websocket import events_socket, query_socket
from levada.server.problem_json import Json, Problem, on_problem, on_refusal, on_status
from levada.server.push import push_routes, stream_routes
from levada.server.push.push_routes import FastPathMiddleware
from levada.server.push.push_validation import BODIES
from levada.server.route import ApiRoute, Endpoint, check_asked, check_names
from levada.server.security.request_guard import RequestGuard
from levada.server.security.tokens import Role, TokenFile
from levada.server.settings import Settings
from levada.server.sparql import sparql_routes, static_routes
from levada.server.sparql.graph_content import TAKES
from levada.server.topology_routes import topology

THREADS = 32  # enough, on few processors too, beside requests that plan or wait for the engine
LOOK = 1.0  # s between two reads of the file of tokens
PLAIN = "text/plain"
STATUS = (
    *(each.name for each in fields(Status) if each.name not in status_routes.ADMIN_FIELDS),
    "epoch_age_seconds",
    "engine",
)
PROTOCOL = ("query", "default-graph-uri", "named-graph-uri")
QUERY = ("application/sparql-query", "application/cql", "text/plain")
WORDS = (
    "dialect",
    "bounds",
    "t0",
    "report",
    "empty_reports",
    "until",
    "lifetime",
    "entailment",
    "region",
)


async def describe_api(request: Request) -> Response:
    """Returns this document."""
    return Json(openapi.document(WAYS))


WAYS = (
    ApiRoute("GET", "/health", status_routes.health, None, tells=("ok",)),
    ApiRoute("GET", "/health/live", status_routes.live, None, tells=("ok",)),
    ApiRoute("GET", "/health/ready", status_routes.ready, None, tells=("ok",)),
    ApiRoute("GET", "/status", status_routes.status, tells=STATUS),
    ApiRoute("GET", "/metrics", status_routes.metrics, answers=PLAIN),
    ApiRoute("GET", "/streams", status_routes.streams, tells=("streams",)),
    ApiRoute("GET", "/streams/{stream:path}", status_routes.one_stream, tells=("name",)),
    ApiRoute(
        "POST",
        "/streams/{stream:path}",
        push_routes.push_rows,
        Role.PUSH,
        takes=BODIES,
        gives=(202,),
        tells=("stream", "rows", "is_repeated"),
        heads=("Idempotency-Key", "Levada-Watermark"),
    ),
    ApiRoute(
        "PUT",
        "/streams/{stream:path}",
        stream_routes.put_stream,
        Role.REGISTER,
        takes=("application/json",),
        gives=(200, 201),
        tells=("stream", "format"),
    ),
    ApiRoute(
        "DELETE",
        "/streams/{stream:path}",
        stream_routes.delete_stream,
        Role.REGISTER,
        tells=("stream", "messages"),
    ),
    ApiRoute("GET", "/queries", query_routes.list_queries, tells=("queries",)),
    ApiRoute(
        "GET",
        "/queries/{query}",
        query_routes.get_query,
        tells=("name", "dialect", "text", "state"),
    ),
    ApiRoute(
        "PUT",
        "/queries/{query}",
        query_routes.put_query,
        Role.REGISTER,
        WORDS,
        QUERY,
        (200, 201),
        tells=("name", "results_url"),
        heads=("If-Match",),
        refuses=("to",),
    ),
    ApiRoute(
        "DELETE",
        "/queries/{query}",
        query_routes.delete_query,
        Role.REGISTER,
        tells=("name", "messages"),
        heads=("If-Match",),
    ),
    ApiRoute(
        "GET",
        "/queries/{query}/results",
        result_routes.results,
        asks=("after", "limit", "format", "link"),
        answers="results",
        heads=("Last-Event-ID",),
    ),
    ApiRoute(
        "GET",
        "/queries/{query}/results/{report}",
        result_routes.get_report,
        asks=("format", "link"),
        answers="results",
    ),
    ApiRoute(
        "POST",
        "/queries/{query}/links",
        result_routes.make_link,
        asks=("seconds",),
        gives=(201,),
        tells=("query", "url", "expires_ms"),
    ),
    ApiRoute("GET", "/static", static_routes.list_static, tells=("static",)),
    ApiRoute("GET", "/static/{graph:path}", static_routes.get_static, answers="graph"),
    ApiRoute(
        "PUT",
        "/static/{graph:path}",
        static_routes.put_static,
        Role.ADMIN,
        takes=tuple(TAKES),
        tells=("graph", "messages"),
    ),
    ApiRoute(
        "DELETE",
        "/static/{graph:path}",
        static_routes.delete_static,
        Role.ADMIN,
        tells=("graph", "messages"),
    ),
    ApiRoute(  # clients of SPARQL send other parameters, too
        "GET", "/sparql", sparql_routes.get_sparql, asks=PROTOCOL, answers="sparql", strict=False
    ),
    ApiRoute(
        "POST",
        "/sparql",
        sparql_routes.post_sparql,
        asks=PROTOCOL,
        takes=(sparql_routes.FORM, sparql_routes.DIRECT),
        answers="sparql",
        strict=False,
    ),
    ApiRoute(
        "GET",
        "/events",
        result_routes.events,
        asks=("query", "after"),
        answers="text/event-stream",
        heads=("Last-Event-ID",),
    ),
    ApiRoute("GET", "/words", query_routes.known_words, tells=("words",)),
    ApiRoute(
        "POST",
        "/check",
        query_routes.check,
        asks=WORDS,
        takes=QUERY,
        tells=("ok", "errors", "warnings"),
    ),
    ApiRoute(
        "GET", "/letters", letters, asks=("stream", "kind", "limit"), tells=("letters", "has_more")
    ),
    ApiRoute("GET", "/explain", topology, asks=("max_nodes",), answers="topology"),
    ApiRoute(
        "POST", "/explain", query_routes.explain, asks=("stage", *WORDS), takes=QUERY, answers=PLAIN
    ),
    ApiRoute("GET", "/openapi.json", describe_api, tells=("openapi", "paths")),
    ApiRoute("GET", "/", page.page, None, answers="text/html", strict=False),
    ApiRoute("GET", "/page/{file:path}", page.part, None, answers="", strict=False),
)


SOCKETS = {
    "/events": (events_socket, ("query", "after")),
    "/queries/{query}/results": (query_socket, ("after", "link")),
}


def application(served: ServerState) -> RequestGuard:
    """Builds the application that serves a checkpoint."""
    tokens = TokenFile(served.settings.tokens)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(THREADS, "levada request"))
        served.feed.start(loop)
        served.workers.warm()
        watch = asyncio.create_task(_watch(tokens, served.settings))
        try:
            yield
        finally:
            watch.cancel()
            await served.workers.close()
            await asyncio.to_thread(served.feed.stop)

    app = Starlette(
        routes=[
            *(Route(way.path, _guard(way), methods=[way.method]) for way in WAYS),
            *(WebSocketRoute(path, _guard_socket(path, *of)) for path, of in SOCKETS.items()),
        ],
        exception_handlers={
            Problem: on_problem,
            LevadaError: on_refusal,
            OSError: on_refusal,
            HTTPException: on_status,
            Exception: _on_fault,
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.served = served
    pushed = next(way for way in WAYS if way.endpoint is push_routes.push_rows)
    short = FastPathMiddleware(app, pushed.path, _guard(pushed), _on_fault)
    door = RequestGuard(short, served.settings, tokens)
    app.state.door = door
    return door


async def _watch(tokens: TokenFile, settings: Settings) -> None:
    """Reads the file of tokens each second, so that a fault is reported also without requests.
    Writes the number of faults into the checkpoint for its readers.
    """
    root, before = settings.root, await off_loop(lambda: read_server_report(settings.root))
    while True:
        report = ServerReport(len(tokens.now().faults))
        if report != before and not settings.read_only and root.is_dir():
            with suppress(CheckpointError):  # the disk is full: the next round writes it
                await off_loop(partial(write_server_report, root, report))
                before = report
        await asyncio.sleep(LOOK)


def _guard(way: ApiRoute) -> Endpoint:
    """Wraps the endpoint of a route: checks the token's role and the parameters first."""

    @wraps(way.endpoint)
    async def guard(request: Request) -> Any:
        if way.role is not None:
            check_role(request, way.role)
        check_asked(way, request)
        return await way.endpoint(request)

    return guard


def _guard_socket(
    path: str, endpoint: Callable[[WebSocket], Awaitable[None]], asks: Sequence[str]
) -> Callable[..., Any]:
    """Wraps the endpoint of a WebSocket: checks the role ``read`` and the parameters first. Refuses
    over HTTP.
    """

    async def guard(socket: WebSocket) -> None:
        try:
            check_role(socket, Role.READ)
            check_names(f"A WebSocket at {path}", socket, asks)
            await endpoint(socket)
        except WebSocketDisconnect:
            pass  # the client closed the connection
        except Problem as problem:
            await problem.response()(socket.scope, socket.receive, socket.send)

    return guard


async def _on_fault(request: Request, error: Exception) -> Response:
    """Answers a request that failed through a fault of Levada. Only the log has the details."""
    return Problem(
        500, "The server failed. This is a fault of Levada; its log says more."
    ).response()
