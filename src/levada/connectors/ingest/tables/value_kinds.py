"""The kinds of values of JSON, beside their texts: a column of kinds for each column of values.

STRING      a string, and each value of formats without types
NUMBER, BOOLEAN
CONTAINER   an array or an object
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars as pl

from levada.core.array_types import Bytes, Longs

STRING, NUMBER, BOOLEAN, CONTAINER = 0, 1, 2, 3


def kind_column(name: str) -> str:
    """Returns the name of the column of the kinds of a column."""
    return f"\x1fkind {name}"


def _kinds_by_byte() -> Bytes:
    table = np.full(256, NUMBER, np.uint8)
    for byte, kind in zip(b'"tf{[', (STRING, BOOLEAN, BOOLEAN, CONTAINER, CONTAINER), strict=True):
        table[byte] = kind
    return table


_BY_BYTE = _kinds_by_byte()


def kinds_at(data: Bytes, places: Longs) -> Bytes:
    """Returns the kinds of the values of JSON that begin at these places; STRING for negative ones,
    where there is no value.
    """
    return np.where(places < 0, np.uint8(STRING), _BY_BYTE[data[np.maximum(places, 0)]])


def with_kinds(table: pl.DataFrame, names: Iterable[str]) -> pl.DataFrame:
    """Returns a table whose columns ``names`` are texts, with the kinds of those that are not."""
    for name in names:
        column = table.get_column(name)
        if isinstance(column.dtype, pl.List) or column.dtype == pl.String:
            continue
        kind = NUMBER if column.dtype.is_numeric() else STRING
        kind = BOOLEAN if column.dtype == pl.Boolean else kind
        table = table.with_columns(
            column.cast(pl.String).alias(name),
            pl.Series(kind_column(name), np.full(table.height, kind, np.uint8)),
        )
    return table


def without_nulls(
    table: pl.DataFrame, names: Iterable[str], nulls: Sequence[str], *, is_csv: bool
) -> pl.DataFrame:
    """Returns a table without the values ``nulls``. An empty field of CSV is an empty text, unless
    that is one of them.
    """
    for name in names:
        column = table.get_column(name)
        if is_csv:
            column = column.fill_null("")
        if nulls and isinstance(column.dtype, pl.List):
            is_null = pl.element().is_in(nulls)
            column = column.list.eval(pl.when(~is_null).then(pl.element()))
        elif nulls:
            column = pl.select(
                pl.when(~pl.lit(column).is_in(nulls)).then(pl.lit(column))
            ).to_series()
        table = table.with_columns(column.alias(name))
    return table
