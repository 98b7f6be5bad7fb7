"""The guard before every request: it checks host, origin and token, and bounds size and time.

- Without tokens ``Host`` must be a loopback name, against DNS rebinding. A foreign ``Origin`` is
  refused, except an allowed one that reads results. So is a cross-site ``Sec-Fetch-Site``, since
  requests for images have no ``Origin``.
- With tokens the header ``Authorization: Bearer`` must have one, or the URL a link (``links``). The
  page and the probes of health need none.
- Bodies are counted as they arrive, within a time. Packed bodies are refused.
- Large answers count until they are sent, in pieces, so slow readers hold memory briefly; many of
  them are refused (``request_guard``).

A WebSocket passes the same checks, and is refused over HTTP. The router checks the role.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from urllib.parse import parse_qs

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from levada.server.problem_json import Problem
from levada.server.security.bounded_http import EVENTS
from levada.server.security.links import Links
from levada.server.security.tokens import EVERYBODY, NOBODY, Token, TokenFile
from levada.server.settings import Settings, is_loopback

# A budget for the memory of requests: the bytes of incoming bodies and of large answers. Its limit
# is global, so slow readers and slow senders cost other clients no more than that.


PIECE = 64 << 10  # bytes of an answer that are sent at once


@dataclass
class MemoryBudget:
    """The bytes of all bodies, or of all answers, that are in memory, at most ``most``. ``what``
    and ``becoming``: words of the error message.
    """

    most: int
    what: str
    becoming: str
    bytes: int = 0

    def take(self, size: int) -> None:
        """Adds ``size`` bytes. Raises ``Problem`` 503 if they are too many."""
        self.bytes += size
        if self.bytes > self.most:
            raise Problem(
                503,
                f"{self.what} of {self.most:,} bytes are being {self.becoming}, and no more are.",
                headers={"Retry-After": "1"},
            )


class TooMuch(Exception):  # noqa: N818  # ``problem``: the answer, if none has begun
    """An error that ends an answer, because too many bytes wait to be sent. No layer between
    handles it, so it reaches the guard.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


