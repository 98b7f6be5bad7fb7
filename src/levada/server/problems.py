"""What went wrong, as application/problem+json (RFC 9457): title, status, detail, and of a query's
text line, column, expected and hint.
"""

from __future__ import annotations

import http
from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from levada.engine.telling.asking import RefusedError
from levada.errors import CheckpointError, EngineError, LevadaError, QueryError, shortened

MEDIA = "application/problem+json"


class Problem(Exception):  # noqa: N818  # an answer, not a fault
    """An answer that says what is wrong."""

    def __init__(
        self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **said: Any
    ) -> None:
        self.status, self.detail, self.said = status, shortened(detail), said
        super().__init__(self.detail)
        self.headers = dict(headers or {})

    def response(self) -> Response:
        """As it is sent."""
        return Response(self.body(), self.status, self.headers, MEDIA)

    def body(self) -> bytes:
        """Its JSON."""
        title = http.HTTPStatus(self.status).phrase
        said = {key: value for key, value in self.said.items() if value not in (None, "", [])}
        return json_bytes({"title": title, "status": self.status, "detail": self.detail, **said})


def problem_of(error: LevadaError) -> Problem:
    """What a refusal is over HTTP: the user's mistakes 400, no engine 409, a damaged file 500."""
    if isinstance(error, QueryError):
        return Problem(400, error.message, **place_of(error))
    if isinstance(error, RefusedError):
        return Problem(409, error.message)
    if isinstance(error, EngineError):
        return Problem(409, error.message, hint="An engine must run on the checkpoint.")
    status = 500 if isinstance(error, CheckpointError) else 400
    return Problem(status, error.message, hint=error.hint)


def place_of(error: QueryError) -> dict[str, Any]:
    """Where a query's text is wrong, and what could have stood there."""
    span = error.span
    return {
        "line": span.line if span else None,
        "column": span.column if span else None,
        "expected": list(error.expected),
        "hint": error.hint,
    }


async def on_problem(request: Request, error: Exception) -> Response:
    """The answer to a request that was refused."""
    assert isinstance(error, Problem), "it is registered for problems"
    return error.response()


def refused(error: Problem | LevadaError) -> Response:
    """The answer to a request that was refused here or below."""
    return error.response() if isinstance(error, Problem) else problem_of(error).response()


async def on_refusal(request: Request, error: Exception) -> Response:
    """The answer to a request that something below has refused."""
    assert isinstance(error, LevadaError), "it is registered for these"
    return problem_of(error).response()


async def on_status(request: Request, error: Exception) -> Response:
    """No such path, or no such method there."""
    status = getattr(error, "status_code", 500)
    headers = dict(getattr(error, "headers", None) or {})
    if status == 405:  # the router names the methods of one route of the path
        ways = [route for route in request.app.routes if route.matches(request.scope)[0].value]
        methods = {m for way in ways for m in getattr(way, "methods", None) or ()}
        headers["Allow"] = ", ".join(sorted(methods))
    told = {404: "There is nothing under this path.", 405: "This path knows other methods."}
    hint = "GET /openapi.json lists what there is."
    said = told.get(status, str(getattr(error, "detail", "")))
    return Problem(status, said, headers=headers, hint=hint).response()


def json_bytes(value: Any) -> bytes:
    """JSON for people, too."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


class Json(Response):
    """An answer of JSON."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """Its bytes."""
        return json_bytes(content)
