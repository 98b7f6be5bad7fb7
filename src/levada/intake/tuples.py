"""Tuple streams: CSV records and Parquet rows as typed columns with event times.

A CSV record is dead if it has another number of fields than the header, breaks the rules of quotes (RFC 4180), is no UTF-8,
has no time, or has a value that the schema's type cannot hold; the others go on. Everything is read as text and cast at
once; what the cast loses is what does not fit. An empty field is no value (unbound), a quoted empty string is one. Blanks
around numbers, booleans and times do not matter.

    integer   64 bits     double   also INF, -INF, NaN     boolean   true, false, 1, 0     string   as it is

An event time is an integer in the stream's unit or a dateTime (without zone: UTC), in Parquet also a timestamp or date.
Identities of the values are made elsewhere. Cost: a kernel's pass for the records, then pyarrow's and Polars' readers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv

from levada.config import StreamConfig
from levada.intake.admission import FUTURE, NO_TIME, WRONG_TIME, Dead, Gate, Late, Verdict, admit, file_time
from levada.kernels.instants import instants
from levada.kernels.lines import OPEN_QUOTE, SOUND, STRAY_QUOTE, STRAY_RETURN, scan_records
from levada.model.term import Kind
from levada.model.time import MAX, MIN
from levada.sources.read import CsvChunk
from levada.sources.reference import Reference

Bytes = npt.NDArray[np.uint8]
Times = npt.NDArray[np.int64]
_POLARS: dict[str, pl.DataType] = {"integer": pl.Int64(), "double": pl.Float64(), "boolean": pl.Boolean()}
_KINDS = {"integer": Kind.INTEGER, "double": Kind.DOUBLE, "boolean": Kind.BOOLEAN, "string": Kind.STRING}
_ARTICLES = {"integer": "an integer", "double": "a double", "boolean": "a boolean", "string": "a string"}
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
_FAULTS = {
    STRAY_QUOTE: "a quote inside a field",
    OPEN_QUOTE: "a quote that is never closed",
    STRAY_RETURN: "a carriage return inside a field",
}


@dataclass(frozen=True, slots=True)
class TupleColumn:
    """The values of a column by the facets of ``model.frame``: kind UNBOUND is no value. ``text``: strings only.

    Integers and booleans have a mantissa, doubles a double; ``facet`` works out the other.
    """

    kind: npt.NDArray[np.uint8]
    dbl: npt.NDArray[np.float64] | None = None
    man: npt.NDArray[np.int64] | None = None
    text: pl.Series | None = None

    def facet(self, name: str) -> npt.NDArray[Any]:
        """The facet k, d, m or c as an array."""
        if name == "k":
            return self.kind
        if name == "c":
            return np.zeros(len(self.kind), np.uint8)
        if name == "m":
            return np.zeros(len(self.kind), np.int64) if self.man is None else self.man
        if self.dbl is not None:
            return self.dbl
        return np.zeros(len(self.kind)) if self.man is None else self.man.astype(np.float64)


@dataclass(frozen=True, slots=True)
class Tuples:
    """The ``n`` rows of a reference that go on, in order, and what became of the others (as ``intake.elements``)."""

    n: int
    ts: Times
    columns: dict[str, TupleColumn]
    late: Late
    dead: list[Dead]
    cut: int
    passed: int
    max_ts: int
    times: Times


@dataclass(slots=True)
class _Rows:
    """Rows that have the right shape: their columns, where each stands, its text, and what is wrong with some."""

    table: pl.DataFrame
    offset: Times
    text: Callable[[int], str]
    dead: list[Dead]
    wrong: dict[int, str] = field(default_factory=dict)


def tuples_of(
    chunk: CsvChunk | pa.Table, config: StreamConfig, reference: Reference, *, late_below: int, future_above: int
) -> Tuples:
    """The tuples of what ``sources.read.read_tuples`` read; the bounds are those of ``elements.elements_of``."""
    rows = _csv_rows(chunk, config, reference) if isinstance(chunk, CsvChunk) else _table_rows(chunk, reference)
    values = {name: _cast(rows, name, kind) for name, kind in config.schema}
    ts = _times(rows, config, reference)
    if rows.wrong:
        ts = ts.copy()
        ts[np.fromiter(rows.wrong, np.int64, len(rows.wrong))] = MIN
    verdict = admit(ts, Gate.of(config, reference, late_below, future_above))
    keep = np.flatnonzero(verdict.keep)
    late = np.flatnonzero(verdict.late)
    return Tuples(
        n=len(keep),
        ts=ts if len(keep) == len(ts) else ts[keep],
        columns={name: _column(values[name], kind, keep) for name, kind in config.schema},
        late=Late(rows.offset[late], ts[late], [rows.text(row) for row in late.tolist()]),
        dead=_dead(rows, verdict),
        cut=int(np.count_nonzero(ts > MIN)) - verdict.passed,
        passed=verdict.passed,
        max_ts=verdict.max_ts,
        times=verdict.times,
    )


def _dead(rows: _Rows, verdict: Verdict) -> list[Dead]:
    fates = {**rows.wrong, **dict.fromkeys(np.flatnonzero(verdict.future).tolist(), FUTURE)}
    return sorted([*rows.dead, *(Dead(int(rows.offset[row]), why, rows.text(row)) for row, why in fates.items())])


# -- CSV: bytes -> records -> text columns --


def _csv_rows(chunk: CsvChunk, config: StreamConfig, reference: Reference) -> _Rows:
    data = chunk.data
    most = int(np.count_nonzero(data == 10)) + 1
    start, stop, fields = (np.empty(most, np.int64) for _ in range(3))
    fault = np.empty(most, np.uint8)
    n = scan_records(data, start, stop, fields, fault)
    start, stop, fields, fault = start[:n], stop[:n], fields[:n], fault[:n]
    coded = _not_utf8(data, start)
    sound = (fault == SOUND) & (fields == len(chunk.columns))
    sound[coded] = False
    dead = []
    for row in np.flatnonzero(~sound).tolist():
        count = f"{fields[row]} fields where the header has {len(chunk.columns)}"
        reason = "not UTF-8" if row in coded else _FAULTS.get(int(fault[row]), count)
        dead.append(Dead(reference.start + int(start[row]), reason, _decoded(data, start[row], stop[row])))
    at = np.flatnonzero(sound)
    table = _text_table(_without(data, start, stop, sound) if dead else data, chunk.columns, config, len(at))
    assert table.height == len(at), "both readers see the same records"
    return _Rows(table, start[at] + reference.start, lambda row: _decoded(data, start[at[row]], stop[at[row]]), dead)


def _decoded(data: Bytes, start: int, stop: int) -> str:
    return data[start:stop].tobytes().decode("utf-8", "replace")


def _not_utf8(data: Bytes, start: Times) -> list[int]:
    """The records with bytes that are no UTF-8; one decode of the rest for each."""
    found: list[int] = []
    if not len(data) or data.max() < 128:
        return found
    raw, at = data.tobytes(), 0
    while True:
        try:
            raw[at:].decode()
            return found
        except UnicodeDecodeError as error:
            row = int(np.searchsorted(start, at + error.start, "right")) - 1
            found.append(row)
            at = int(start[row + 1]) if row + 1 < len(start) else len(raw)


def _without(data: Bytes, start: Times, stop: Times, sound: npt.NDArray[np.bool_]) -> Bytes:
    """The text without the records that are not sound."""
    parts = []
    at = 0
    for row in np.flatnonzero(~sound).tolist():
        parts.append(data[at : start[row]])
        at = int(stop[row])
    return np.concatenate([*parts, data[at:]])


def _text_table(data: Bytes, columns: tuple[str, ...], config: StreamConfig, records: int) -> pl.DataFrame:
    """The needed columns as strings; null is an empty field."""
    needed = list(dict.fromkeys([*(name for name, _ in config.schema), *_time_field(config)]))
    if not records:
        return pl.DataFrame({name: [] for name in needed}, schema=dict.fromkeys(needed, pl.String()))
    table = pacsv.read_csv(
        pa.BufferReader(pa.py_buffer(data)),
        pacsv.ReadOptions(column_names=_distinct(columns), use_threads=False, block_size=len(data) + 1),
        pacsv.ParseOptions(newlines_in_values=True),
        pacsv.ConvertOptions(
            column_types=dict.fromkeys(needed, pa.string()),
            include_columns=needed,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame), "a table is a frame"
    return frame


def _distinct(columns: tuple[str, ...]) -> list[str]:
    """Column names with repeated ones (which nobody asked for) told apart."""
    return [name if columns.index(name) == i else f"{name}\0{i}" for i, name in enumerate(columns)]


def _time_field(config: StreamConfig) -> list[str]:
    return [config.time_argument] if config.time_kind == "field" else []


# -- Parquet --


def _table_rows(table: pa.Table, reference: Reference) -> _Rows:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame), "a table is a frame"
    offset = np.arange(reference.start, reference.start + frame.height, dtype=np.int64)
    return _Rows(frame, offset, lambda row: json.dumps(frame.row(row, named=True), default=str), [])


# -- values and times --


def _cast(rows: _Rows, name: str, kind: str) -> pl.Series:
    """The column as its type; values that do not fit are marked in ``rows.wrong``."""
    values = rows.table[name]
    if kind == "string":
        return values.cast(pl.String())
    cast = _as_type(values, kind)
    lost = cast.is_null() & values.is_not_null()
    if lost.any() and values.dtype == pl.String():
        values = values.str.strip_chars().replace("", None)
        cast = _as_type(values, kind)
        lost = cast.is_null() & values.is_not_null()
    for row in lost.arg_true().to_list():
        rows.wrong.setdefault(row, f"{name} is not {_ARTICLES[kind]}: {values[row]}")
    return cast


def _as_type(values: pl.Series, kind: str) -> pl.Series:
    if values.dtype == _POLARS[kind]:
        return values
    if kind == "boolean" and values.dtype == pl.String():
        return values.str.to_lowercase().replace_strict(_BOOLEANS, default=None, return_dtype=pl.Boolean())
    return values.cast(_POLARS[kind], strict=False)


def _times(rows: _Rows, config: StreamConfig, reference: Reference) -> Times:
    """The event time of each row; a row without one is marked in ``rows.wrong``."""
    if config.time_kind == "filename":
        ts = np.full(rows.table.height, file_time(config, reference.name), np.int64)
        empty = np.ones(rows.table.height, np.bool_)
    else:
        values = rows.table[config.time_argument]
        ts = _field_times(values, config.unit_ms)
        empty = values.is_null().to_numpy()
    for row in np.flatnonzero(ts == MIN).tolist():
        rows.wrong.setdefault(row, NO_TIME if empty[row] else f"{WRONG_TIME}: {rows.table[config.time_argument][row]}")
    return ts


def _field_times(values: pl.Series, unit: int) -> Times:
    if values.dtype.is_integer():
        ms = values.cast(pl.Int64(), strict=False).fill_null(MIN).to_numpy()
        if unit == 1 and len(ms) and ms.min() > MIN and ms.max() < MAX:
            return ms
        return np.where((ms > MIN // unit) & (ms < MAX // unit), ms * unit, MIN)
    if values.dtype.is_temporal():
        return values.dt.epoch("ms").fill_null(MIN).to_numpy().copy()
    text = values.cast(pl.String()).str.strip_chars().fill_null("").to_arrow().cast(pa.large_string())
    _, edges, data = text.buffers()
    edge = np.frombuffer(edges, np.int64)[text.offset : text.offset + len(text) + 1]
    buffer = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    return instants(buffer, edge[:-1], np.diff(edge), unit)


def _column(values: pl.Series, kind: str, keep: Times) -> TupleColumn:
    """The facets of the kept rows."""
    values = values if len(keep) == len(values) else values.gather(keep)
    kinds = np.full(len(values), _KINDS[kind], np.uint8)
    if values.null_count():
        kinds[values.is_null().to_numpy()] = Kind.UNBOUND
        values = values if kind == "string" else values.fill_null(False if kind == "boolean" else 0)
    match kind:
        case "string":
            return TupleColumn(kinds, text=values)
        case "double":
            return TupleColumn(kinds, dbl=values.to_numpy())
        case _:
            return TupleColumn(
                kinds, man=values.cast(pl.Int64()).to_numpy() if kind == "boolean" else values.to_numpy()
            )
