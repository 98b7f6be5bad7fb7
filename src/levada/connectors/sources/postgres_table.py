"""Reads a table of PostgreSQL as CSV, with the types of its columns.

Numbers of any kind but whole ones are doubles. Times, and values of other types, are strings as
PostgreSQL writes them in UTC and ISO. A connection lives as long as one read. Cost: COPY.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

from levada.connectors.config.postgres_url import first_line, library, quote_name
from levada.connectors.config.secret_reference import password_at
from levada.connectors.config.table_config import TableConfig
from levada.errors import SourceError

ANSWER = 10  # s until a server must accept a connection
_OPTIONS = "-c statement_timeout=60000 -c TimeZone=UTC -c DateStyle=ISO -c extra_float_digits=1"
_TYPES = {
    "smallint": "integer",
    "integer": "integer",
    "bigint": "integer",
    "real": "double",
    "double precision": "double",
    "numeric": "double",
    "boolean": "boolean",
}
_COLUMNS = (
    "SELECT attname::text, format_type(atttypid, NULL) FROM pg_attribute "
    "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
)


def shown_source(config: TableConfig) -> str:
    """Returns the place of a table for people: a URL without user and parameters.

    >>> shown_source(TableConfig.from_options("d", "postgresql://me@host/shop"))
    'postgresql://host/shop#d'
    """
    if not config.is_database:
        return config.source
    parts = urlsplit(config.source)
    host = parts.netloc.rpartition("@")[2]
    return f"postgresql://{host}{parts.path}#{'.'.join(_table(config))}"


def database_schema(config: TableConfig) -> tuple[tuple[str, str], ...]:
    """Returns the columns of the table with their types. Raises ``SourceError``."""
    with _connect(config) as connection:
        rows = connection.execute(_COLUMNS, (quote_name(_table(config)),)).fetchall()
    if not rows:
        message = f"The database of {shown_source(config)} has no such table."
        raise SourceError(message, hint="Name it behind #, with its schema: #public.rooms.")
    return tuple((name, _TYPES.get(kind, "string")) for name, kind in rows)


def database_rows(config: TableConfig) -> bytes:
    """Returns the rows as CSV with a header. Raises ``SourceError``."""
    names = [quote_name((column,)) for column, _ in config.schema]
    columns = ", ".join(f"{name}::text AS {name}" for name in names)
    text = f"SELECT {columns} FROM {quote_name(_table(config))}"
    with (
        _connect(config) as connection,
        connection.cursor() as cursor,
        cursor.copy(f"COPY ({text}) TO STDOUT (FORMAT csv, HEADER)") as copy,
    ):
        return b"".join(copy)


def _table(config: TableConfig) -> tuple[str, ...]:
    return tuple((unquote(urldefrag(config.source)[1]) or config.name).split("."))


@contextmanager
def _connect(config: TableConfig) -> Iterator[Any]:
    """Opens a connection that only reads; turns errors of psycopg into errors for users."""
    psycopg = library()
    secret = {"password": password_at(config.password)} if config.password else {}
    try:
        with psycopg.connect(
            urldefrag(config.source)[0], connect_timeout=ANSWER, application_name="levada",
            options=_OPTIONS, **secret,
        ) as connection:  # fmt: skip
            connection.read_only = True
            yield connection
    except psycopg.Error as error:
        message = f"The table {shown_source(config)} cannot be read: {first_line(error)}."
        raise SourceError(message) from None
