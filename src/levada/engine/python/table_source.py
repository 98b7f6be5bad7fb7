"""Static tables from Python: files, URLs, and rows of the program."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import polars as pl

from levada.connectors.config.table_config import TableConfig
from levada.connectors.spool.row_batches import ArrowFrame, frame_of
from levada.engine.python.static_source import TableSource
from levada.errors import UsageError
from levada.runtime.driver.static_graphs import StaticGraphs


def declare_table(
    statics: StaticGraphs,
    name: str,
    source: TableSource,
    options: Mapping[str, Any],
    *,
    starts: bool,
) -> None:
    """Adds a table before the start, or replaces the rows of one. Raises ``SourceError``,
    ``UsageError``.
    """
    if starts and isinstance(source, (str, os.PathLike)):
        statics.add_table(TableConfig.from_options(name, source, **options))
    elif starts:
        config = TableConfig.from_options(name, "", **options)
        statics.add_table(config, table_frame(name, source))
    elif statics.tables is None or isinstance(source, (str, os.PathLike)):
        raise UsageError(
            f"The table {name} cannot be named while the engine runs.",
            hint="Name it before the start: a file and a database are read again when they change.",
        )
    else:
        statics.tables.replace(name, table_frame(name, source))


def table_frame(name: str, rows: Any) -> pl.DataFrame:
    """Returns rows as a data frame of numbers, booleans and texts.

    >>> table_frame("d", [{"k": "a", "n": 1}]).dtypes
    [String, Int64]
    """
    try:
        frame = frame_of(rows) if isinstance(rows, ArrowFrame) else pl.DataFrame(rows)
    except Exception as error:
        message = f"The rows of the table {name} are not a table: {error}"
        raise UsageError(message, hint="Give a data frame, or a list of mappings.") from error
    times = [name for name, kind in frame.schema.items() if kind.is_temporal()]
    return frame.with_columns(pl.col(name).cast(pl.String) for name in times)
