"""Reads a static table, and writes its rows as N-Triples: each row is a subject of the table's
graph (docs/cli/tables.md).

    <GRAPH#row-HASH-1> rdf:type <GRAPH> .       <GRAPH#row-HASH-1> <GRAPH#COLUMN> "value" .

A row is named by its values and, since a table is a bag, by its number among equal rows. So a row
that stays has the same triples, wherever it is in the file. The lines are sorted: equal tables have
equal texts. A value that is missing has no triple. Rows that cannot be read, or have a value that a
column cannot represent, are refused. Cost: the readers of ``tuple_rows``, then string operations of
Polars; the whole table in memory, with its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
import polars as pl
import pyarrow.parquet as pq

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.config.table_config import TableConfig
from levada.connectors.ingest.lateness import Dead
from levada.connectors.ingest.tables.csv_rows import RawRows
from levada.connectors.ingest.tables.schema_inference import sniff
from levada.connectors.ingest.tables.tuple_rows import cast_column, raw_rows
from levada.connectors.sources.decompression import DAMAGED, open_
from levada.connectors.sources.file_errors import reason
from levada.connectors.sources.parquet_files import read_rows, schema_at
from levada.connectors.sources.postgres_table import database_rows, database_schema, shown_source
from levada.connectors.sources.read_split import CsvChunk, JsonChunk, first_record
from levada.connectors.sources.regular_files import open_arrow
from levada.connectors.sources.splits import FileSplit
from levada.core.array_types import Bytes
from levada.core.frozen import frozen
from levada.core.names import column_iri
from levada.core.rdf_terms import XSD
from levada.errors import SourceError, near
from levada.kernels.terms.term_ids import identify
from levada.kernels.text.byte_ops import parsing_room

MAX_BYTES = 1 << 30
MAX_TRIPLES = 4 << 30  # bytes of N-Triples, which are in memory more than once
_OVERHEAD = 60  # bytes of a triple: the name of the row, marks, the datatype
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_BETWEEN = "\x1f"  # between the values of a row, in its name


@frozen
class TableContent:
    """The triples of a table: ``lines`` of N-Triples, for ``rows`` rows; ``dead``: refused rows."""

    lines: bytes
    rows: int
    dead: list[Dead]


def with_columns(config: TableConfig) -> TableConfig:
    """Returns a table with the columns and types of its source. Raises ``SourceError``."""
    if config.is_database:
        return replace(config, schema=database_schema(config))
    if config.format == "parquet":
        return replace(config, schema=schema_at(config.source))
    inferred = sniff(config.source, _as_stream(config))
    return replace(config, schema=tuple(inferred.types.items()), separator=inferred.separator)


def read_table(config: TableConfig, frame: pl.DataFrame | None = None) -> TableContent:
    """Reads all rows of a table whose schema is known, or those of ``frame``. Raises
    ``SourceError``.
    """
    rows = _frame_rows(frame) if frame is not None else _raw_rows(config)
    values = {name: cast_column(rows, name, kind) for name, kind in config.schema}
    wrong = [Dead(int(rows.offset[at]), why, rows.text(at)) for at, why in rows.wrong.items()]
    table = pl.DataFrame(values)
    if wrong:
        keep = np.ones(table.height, np.bool_)
        keep[list(rows.wrong)] = False
        table = table.filter(pl.Series(keep))
    dead = sorted([*rows.dead, *wrong], key=lambda each: each.offset)
    return TableContent(triples_of(table, config), table.height, dead)


def triples_of(table: pl.DataFrame, config: TableConfig) -> bytes:
    """Returns the rows of a table, whose columns have the types of its schema, as N-Triples.

    >>> config = TableConfig.from_options("d", "d.csv", schema="k:string")
    >>> triples_of(pl.DataFrame({"k": ["a"]}), config).decode().splitlines()[0][-23:]
    ' <urn:levada:table:d> .'
    """
    if not table.height:
        return b""
    kinds = dict(config.schema)
    texts = table.select(_lexical(name, kinds[name]) for name in table.columns)
    marked = [pl.concat_str(pl.lit("="), pl.col(name)).fill_null("") for name in texts.columns]
    x, y = identify(texts.select(pl.concat_str(marked, separator=_BETWEEN)).to_series(), seed=0)
    names = pl.DataFrame({"x": x, "y": y}).select(
        pl.concat_str(
            pl.lit(f"<{config.graph}#row-"), "x", pl.lit("-"), "y", pl.lit("-"),
            pl.int_range(1, pl.len() + 1).over("x", "y"), pl.lit(">"),
        ).alias("\x1frow")
    )  # fmt: skip
    row = pl.col("\x1frow")
    lines = [pl.concat_str(row, pl.lit(f" {_TYPE} <{config.graph}> .\n"))]
    _check_size(texts, config)
    for name in texts.columns:
        datatype = "" if kinds[name] == "string" else f"^^<{XSD}{kinds[name]}>"
        before, after = f' <{column_iri(config.graph, name)}> "', f'"{datatype} .\n'
        lines.append(pl.concat_str(row, pl.lit(before), pl.col(name), pl.lit(after)))
    whole = texts.with_columns(names.to_series())
    written = whole.select(pl.concat_str(lines, ignore_nulls=True)).to_series().sort()
    return "".join(written).encode()


def _check_size(texts: pl.DataFrame, config: TableConfig) -> None:
    """Raises ``SourceError`` for rows whose triples take too much memory."""
    each = sum(2 * len(config.graph) + len(name) + _OVERHEAD for name in [*texts.columns, _TYPE])
    if texts.height * each + texts.estimated_size() > MAX_TRIPLES:
        message = f"The rows of the table {shown_source(config)} are too many: {texts.height:,}."
        raise SourceError(message, hint="Keep the columns and rows that queries read.")


def _lexical(name: str, kind: str) -> pl.Expr:
    """Returns the values of a column as they stand between quotes: doubles as in tuples."""
    text = pl.col(name).cast(pl.String)
    if kind == "double":
        return text.str.strip_suffix(".0").replace({"inf": "INF", "-inf": "-INF"})
    if kind == "string":
        for raw, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
            text = text.str.replace_all(raw, escape, literal=True)
    return text


def _as_stream(config: TableConfig) -> StreamConfig:
    """Returns a stream with the same rows, as the readers of rows take it."""
    return StreamConfig(
        config.name, config.source, config.format, "arrival", schema=config.schema,
        separator=config.separator,
    )  # fmt: skip


def _frame_rows(frame: pl.DataFrame) -> RawRows:
    at = np.arange(frame.height)
    return RawRows(frame, at, at, lambda row: str(frame.row(row)), [])


def _raw_rows(config: TableConfig) -> RawRows:
    """Returns the unconverted rows of a source."""
    stream, source = _as_stream(config), shown_source(config)
    split = FileSplit(config.name, "", source, config.source, config.format, 0, 0, 0, 0, 0)
    if config.format == "parquet":
        _check_columns(config, [name for name, _ in schema_at(config.source)])
        with pq.ParquetFile(open_arrow(config.source)) as file:
            count = file.metadata.num_rows
        return raw_rows(read_rows(config.source, 0, count, stream), stream, split)
    data = _buffer(database_rows(config) if config.is_database else _content(config))
    if config.may_lack_columns:
        return raw_rows(JsonChunk(data), stream, split)
    separator = config.separator
    header = first_record(source, data, separator)
    if header is None:
        raise SourceError(f"The table {source} is empty: it has not even a header.")
    _check_columns(config, header.columns)
    chunk = CsvChunk(header.columns, data[header.end :], separator)
    return raw_rows(chunk, stream, msgspec.structs.replace(split, start=header.end))


def _check_columns(config: TableConfig, names: Sequence[str]) -> None:
    """Raises ``SourceError`` for a column of the schema that the source lacks."""
    for name, _ in config.schema:
        if name not in names:
            message = f"The table {shown_source(config)} has no column {name}."
            raise SourceError(message, hint=near(name, names))


def _content(config: TableConfig) -> bytes:
    """Returns the text of a file, unpacked. Raises ``SourceError``."""
    try:
        with open_(config.source) as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, *DAMAGED) as error:
        message = f"The table {config.source} cannot be read: {reason(error)}."
        raise SourceError(message) from error
    if len(data) > MAX_BYTES:
        message = f"The table {config.source} has more than {MAX_BYTES >> 30} GB."
        raise SourceError(message, hint="Keep the columns and rows that queries read.")
    return data


def _buffer(data: bytes) -> Bytes:
    """Returns the text with padding for the parser, and a line end at its end."""
    if not data.endswith((b"\n", b"\r")):
        data += b"\n"
    out = np.empty(len(data) + parsing_room(len(data)), np.uint8)[: len(data)]
    out[:] = np.frombuffer(data, np.uint8)
    return out
