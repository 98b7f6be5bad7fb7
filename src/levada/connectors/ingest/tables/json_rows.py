"""Reads lines of JSON objects (NDJSON), or a JSON document, as columns of texts, with the faults
of some of them.

Every value is read as text: a string unchanged, a number or boolean as JSON writes it (numbers in
the shortest form of their double, or unchanged in the column of times), an array or object as its
text.
``null`` and a missing name have no value. If an object repeats a name, the last value counts. A
column may be a path, and the elements of an array may be rows (``nested_json``). A line is dead if
it is not a JSON object or has half of a surrogate pair; blank lines are ignored. Cost: kernels that
find the values, and a call of Polars' reader for a valid piece; a value that it does not read costs
the same on halves of the piece, log2(rows) times.
"""

from __future__ import annotations

import io
import json
from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from levada.connectors.config.json_path import EACH, Steps
from levada.connectors.ingest.lateness import Dead
from levada.connectors.ingest.tables.bisect_records import read_by_halves
from levada.connectors.ingest.tables.csv_rows import RawRows, decode, not_utf8
from levada.connectors.ingest.tables.nested_json import NestedRows, nested_rows
from levada.connectors.ingest.tables.typed_json import single_columns, typed_table
from levada.connectors.sources.file_errors import encoding_fault
from levada.connectors.sources.splits import FileSplit
from levada.core.array_types import Bools, Bytes, Longs
from levada.errors import FileFault
from levada.kernels.text import json_values

NOT_JSON = "not a JSON object"
ARRAY = "a JSON array, and NDJSON has an object on each line"
HALF = "an escape is a surrogate without its other half, which is not a character"
OUT_OF_RANGE = "a number that is out of range"
_HEAD = 1 << 12
_DOUBLE = 16  # characters of a number that a double holds
_FAULTS = {
    json_values.BROKEN: NOT_JSON,
    json_values.HALF: HALF,
    json_values.DEEP: f"it nests more than {json_values.MAX_DEPTH} levels",
}


def json_rows(
    data: Bytes,
    needed: Sequence[str],
    reference: FileSplit,
    exact: str | None = None,
    iterator: Steps | None = None,
    *,
    paths: Mapping[str, str] | None = None,
    typed: bool = False,
) -> RawRows:
    """Reads the ``needed`` columns of the lines of a reference; numbers of the column ``exact``
    keep all of their digits. ``iterator``: its matches in a line are rows, else each line is one.
    ``paths``: those of columns with another name. ``typed``: columns as of ``typed_json``.
    """
    start, stop, counted = _lines(data)
    single = _single(needed, typed)
    digits = _digits(single, exact, typed)
    columns = [(paths or {}).get(name, name) for name in single]
    nested, fault = _sound_rows(data, (start, stop), columns, iterator, digits)
    rows = _raw_rows(data, nested, single, reference, iterator)
    if typed:
        rows.table = _read_typed(
            data, (start, stop), nested, rows.table, needed, iterator=iterator or ()
        )
    line = nested.line[rows.number]
    number: Longs = np.cumsum(counted) - counted
    if iterator is None:
        rows.offset = start[line] + reference.start
        rows.text = lambda row: decode(data, start[line[row]], stop[line[row]])
    rows.number = number[line]
    rows.dead += [
        Dead(
            reference.start + int(start[k]),
            _explain(data[start[k] : stop[k]].tobytes(), _FAULTS[int(fault[k])]),
            decode(data, start[k], stop[k]),
        )
        for k in np.flatnonzero(fault).tolist()
    ]
    rows.alone = int(np.count_nonzero(~counted)) + len(line) + len(rows.dead) - len(start)
    return rows


def document_rows(
    data: Bytes,
    needed: Sequence[str],
    reference: FileSplit,
    exact: str | None = None,
    iterator: Steps | None = None,
    *,
    paths: Mapping[str, str] | None = None,
    typed: bool = False,
) -> RawRows:
    """Reads columns of a JSON document, like ``json_rows``. Without an iterator each element of an
    array is a row, and an object is one row. Raises ``FileFault`` for a document that is not JSON.
    """
    begin = len(BOM_UTF8) if data[: len(BOM_UTF8)].tobytes() == BOM_UTF8 else 0
    if iterator is None:
        first = data[begin : begin + _HEAD].tobytes().lstrip()[:1]
        iterator = (EACH,) if first == b"[" else ()
    lines = np.array([begin], np.int64), np.array([len(data)], np.int64)
    single = _single(needed, typed)
    digits = _digits(single, exact, typed)
    columns = [(paths or {}).get(name, name) for name in single]
    nested, fault = _sound_rows(data, lines, columns, iterator, digits)
    if fault.any():
        raise _not_a_document(data[begin:].tobytes(), reference, int(fault[0]))
    rows = _raw_rows(data, nested, single, reference, iterator)
    if typed:
        rows.table = _read_typed(data, lines, nested, rows.table, needed, iterator=iterator)
    return rows


