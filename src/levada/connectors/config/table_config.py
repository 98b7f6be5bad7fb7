"""Describes a static table: where its rows are, and the columns that queries read.

    source    a file of CSV, NDJSON, JSON or Parquet (text formats also .gz and .zst), or
              postgresql://USER@HOST/DATABASE#TABLE (default: the table's own name)
    schema    k:integer;v:double                       from the file, or from the database
    format    csv | ndjson | json | parquet                             the file's extension
    separator the character between the fields of CSV                                      ,
    every     how often Levada looks for changes: PostgreSQL 10s, files 200ms
    password  PostgreSQL: env:VARIABLE or file:PATH

All durations are ms. A table is a value that is valid from birth, as ``StreamConfig`` is.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from levada.connectors.config.input_formats import JSON, TABLES, format_of, word_of
from levada.connectors.config.postgres_url import SCHEMES, check_url
from levada.connectors.config.secret_reference import password_place
from levada.connectors.config.stream_options import AUTO, CONVERTERS, TableOptions, say_one_of
from levada.core.event_time import parse_duration
from levada.core.frozen import frozen
from levada.core.names import check_stream_name, table_graph
from levada.errors import UsageError, near

FILE_MS, DATABASE_MS = 200, 10_000


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "schema": CONVERTERS["schema"],
    "format": lambda value: word_of(str(value)),
    "separator": CONVERTERS["separator"],
    "every": parse_duration,
    "password": password_place,
}
TABLE_OPTIONS = tuple(_CONVERTERS)


@frozen
class TableConfig:
    """A static table, made by ``from_options``. ``source``: an absolute path, a URL, or "" for rows
    of the program.

    >>> TableConfig.from_options("rooms", "/data/rooms.csv.gz").format
    'csv'
    """

    name: str
    source: str
    format: str
    schema: tuple[tuple[str, str], ...] = ()
    separator: str = ","
    every: int = FILE_MS
    password: str = ""

    @classmethod
    def from_options(cls, name: str, source: str | os.PathLike[str], **options: Any) -> TableConfig:
        """Makes a table of options by their words. Raises ``UsageError``."""
        check_stream_name(name)
        values: dict[str, Any] = {}
        for key, value in options.items():
            if key not in _CONVERTERS:
                message = f"The table {name} has no option {key}."
                raise UsageError(message, hint=near(key, _CONVERTERS))
            if value is not None:
                values[key] = _convert(name, key, value)
        if values.get("schema") == AUTO:
            del values["schema"]
        place = os.fspath(source)
        if place.startswith(SCHEMES):
            check_url(f"The table {name}", place)
            return cls(name, place, "csv", **{"every": DATABASE_MS, **values})
        if not place:
            return cls(name, "", "frame", **values)
        values["format"] = values.get("format") or format_of(place)
        if values["format"] not in TABLES:
            message = f"The table {name} at {place} has no format that is known."
            raise UsageError(message, hint=say_one_of(TABLES, "format="))
        path = os.path.abspath(os.path.expanduser(place))
        return cls(name, path, **values)

    @property
    def options(self) -> TableOptions:
        """The options that make this table, by their words."""
        options = TableOptions(separator=self.separator, every=self.every)
        if self.schema:
            options["schema"] = self.schema
        if self.password:
            options["password"] = self.password
        if not self.is_database:
            options["format"] = self.format
        return options

    @property
    def graph(self) -> str:
        """The static graph of its rows."""
        return table_graph(self.name)

    @property
    def is_database(self) -> bool:
        """Whether a database has the rows."""
        return self.source.startswith(SCHEMES)

    @property
    def may_lack_columns(self) -> bool:
        """Whether a row may lack columns: an absent member of JSON is no value."""
        return self.format in JSON


def _convert(name: str, key: str, value: Any) -> Any:
    try:
        return _CONVERTERS[key](value)
    except UsageError as error:
        message = f"{key} of the table {name}: {error.message}"
        raise UsageError(message, hint=error.hint) from error
