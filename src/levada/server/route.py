"""A row of the table of routes: a path and a method of the server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from starlette.requests import HTTPConnection, Request

from levada.core.frozen import frozen
from levada.errors import near
from levada.server.problem_json import Problem
from levada.server.security.tokens import Role

Endpoint = Callable[[Request], Awaitable[Any]]
JSON = "application/json"


@frozen
class ApiRoute:
    """A path and a method. ``role``: the required role, None for everybody. ``asks``: its
    parameters in the URL. ``takes``: media types of the body. ``gives``: statuses. ``answers``: the
    media type of the answer. ``tells``: fields that a JSON answer always has. ``heads``: request
    headers. ``refuses``: parameters that the endpoint itself rejects. ``strict``: other parameters
    are errors.
    """

    method: str
    path: str
    endpoint: Endpoint
    role: Role | None = Role.READ
    asks: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    gives: tuple[int, ...] = (200,)
    answers: str = JSON
    tells: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    strict: bool = True


def check_asked(way: ApiRoute, request: Request) -> None:
    """Raises ``Problem`` 400 for a parameter that a strict route does not have."""
    if way.strict:
        check_names(f"{way.method} {way.path}", request, way.asks, way.refuses)


def check_names(
    what: str, asked: HTTPConnection, asks: Sequence[str], refuses: Sequence[str] = ()
) -> None:
    """Raises ``Problem`` 400 for a parameter in the URL outside ``asks`` and ``refuses``."""
    for name in asked.query_params:
        if name not in (*asks, *refuses):
            message = f"{what} has no parameter {name[:40]}."
            raise Problem(400, message, hint=near(name, asks))
