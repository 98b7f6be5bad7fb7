"""A path and a method of the server: what a row of the table of routes is."""

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
    """A path and a method: who may (None: everybody), what it asks for beside (in the URL, in
    headers: ``heads``), ``refuses`` itself, takes, gives, answers; and what JSON that it answers
    always tells. ``strict``: nothing else may stand in the URL.
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
    """What stands in the URL is looked at, and not passed over. Raises ``Problem`` 400."""
    if way.strict:
        check_names(f"{way.method} {way.path}", request, way.asks, way.refuses)


def check_names(
    what: str, asked: HTTPConnection, asks: Sequence[str], refuses: Sequence[str] = ()
) -> None:
    """The parameters in the URL are among these. Raises ``Problem`` 400."""
    for name in asked.query_params:
        if name not in (*asks, *refuses):
            message = f"{what} has no parameter {name[:40]}."
            raise Problem(400, message, hint=near(name, asks))
