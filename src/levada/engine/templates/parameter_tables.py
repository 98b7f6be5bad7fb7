"""Tables with a query for each row: frames of polars and pandas, tables of Arrow, lists of
mappings, files of CSV, TSV and Parquet.

The cells of a CSV file are texts, so that 007 stays unchanged. A column that is alone in a query is
parsed from that text.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import polars as pl
import pyarrow as pa
from polars.exceptions import PolarsError

from levada.core.frozen import frozen
from levada.errors import UsageError

Rows = object
"""A table for ``register_each``: a frame of polars or pandas, a table of Arrow, a list of mappings,
a path.
"""


@frozen
class Table:
    """The columns of a table, and its rows as Python values."""

    columns: list[str]
    held: pl.DataFrame | Sequence[Mapping[str, Any]]

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yields its rows, with these columns."""
        if isinstance(self.held, pl.DataFrame):
            return self.held.select(columns).iter_rows()
        return (tuple([row.get(column) for column in columns]) for row in self.held)


def table_of(table: Rows) -> Table:
    """Converts a table of any kind. Raises ``UsageError`` for other values.

    >>> table_of([{"sensor": "a", "threshold": 5}]).columns
    ['sensor', 'threshold']
    """
    if isinstance(table, list | tuple):
        for number, row in enumerate(table, 1):
            if not isinstance(row, Mapping) or not all(isinstance(key, str) for key in row):
                raise UsageError(f"Row {number} maps no names of columns to values: {row!r:.80}.")
        return Table(list(dict.fromkeys(key for row in table for key in row)), table)
    frame = _frame(table)
    return Table(frame.columns, frame)


def _frame(table: Rows) -> pl.DataFrame:
    if isinstance(table, pl.DataFrame):
        return table
    if isinstance(table, str | os.PathLike):
        return _file(Path(table))
    try:
        if isinstance(table, pa.Table):
            return pl.DataFrame(table)
        if type(table).__module__.startswith("pandas"):
            return pl.from_pandas(cast(Any, table))
    except (PolarsError, pa.ArrowException, ValueError, TypeError) as error:
        raise UsageError(f"The table cannot be read: {_first_line(error)}.") from error
    raise UsageError(
        f"A {type(table).__name__} is no table.",
        hint="Give a frame of pandas or polars, a table of Arrow, a list of mappings, "
        "or the path of a CSV file.",
    )


def _file(path: Path) -> pl.DataFrame:
    try:
        if path.suffix.lower() == ".parquet":
            return pl.read_parquet(path)
        separator = "\t" if path.suffix.lower() == ".tsv" else ","
        _check_fields(path, separator)
        return pl.read_csv(path, infer_schema=False, separator=separator)
    except OSError as error:
        raise UsageError(f"The table {path} cannot be read: {error.strerror or error}.") from error
    except PolarsError as error:
        raise UsageError(f"The table {path} cannot be read: {_first_line(error)}.") from error


def _check_fields(path: Path, separator: str) -> None:
    """Raises ``UsageError`` for a repeated column name, or for a row with more fields than
    columns.
    """
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = csv.reader(file, delimiter=separator)
        columns = next(rows, [])
        for column in columns:
            if columns.count(column) > 1:
                raise UsageError(f"The table {path} has two columns {column}.")
        for number, row in enumerate(rows, 1):
            if len(row) > len(columns):
                message = f"Row {number} of the table {path} has {len(row)} fields"
                raise UsageError(f"{message}, its head {len(columns)}.")


def _first_line(error: Exception) -> str:
    """Returns the first line of a library's error."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
