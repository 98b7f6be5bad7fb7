"""Reads Parquet files: their rows as ranges, their types as a schema. A column may be a path to a
field of structs (``levada.connectors.config.json_path``).

A range ends at a row group's end if possible, since a row group is decoded whole; small row groups
share a range. An incomplete file has no footer yet: it is skipped until it can be opened.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Set
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as pt

from levada.connectors.config.json_path import path_name, struct_fields
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.file_errors import FileFaults, reason
from levada.connectors.sources.file_listing import list_files
from levada.connectors.sources.parquet_bounds import check_decoded
from levada.connectors.sources.regular_files import open_arrow
from levada.connectors.sources.spooled_files import parquet_of, read_spooled
from levada.core.array_types import Bytes
from levada.core.frozen import frozen
from levada.errors import FileFault, SourceError, near

_TARGET = 4 << 20
_MAX_UNCHECKED_ROWS = 1 << 20  # of numbers; those of a spool were decoded before
_HAS_TEXTS = re.compile("string|binary|utf8")  # of lengths that the number of rows does not bound


@frozen
class Layout:
    """The layout in a footer: the first row of each row group (and the number of rows, last), and
    bytes a row.
    """

    edges: tuple[int, ...]
    row_bytes: int

    @property
    def rows(self) -> int:
        """The number of rows of the file."""
        return self.edges[-1]

    def stop(self, at: int, rows: int) -> int:
        """Returns the end of a range from row ``at`` with at most ``rows`` rows."""
        target = at + max(_TARGET // self.row_bytes, 1)
        group = max(bisect_right(self.edges, target) - 1, bisect_right(self.edges, at))
        return min(self.edges[min(group, len(self.edges) - 1)], at + rows)


def layout(
    config: StreamConfig, path: str, *, finished: bool, data: Bytes | None = None
) -> Layout | None:
    """Returns the layout of the file; None if it has no footer yet (an error if it is
    ``finished``). ``data``: its bytes, if present.
    """
    try:
        with pq.ParquetFile(parquet_of(path, data)) as file:
            _check_types(config, path, file.schema_arrow)
            meta = file.metadata
            edges = [0]
            size = 0
            for i in range(meta.num_row_groups):
                group = meta.row_group(i)
                edges.append(edges[-1] + group.num_rows)
                size += group.total_byte_size
            return Layout(tuple(edges), max(size // max(edges[-1], 1), 1))
    except FileFault:
        raise
    except Exception as error:
        if finished or isinstance(error, FileNotFoundError):
            raise FileFault(
                f"The file {path} of the stream {config.name} is no Parquet: {reason(error)}"
            ) from error
        return None


def read_rows(path: str, start: int, stop: int, config: StreamConfig) -> pa.Table:
    """Reads the rows ``start:stop`` of the columns of the schema and the time. Raises
    ``CheckpointError`` for a damaged file of a spool.
    """
    data = read_spooled(path) if config.settled else None
    with FileFaults(path, config.name), pq.ParquetFile(parquet_of(path, data)) as file:
        edges, meta = [0], file.metadata
        for i in range(meta.num_row_groups):
            edges.append(edges[-1] + meta.row_group(i).num_rows)
        groups = [i for i in range(len(edges) - 1) if edges[i] < stop and edges[i + 1] > start]
        needed, flat = _find_needed(config), {*file.schema_arrow.names}
        columns, nested = needed, not flat.issuperset(needed)
        if nested:
            columns = dict.fromkeys([_column_read(flat, name) for name in needed])
        rows = edges[groups[-1] + 1] - edges[groups[0]] if groups else 0
        large = rows > _MAX_UNCHECKED_ROWS or _HAS_TEXTS.search(str(file.schema_arrow)) is not None
        if not config.settled and large:
            check_decoded(path, meta, groups, columns)
        table = file.read_row_groups(groups, columns=[*columns], use_threads=False)
        if nested:
            table = pa.table({name: _select(table, name) for name in needed})
        first = start - edges[groups[0]] if groups else 0
        if table.num_rows < first + stop - start:
            raise FileFault(
                f"The file {path} of the stream {config.name} has fewer rows than it says."
            )
        return table.slice(first, stop - start)


def with_schema(config: StreamConfig) -> StreamConfig:
    """Returns a Parquet stream with its first file's schema, if it has none; others unchanged.

    Columns of other types than the four of a schema are left out (a time may still come from one).
    """
    if config.format != "parquet" or config.schema or config.mapping is not None:
        return config
    for file in list_files(config.name, config.path):
        try:
            types = pq.read_schema(open_arrow(file.path))
        except Exception:  # an unreadable file is reported when it is read
            continue
        pairs = {name: _type_of(kind) for name, kind in _leaves(types)}.items()
        return replace(config, schema=tuple((name, kind) for name, kind in pairs if kind))
    raise SourceError(
        f"The stream {config.name} has no schema and no Parquet file at "
        f"{config.path} to take one from."
    )


def schema_at(path: str) -> tuple[tuple[str, str], ...]:
    """Returns the columns of a file that a schema can name. Raises ``SourceError``."""
    try:
        types = pq.read_schema(open_arrow(path))
    except Exception as error:
        raise SourceError(f"The file {path} is no Parquet: {reason(error)}") from error
    pairs = {name: _type_of(kind) for name, kind in _leaves(types)}.items()
    return tuple((name, kind) for name, kind in pairs if kind)


def _find_needed(config: StreamConfig) -> dict[str, None]:
    """Returns the columns to read, each once, in order."""
    names = dict.fromkeys([name for name, _ in config.read_columns])
    if (time := config.time_field) is not None:
        names[time] = None
    return names


def _type_at(schema: pa.Schema, name: str) -> pa.DataType | None:
    """Returns the type of a column, or of the field of structs that it is a path to; None if there
    is none.
    """
    if places := schema.get_all_field_indices(name):
        return schema.types[places[0]] if places[1:] == [] else pa.null()
    first, *inner = struct_fields(name) or ("",)
    if schema.names.count(first) != 1:
        return None
    kind = schema.field(first).type
    for field in inner:
        if not pt.is_struct(kind) or kind.get_field_index(field) < 0:
            return None
        kind = kind.field(field).type
    return kind


def _column_read(flat: Set[str], name: str) -> str:
    """Returns the column of a file with these columns that contains a column."""
    return name if name in flat else (struct_fields(name) or (name,))[0]


def _select(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Returns a column, or the field of structs that it is a path to."""
    if name in table.column_names:
        return table.column(name)
    first, *inner = struct_fields(name) or (name,)
    column = table.column(first)
    return pc.struct_field(column, inner) if inner else column


