"""Checks URLs of PostgreSQL databases, and quotes names in SQL."""

from __future__ import annotations

from types import ModuleType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from levada.core.distribution import install_command
from levada.errors import SinkError, UsageError

SCHEMES = ("postgresql://", "postgres://")
_SECRETS = ("password", "sslpassword")  # libpq's words


def library() -> ModuleType:
    """Imports psycopg. Raises a ``SinkError`` that explains how to install it."""
    try:
        import psycopg
    except ImportError as error:
        raise SinkError(
            "PostgreSQL needs the package psycopg.", hint=f"Say {install_command('postgres')}."
        ) from error
    module: ModuleType = psycopg
    return module


def quote_name(name: tuple[str, ...]) -> str:
    """Quotes a name, with its schema if it has one, for SQL.

    >>> quote_name(("public", 'a"b'))
    '"public"."a""b"'
    """
    return ".".join('"' + part.replace('"', '""') + '"' for part in name)


def first_line(error: Any) -> str:
    """Returns PostgreSQL's message, in a line without a dot."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")


def check_url(who: str, url: str) -> None:
    """Checks that a URL has no password, and a database. Raises ``UsageError``."""
    try:
        parts = urlsplit(url)
        words = dict(parse_qsl(parts.query))
        secret = parts.password is not None or not words.keys().isdisjoint(_SECRETS)
        has_database = bool(parts.path.strip("/")) or "dbname" in words
    except ValueError:
        secret = has_database = False
    if secret:
        raise UsageError(
            f"{who}: a password does not stand in a URL, where others would read it.",
            hint="Say password=env:VARIABLE or password=file:PATH.",
        )
    if not has_database:
        raise UsageError(
            f"{who}: the URL names no database.", hint="Say postgresql://USER@HOST:PORT/DATABASE."
        )