class Answer:
    """An answer in transit. ``taken``: its bytes in the budget while they are in memory."""

    def __init__(self, scope: Scope, send: Send, unsent: MemoryBudget) -> None:
        self._scope, self._send, self._unsent = scope, send, unsent
        self.taken = 0
        self._sized = False

    def begin(self, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Takes the bytes of a large answer from the budget, by its headers. Raises ``TooMuch``."""
        said = dict(headers)
        size = int(said.get(b"content-length", b"0"))
        self._sized = size > PIECE
        if self._sized:
            self._take(size)
        if said.get(b"content-type", b"").startswith(b"text/event-stream"):
            self._scope.setdefault("state", {})[EVENTS] = True

    def _take(self, size: int) -> None:
        self.taken += size
        try:
            self._unsent.take(size)
        except Problem as problem:
            raise TooMuch(problem) from None

    async def send(self, message: Message) -> None:
        """Sends a part, a large one in pieces. Sent pieces free their memory. Raises
        ``TooMuch``.
        """
        data = message.get("body") or message.get("text") or b""
        if len(data) <= PIECE:
            await self._send(message)
            return
        before = self.taken
        if not self._sized:
            self._take(len(data))
        if "body" in message:
            for at in range(0, len(data), PIECE):
                more = message.get("more_body", False) or at + PIECE < len(data)
                await self._send({**message, "body": data[at : at + PIECE], "more_body": more})
        else:
            await self._send(message)
        self._unsent.bytes -= self.taken - before
        self.taken = before


PROBES = ("/health", "/health/live", "/health/ready")
"""Paths that answer without a token, for balancers and Kubernetes."""
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:[0-9]*)?", re.ASCII)
_ONCE = ("host", "origin", "authorization", "content-length", "content-encoding")
_SHARED = re.compile(r"/events|/queries/[^/]+/results(/[^/]+)?")
"""Paths that pages of allowed origins may read
(https://fetch.spec.whatwg.org/#http-cors-protocol).
"""
_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET",
    "Access-Control-Allow-Headers": "Authorization, If-None-Match, Last-Event-ID",
    "Access-Control-Max-Age": "600",
}
_EXPOSED = b"ETag, Levada-Gap, Levada-Report, Link, Retry-After"
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
)


class RequestGuard:
    """An ASGI application around another. ``counts``: answers by status. ``open``: open requests by
    token. ``held``: the bytes of all bodies whose requests are unanswered. ``unsent``: the bytes of
    large answers in memory.
    """

    def __init__(self, app: ASGIApp, settings: Settings, tokens: TokenFile) -> None:
        self._app, self._settings, self.tokens = app, settings, tokens
        self.links = Links(settings.root, tokens, read_only=settings.read_only)
        self.counts: Counter[int] = Counter()
        self.open: Counter[str] = Counter()
        self.held = MemoryBudget(settings.limits.bodies, "Bodies", "taken")
        self.unsent = MemoryBudget(settings.limits.answers, "Answers", "sent")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on, or refuses it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        body = Body(scope, receive, self._settings, self.held)
        answer = Answer(scope, send, self.unsent)
        begun = False
        cross_origin: list[tuple[bytes, bytes]] = []

        async def count_bytes(message: Message) -> None:
            nonlocal begun
            if message["type"].endswith("http.response.start"):
                answer.begin(message["headers"])
                begun = True
                self.counts[message["status"]] += 1
                sent = [*message["headers"], *cross_origin]
                sent = _with_default_headers(sent, close=body.unread)
                message = {**message, "headers": sent}  # event streams share theirs
            elif message["type"] == "websocket.accept":
                begun = True
                self.counts[101] += 1
            await answer.send(message)

        try:
            headers = _headers(scope)
            cross_origin += self._check_place(headers, scope)
            if cross_origin and scope.get("method") == "OPTIONS":
                await Response(None, 204, _PREFLIGHT)(scope, receive, count_bytes)
                return
            token, scope["holds"] = self._token(headers, scope)
            scope["token"] = token
            body.limits = self._settings.limits.limits_of_token(token)
            body.check(headers)
            with self._count_connection(token):
                await self._app(scope, body.receive, count_bytes)
        except TooMuch as full:
            if not begun:
                await full.problem.response()(scope, receive, count_bytes)
        except Problem as problem:
            if begun:
                raise
            await problem.response()(scope, receive, count_bytes)
        finally:
            self.held.bytes -= body.taken
            self.unsent.bytes -= answer.taken

    @contextmanager
    def _count_connection(self, token: Token) -> Iterator[None]:
        """Counts a request of a token while the block runs. Raises ``Problem`` 429 if the token has
        too many.
        """
        most = self._settings.limits.limits_of_token(token).own_connections
        if token.name and self.open[token.name] >= most:
            raise Problem(
                429,
                f"The token {token.name} has {most:,} requests open, which is all.",
                headers={"Retry-After": "1"},
                limit="connections",
            )
        self.open[token.name] += 1
        try:
            yield
        finally:
            self.open[token.name] -= 1

    def _check_place(self, headers: dict[str, str], scope: Scope) -> list[tuple[bytes, bytes]]:
        """Checks host and origin. Returns the headers that let a page of another origin read the
        answer. Raises ``Problem`` 403, 421.
        """
        path, host = scope["path"], _name(headers.get("host", ""))
        if not _HOST.fullmatch(headers.get("host", "")):
            raise Problem(421, "The header Host has no name of a host.")
        is_guarded = not self._settings.loopback or self.tokens.requires_tokens
        if not is_guarded and not is_loopback(host):
            raise Problem(421, "This server answers to the names of this machine only.")
        origin, foreign = headers.get("origin"), False
        if origin is not None:
            scheme, _, place = origin.partition("://")
            foreign = scheme not in ("http", "https") or place != headers.get("host", "")
            if foreign and self._may_read(origin, scope):
                allowed = b"access-control-allow-origin", origin.encode("latin-1")
                return [allowed, (b"access-control-expose-headers", _EXPOSED), (b"vary", b"Origin")]
        elif headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            foreign = not _is_open(path)  # another site may link to the page
        if foreign:
            hint = "levada serve --allow-origin ORIGIN lets its pages read results."
            raise Problem(403, "A page of another origin asks, which is not answered.", hint=hint)
        return []

    def _may_read(self, origin: str, scope: Scope) -> bool:
        """Returns whether pages of another origin may send a request: to read results."""
        is_read = scope.get("method", "GET") in ("GET", "HEAD", "OPTIONS")
        is_allowed = bool({origin, "*"} & {*self._settings.origins})
        return is_read and is_allowed and bool(_SHARED.fullmatch(scope["path"]))

    def _token(self, headers: dict[str, str], scope: Scope) -> tuple[Token, Callable[[], bool]]:
        """Returns the token of a request, and a function that tells whether it is still valid.
        Raises ``Problem`` 401.
        """
        path = scope["path"]
        if _is_open(path):
            return NOBODY, lambda: True
        if not self.tokens.requires_tokens:
            return EVERYBODY, lambda: True
        if "authorization" not in headers:
            if path in PROBES:
                return NOBODY, lambda: True
            if link := parse_qs(scope["query_string"].decode("latin-1")).get("link"):
                return self._link_token(link[0], path)
        scheme, _, presented = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not presented.strip():
            raise _token_problem("A token is asked for, in the header Authorization: Bearer TOKEN.")
        token = self.tokens.find(presented.strip())
        if token is None:
            raise _token_problem(
                "This token is not known.",
                "It may be cut short, or its line is not in the server's file of tokens any more.",
            )
        return token, partial(self.tokens.has, token)

    def _link_token(self, link: str, path: str) -> tuple[Token, Callable[[], bool]]:
        token = self.links.find(link, path)
        if token is None:
            raise _token_problem(
                "This link is not valid here, or not any more.",
                "POST /queries/QUERY/links makes a link, with a token that may read.",
            )
        return token, lambda: self.links.find(link, path) is not None


class Body:
    """A request's body within its bounds. ``limits``: those of its token. ``taken``: the bytes that
    have arrived.
    """

    def __init__(
        self, scope: Scope, receive: Receive, settings: Settings, held: MemoryBudget
    ) -> None:
        self._receive, self.limits, self._held = receive, settings.limits, held
        self.taken, self._ends = 0, 0.0
        self._has = scope.get("method") in ("POST", "PUT", "PATCH")
        self._over = False

    @property
    def unread(self) -> bool:
        """Returns whether a part of it is unread: then the connection must close."""
        return self._has and not self._over

    def check(self, headers: dict[str, str]) -> None:
        """Checks the headers about the body. Raises ``Problem`` 413, 415."""
        said = headers.get("content-length", "0")
        self._has = self._has or said != "0" or "transfer-encoding" in headers
        if not said.isdecimal() or int(said) > self.limits.body:
            raise self._too_large()
        packed = headers.get("content-encoding", "").strip().lower() not in ("", "identity")
        if packed or headers.get("transfer-encoding", "chunked").strip().lower() != "chunked":
            raise Problem(415, "Bodies that are packed are not taken.", hint="Send it as it is.")

    async def receive(self) -> Message:
        """Returns the next message. Raises ``Problem`` 408, 413, 503."""
        loop = asyncio.get_running_loop()
        if self._over or not self._has:
            return await self._receive()
        self._ends = self._ends or loop.time() + self.limits.body_seconds
        try:
            async with asyncio.timeout_at(self._ends):
                message = await self._receive()
        except TimeoutError:
            seconds = self.limits.body_seconds
            raise Problem(408, f"The body did not come within {seconds:g} s.") from None
        if message["type"] == "http.request":
            size = len(message.get("body", b""))
            self.taken += size
            self._over = not message.get("more_body", False)
            if self.taken > self.limits.body:
                self._held.bytes += size  # the guard frees all of ``taken``
                raise self._too_large()
            self._held.take(size)
        return message

    def _too_large(self) -> Problem:
        return Problem(413, f"A body has at most {self.limits.body:,} bytes.", limit="body")


def _headers(scope: Scope) -> dict[str, str]:
    """Returns the headers by name. Raises ``Problem`` 400 if a header of ``_ONCE`` is repeated."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1")
        if key in _ONCE and key in headers:
            raise Problem(400, f"The header {key} is there twice.")
        headers[key] = value.decode("latin-1")
    return headers


def _is_open(path: str) -> bool:
    """Returns whether a path needs no token: the page's files are the same for all, and browsers
    send no token for them.
    """
    return path == "/" or path.startswith("/page/")


def _token_problem(detail: str, hint: str = "") -> Problem:
    return Problem(401, detail, hint=hint, headers={"WWW-Authenticate": 'Bearer realm="levada"'})


def _name(host: str) -> str:
    """Returns the name in a ``Host`` header, without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _with_default_headers(
    headers: list[tuple[bytes, bytes]], *, close: bool
) -> list[tuple[bytes, bytes]]:
    there = {name.lower() for name, _ in headers}
    defaults = [header for header in _HEADERS if header[0] not in there]
    return [*headers, *defaults, *([(b"connection", b"close")] if close else [])]
