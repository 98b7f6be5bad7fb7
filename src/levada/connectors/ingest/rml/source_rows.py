"""Reads the rows of a logical source as columns of texts, with the kinds of their values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from levada.connectors.config.json_path import parse_iterator
from levada.connectors.config.rml.logical_source import CSV, JSON, LogicalSource
from levada.connectors.config.rml.source_path import find_file
from levada.connectors.ingest.rml.source_file import read_file
from levada.connectors.ingest.tables.csv_rows import RawRows, csv_rows
from levada.connectors.ingest.tables.json_rows import document_rows, json_rows
from levada.connectors.ingest.tables.row_terms import ROW_NUMBER
from levada.connectors.ingest.tables.value_kinds import without_nulls
from levada.connectors.sources.read_split import CsvChunk, first_record
from levada.connectors.sources.splits import FileSplit
from levada.core.array_types import Bytes
from levada.errors import UsageError, near


def read_rows(
    source: LogicalSource, needed: Sequence[str], folder: Path, allowed: Sequence[Path] = ()
) -> RawRows:
    """Reads columns of a source of a mapping in ``folder``. Raises ``UsageError`` for a column or a
    file that is missing, ``SourceError`` or ``FileFault`` for a file that cannot be read.
    """
    return read_source_rows(source, needed, find_file(source, folder, allowed))


def read_source_rows(source: LogicalSource, needed: Sequence[str], path: Path) -> RawRows:
    """Reads columns of a source in the file at ``path``, as ``read_rows`` does."""
    data = read_file(source, path)
    if source.formulation == CSV:
        rows = _csv(data, needed, source, path)
    elif source.formulation == JSON:
        rows = _json(data, needed, source, path)
    else:
        from levada.connectors.ingest.rml.xml_rows import xml_rows  # here: lxml is an extra

        rows = xml_rows(data, needed, source, str(path))
    table = without_nulls(rows.table, needed, source.nulls, is_csv=source.formulation == CSV)
    number = pl.Series(ROW_NUMBER, np.arange(table.height))
    rows.table = table.with_columns(number)
    return rows


def _reference(path: Path, start: int, stop: int, form: str) -> FileSplit:
    """Returns the reference to a file from a byte on."""
    name = str(path)
    return FileSplit(name, name, name, name, form, start, stop, 0, 0, 0)


def _csv(data: Bytes, needed: Sequence[str], source: LogicalSource, path: Path) -> RawRows:
    header = first_record(str(path), data, source.separator)
    columns = () if header is None else header.columns
    for name in needed:
        if name not in columns:
            raise UsageError(
                f"The file {path} has no column {name}.",
                hint=near(name, columns) or f"It has {', '.join(columns)}.",
            )
    end = 0 if header is None else header.end
    chunk = CsvChunk(columns, data[end:], source.separator)
    reference = _reference(path, end, len(data), "csv")
    return csv_rows(chunk, list(needed) or list(columns[:1]), reference)


def _json(data: Bytes, needed: Sequence[str], source: LogicalSource, path: Path) -> RawRows:
    reference = _reference(path, 0, len(data), "json")
    iterator = parse_iterator(source.iterator) if source.iterator else None
    if _is_lines(data, path):
        return json_rows(data, needed or [""], reference, iterator=iterator or None, typed=True)
    return document_rows(data, needed or [""], reference, iterator=iterator or (), typed=True)


def _is_lines(data: Bytes, path: Path) -> bool:
    """Whether a file has a JSON value on each line."""
    if any(each in (".ndjson", ".jsonl") for each in path.suffixes):
        return True
    text = data[: 1 << 16].tobytes()
    line = next((line for line in text.splitlines() if line.strip()), b"")
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return len(line) < len(text.strip())