def _single(needed: Sequence[str], typed: bool) -> Sequence[str]:
    """Returns the columns with one value in a row; a table needs a column."""
    return (single_columns(needed) or [""]) if typed else needed


def _digits(names: Sequence[str], exact: str | None, typed: bool) -> list[int | None]:
    """Returns for each column the most characters of a number that is not written as a text."""
    return [0 if typed else _DOUBLE if name == exact else None for name in names]


def _read_typed(
    data: Bytes,
    lines: tuple[Longs, Longs],
    nested: NestedRows,
    table: pl.DataFrame,
    needed: Sequence[str],
    *,
    iterator: Steps,
) -> pl.DataFrame:
    def read(columns: Sequence[str], inner: Steps) -> tuple[NestedRows, pl.DataFrame]:
        rows, _ = _sound_rows(data, lines, columns, inner, [0] * len(columns))
        values, _ = read_by_halves(lambda low, high: _read(rows, low, high), len(rows.line))
        empty = pl.DataFrame(schema=dict.fromkeys(rows.keys, pl.String()))
        return rows, empty if values is None else values

    return typed_table(data, nested, table, needed, outer=iterator, read=read)


def _not_a_document(text: bytes, reference: FileSplit, fault: int) -> FileFault:
    """Returns the error of a document that is not JSON, with its place if Python finds it, too."""
    why, hint = encoding_fault(text) or _FAULTS[fault], ""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        why = f"{error.msg}, line {error.lineno}, column {error.colno}"
        if error.msg == "Extra data":
            hint = "If it has an object on each line, say format=ndjson."
    except (ValueError, RecursionError):
        pass
    return FileFault(f"The file {reference.name} is not a JSON document: {why}.", hint=hint)


def _raw_rows(
    data: Bytes,
    nested: NestedRows,
    needed: Sequence[str],
    reference: FileSplit,
    iterator: Steps | None,
) -> RawRows:
    """Reads the values of rows; each row has the place and the text of its element, and its number
    among all of them.
    """
    table, faults = read_by_halves(lambda low, high: _read(nested, low, high), len(nested.line))
    table = pl.DataFrame(schema=dict.fromkeys(nested.keys, pl.String())) if table is None else table
    table.columns = list(needed)
    at, stop = nested.at, nested.stop

    def place(row: int) -> str:
        return f" (at {nested.place(row)})" if iterator else ""

    kept = np.delete(np.arange(len(at)), list(faults))
    return RawRows(
        table,
        at[kept] + reference.start,
        kept,
        lambda row: decode(data, at[kept[row]], stop[kept[row]]),
        [
            Dead(reference.start + int(at[row]), why + place(row), decode(data, at[row], stop[row]))
            for row, why in faults.items()
        ],
        place=lambda row: place(int(kept[row])),
    )


def _explain(line: bytes, reason: str) -> str:
    """Returns the reason why a line is not a row.

    >>> _explain(b'[{"a": 1}]', NOT_JSON)
    'a JSON array, and NDJSON has an object on each line'
    """
    is_array = reason == NOT_JSON and line.lstrip()[:1] == b"["
    return encoding_fault(line) or (ARRAY if is_array else reason)


def _lines(data: Bytes) -> tuple[Longs, Longs, Bools]:
    """Returns where non-blank lines begin and end, and which of them the driver counts."""
    room = int(np.count_nonzero(data == 10)) + 1
    start, stop = np.empty(room, np.int64), np.empty(room, np.int64)
    counted = np.empty(room, np.bool_)
    count = json_values.cut_lines(data, start, stop, counted)
    return start[:count], stop[:count], counted[:count]


def _sound_rows(
    data: Bytes,
    lines: tuple[Longs, Longs],
    columns: Sequence[str],
    iterator: Steps | None,
    digits: Sequence[int | None],
) -> tuple[NestedRows, Longs]:
    """Returns the rows of the lines that are UTF-8, and the fault of each line."""
    start, stop = lines
    coded = not_utf8(data, start)
    if not coded:
        rows = nested_rows(data, lines, columns, iterator, digits)
        return rows, rows.fault
    sound = np.delete(np.arange(len(start)), coded)
    rows = nested_rows(data, (start[sound], stop[sound]), columns, iterator, digits)
    fault = np.full(len(start), json_values.BROKEN)
    fault[sound] = rows.fault
    return replace(rows, line=sound[rows.line]), fault


def _read(rows: NestedRows, low: int, high: int) -> pl.DataFrame:
    """Reads rows as columns. Raises ``ValueError`` if a value is not a double."""
    text = rows.text[rows.begin[low] : rows.end[high - 1]].tobytes()
    try:
        table = pl.read_ndjson(io.BytesIO(text), schema=dict.fromkeys(rows.keys, pl.String()))
    except pl.exceptions.ComputeError:
        raise ValueError(OUT_OF_RANGE) from None
    assert table.height == high - low, "each row is an object"
    return table