def _leaves(fields: Iterable[pa.Field], above: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yields the columns of a schema with their types; the fields of structs by their paths."""
    for field in fields:
        names = (*above, field.name)
        if pt.is_struct(field.type):
            yield from _leaves(field.type, names)
        else:
            yield path_name(names) if above else field.name, field.type


def _type_of(kind: pa.DataType) -> str:
    """Returns the schema's word for an Arrow type, "" if there is none."""
    if pt.is_dictionary(kind):
        kind = kind.value_type
    if pt.is_integer(kind):
        return "integer"
    if pt.is_floating(kind) or pt.is_decimal(kind):
        return "double"
    if pt.is_boolean(kind):
        return "boolean"
    return (
        "string"
        if pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind)
        else ""
    )


def _is_time(kind: pa.DataType) -> bool:
    moment = pt.is_timestamp(kind) or pt.is_date(kind) or pt.is_null(kind)
    return bool(moment) or _type_of(kind) in ("integer", "double", "string")


def _check_types(config: StreamConfig, path: str, schema: pa.Schema) -> None:
    """Checks that the columns exist with types that the schema's can represent. Raises
    ``FileFault``.
    """
    for name in _find_needed(config):
        if _type_at(schema, name) is None:
            known = dict.fromkeys([*schema.names, *(each for each, _ in _leaves(schema))])
            raise FileFault(f"The file {path} has no column {name}.", hint=near(name, known))
        if schema.names.count(name) > 1:
            raise FileFault(f"The file {path} has the column {name} twice.")
    for name, kind in config.schema:
        column_type = _type_at(schema, name)
        assert column_type is not None, "the column exists"
        held = _type_of(column_type)
        if held != kind and (held, kind) != ("integer", "double") and not pt.is_null(column_type):
            raise FileFault(
                f"The column {name} of {path} is {column_type}, "
                f"but the schema of {config.name} says {kind}."
            )
    time = config.time_field
    moment = None if time is None else _type_at(schema, time)
    if moment is not None and not _is_time(moment):
        raise FileFault(f"The column {time} of {path} is {moment}, which is no event time.")
