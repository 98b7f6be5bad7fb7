"""Errors as application/problem+json (RFC 9457): title, status and detail. Errors in a query's text
also have line, column, expected and hint.

No answer contains a path of the server. The log has the details of problems with its disk or files.
The client learns only whether to try again.
"""

from __future__ import annotations

import errno
import http
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from levada.engine.status.request_client import RefusedError
from levada.errors import (
    CheckpointError,
    EngineError,
    LevadaError,
    QueryError,
    SinkError,
    SourceError,
    errno_of,
    shorten,
)

MEDIA = "application/problem+json"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
HINDERED = (
    errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM,
    errno.EAGAIN, errno.ESTALE,
)  # fmt: skip
"""Errors that an operator or time repairs: neither the client nor Levada caused them."""
LATER = {"Retry-After": "10"}  # s


class Problem(Exception):  # noqa: N818  # an answer, not a fault
    """An answer that reports an error."""

    def __init__(
        self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **said: Any
    ) -> None:
        self.status, self.detail, self.said = status, shorten(detail), said
        super().__init__(self.detail)
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """Returns the HTTP response."""
        return Response(self.body(), self.status, self.headers, MEDIA)

    def body(self) -> bytes:
        """Returns the body as JSON."""
        title = http.HTTPStatus(self.status).phrase
        said = {key: value for key, value in self.said.items() if value not in (None, "", [])}
        return json_bytes({"title": title, "status": self.status, "detail": self.detail, **said})


def problem_of(error: Exception, *folders: Path) -> Problem | None:
    """Converts an error into an answer, or returns None for a fault of Levada. A user's mistake is
    400, a missing engine 409, a full disk 507, an unusable disk 503, a damaged file 500.
    ``folders``: the server's folders, which are removed from the texts.
    """
    number = error.errno if isinstance(error, RefusedError) else errno_of(error)
    if number in FULL:
        return Problem(507, "The server has no room on its disk. Come again later.", headers=LATER)
    if number in HINDERED:
        return Problem(
            503, "The server cannot use its disk, or its files. Come again later.", headers=LATER
        )
    if number < 0 or isinstance(error, CheckpointError | SinkError | SourceError):
        return Problem(500, "The server cannot use its files; its log says more.")
    if isinstance(error, QueryError):
        return Problem(400, error.message, **place_of(error))
    if not isinstance(error, LevadaError):
        return None
    detail = without_paths(error.message, *folders)
    if isinstance(error, RefusedError):
        return Problem(409, detail)
    if isinstance(error, EngineError):
        return Problem(409, detail, hint="An engine must run on the checkpoint.")
    return Problem(400, detail, hint=without_paths(error.hint, *folders))


def without_paths(text: str, *folders: Path) -> str:
    """Removes the paths of some folders, and of files in them, from a sentence.

    >>> without_paths("The file /ck/a/b.nt of the checkpoint /ck is gone.", Path("/ck"))
    'The file of the checkpoint is gone.'
    """
    for folder in folders:
        text = re.sub(rf" ?{re.escape(str(folder))}(/[^\s:,;'\"]*)?", "", text)
    return text


def place_of(error: QueryError) -> dict[str, Any]:
    """Returns the place of an error in a query's text, and the tokens that were expected there."""
    span = error.span
    return {
        "line": span.line if span else None,
        "column": span.column if span else None,
        "expected": list(error.expected),
        "hint": error.hint,
    }


async def on_problem(request: Request, error: Exception) -> Response:
    """Answers a request that was refused."""
    assert isinstance(error, Problem), "it is registered for problems"
    return error.response()


def refusal_response(request: HTTPConnection, error: Exception) -> Response | None:
    """Returns the answer to a request that the server or a layer below refused; None for a fault of
    Levada. Logs errors of the server.
    """
    if isinstance(error, Problem):
        return error.response()
    settings = request.app.state.served.settings
    folders = (settings.root, settings.letters, settings.tokens)
    problem = problem_of(error, *filter(None, folders))
    if problem is None:
        return None
    if problem.status >= 500:
        logging.getLogger("levada.server").error("%s", error)
    return problem.response()


async def on_refusal(request: Request, error: Exception) -> Response:
    """Answers a request that a layer below refused or the system hindered. Raises ``error`` again
    if it is a fault of Levada.
    """
    if (answer := refusal_response(request, error)) is None:
        raise error
    return answer


async def on_status(request: Request, error: Exception) -> Response:
    """Answers a request for an unknown path, or with a method that the path does not have."""
    status = getattr(error, "status_code", 500)
    headers = dict(getattr(error, "headers", None) or {})
    if status == 405:  # the router names the methods of one route of the path
        ways = [route for route in request.app.routes if route.matches(request.scope)[0].value]
        methods = {m for way in ways for m in getattr(way, "methods", None) or ()}
        headers["Allow"] = ", ".join(sorted(methods))
    messages = {404: "There is nothing under this path.", 405: "This path knows other methods."}
    hint = "GET /openapi.json lists what there is."
    said = messages.get(status, str(getattr(error, "detail", "")))
    return Problem(status, said, headers=headers, hint=hint).response()


def json_bytes(value: Any) -> bytes:
    """Serializes a value as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


class Json(Response):
    """An answer of JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Returns the body's bytes."""
        return json_bytes(content)
