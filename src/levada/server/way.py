"""A path and a method of the server: what a row of the table of routes is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from levada.server.guard.tokens import Role

Endpoint = Callable[[Request], Awaitable[Any]]
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Way:
    """A path and a method: who may (None: everybody), what it asks for beside (in the URL, in
    headers: ``heads``), takes, gives, answers; and what JSON that it answers always tells.
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
