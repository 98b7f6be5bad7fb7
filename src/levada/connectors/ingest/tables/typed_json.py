"""Reads the values of JSON for a mapping of RML: texts as the source writes them, their kinds
(``value_kinds``), and lists of those of a path with several values in a row, such as
``@.items[*].id``.

The values of such a path are rows of another iterator, which lie within those of the table. Cost:
the kernels of ``nested_json`` once more for each array that is met so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from levada.connectors.config.json_path import Steps, list_path
from levada.connectors.ingest.tables.nested_json import NestedRows
from levada.connectors.ingest.tables.value_kinds import kind_column, kinds_at
from levada.core.array_types import Bytes, Longs

Read = Callable[[Sequence[str], Steps], tuple[NestedRows, pl.DataFrame]]
"""Reads columns of the rows that an iterator meets."""


def single_columns(names: Iterable[str]) -> list[str]:
    """Returns the columns with one value in a row."""
    return [name for name in names if list_path(name) is None]


def typed_table(
    data: Bytes,
    rows: NestedRows,
    table: pl.DataFrame,
    names: Sequence[str],
    *,
    outer: Steps,
    read: Read,
) -> pl.DataFrame:
    """Returns the table of ``rows`` with all columns and their kinds. ``table``: those of
    ``single_columns``; ``outer``: the iterator of the rows.
    """
    columns = {name: table[name] for name in table.columns}
    kinds = kinds_at(data, rows.values)
    for i, name in enumerate(table.columns):
        columns[kind_column(name)] = pl.Series(kind_column(name), kinds[:, i], pl.UInt8)
    groups: dict[Steps, list[tuple[str, str]]] = {}
    for name in names:
        if (path := list_path(name)) is not None:
            groups.setdefault(outer + path[0], []).append((name, path[1]))
    for iterator, group in groups.items():
        inner, values = read([path for _, path in group], iterator)
        order, offsets = _offsets(rows, inner)
        value_kinds = kinds_at(data, inner.values)
        for i, (name, _) in enumerate(group):
            column = values.to_series(i).gather(order)
            columns[name] = _list(column, offsets)
            of_values = pl.Series(value_kinds[order, i], dtype=pl.UInt8)
            columns[kind_column(name)] = _list(of_values, offsets)
    return pl.DataFrame(columns)


def _offsets(rows: NestedRows, inner: NestedRows) -> tuple[Longs, Longs]:
    """Returns inner rows in the order of the rows that they lie in, and where the inner ones of
    each row begin.
    """
    by_place = np.argsort(rows.at, kind="stable")
    at = np.searchsorted(rows.at[by_place], inner.at, "right") - 1
    lies_within = at >= 0
    row = by_place[np.maximum(at, 0)] if len(by_place) else np.zeros(len(at), np.int64)
    if len(by_place):
        lies_within &= inner.at < rows.stop[row]
    kept = np.flatnonzero(lies_within)
    order = kept[np.argsort(row[kept], kind="stable")]
    counts = np.bincount(row[kept], minlength=len(rows.at))
    return order, np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


def _list(values: pl.Series, offsets: Longs) -> pl.Series:
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values.to_arrow())
    column = pl.from_arrow(lists)
    assert isinstance(column, pl.Series), "an array is a column"
    return column
