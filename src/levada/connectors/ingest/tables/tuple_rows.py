"""Reads tuple streams: CSV records, JSON objects and Parquet rows as typed columns with event
times.

A row is dead if it cannot be read (``csv_rows``, ``json_rows``), has no time, or has a value that
the schema's type cannot represent; the others are kept. Text formats are read as text and cast at
once; values that the cast loses do not fit. Blanks around numbers, booleans and times are ignored.

    integer   64 bits                double   also INF, -INF, NaN
    boolean   true, false, 1, 0      string   as it is

``row_event_times`` reads event times. Identities of the values are made elsewhere. Cost: the
readers', then a few passes of Polars.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.lateness import (
    AdmissionBounds,
    Dead,
    ElementFates,
    Late,
    admit,
    leading,
)
from levada.connectors.ingest.tables.csv_rows import RawRows, csv_rows
from levada.connectors.ingest.tables.json_rows import json_rows
from levada.connectors.ingest.tables.message_rows import messages_apart
from levada.connectors.ingest.tables.row_event_times import row_times, seeming_unit, value_shown
from levada.connectors.ingest.tables.unreadable_rows import compute_apart
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.read_split import CsvChunk, JsonChunk
from levada.connectors.sources.splits import FileSplit
from levada.core.event_time import MIN
from levada.core.frozen import frozen
from levada.core.rdf_terms import Kind

Times = npt.NDArray[np.int64]
_POLARS: dict[str, pl.DataType] = {
    "integer": pl.Int64(),
    "double": pl.Float64(),
    "boolean": pl.Boolean(),
}
_KINDS = {
    "integer": Kind.INTEGER,
    "double": Kind.DOUBLE,
    "boolean": Kind.BOOLEAN,
    "string": Kind.STRING,
}
_ARTICLES = {
    "integer": "an integer",
    "double": "a double",
    "boolean": "a boolean",
    "string": "a string",
}
SIGNS = ("+", "-")
_BOOLEANS = {"true": True, "false": False, "1": True, "0": False}


@frozen
class TupleColumn:
    """A column by the facets of ``core.frame``: UNBOUND means no value. ``text``: strings only.

    Integers and booleans have a mantissa, doubles a double; ``facet`` computes the other.
    """

    kind: npt.NDArray[np.uint8]
    dbl: npt.NDArray[np.float64] | None = None
    man: npt.NDArray[np.int64] | None = None
    text: pl.Series | None = None

    def facet(self, name: str) -> npt.NDArray[Any]:
        """Returns the facet k, d, m or c as an array."""
        if name == "k":
            return self.kind
        if name == "c":
            return np.zeros(len(self.kind), np.uint8)
        if name == "m":
            return np.zeros(len(self.kind), np.int64) if self.man is None else self.man
        if self.dbl is not None:
            return self.dbl
        return np.zeros(len(self.kind)) if self.man is None else self.man.astype(np.float64)


@frozen
class Tuples:
    """The ``n`` kept rows of a reference, in order, and the fates of the others (as
    ``connectors.ingest.elements``).
    """

    n: int
    ts: Times
    columns: dict[str, TupleColumn]
    late: Late
    dead: list[Dead]
    cut: int
    passed: int
    max_ts: int
    times: Times
    alone: int = 0
    unit: str = ""
    blank: int = 0
    lead: int = 0


def tuples_of(
    chunk: CsvChunk | JsonChunk | pa.Table,
    config: StreamConfig,
    reference: FileSplit,
    *,
    late_below: int,
    future_above: int,
    messages: Messages | None = None,
) -> Tuples:
    """Returns the tuples of the output of ``connectors.sources.read_split.read_tuples``; the bounds
    are those of ``elements.elements_of``.
    """
    gate = AdmissionBounds.for_split(config, reference, late_below, future_above)
    rows = raw_rows(chunk, config, reference, messages)
    return compute_apart(rows, lambda some: _tuples(some, config, reference, gate))


def _tuples(
    rows: RawRows, config: StreamConfig, reference: FileSplit, gate: AdmissionBounds
) -> Tuples:
    values = {name: cast_column(rows, name, kind) for name, kind in config.schema}
    if config.sign:
        _check_signs(rows, config.sign)
    ts = row_times(rows, rows.table, config, reference, gate=gate)
    read = ts
    if rows.wrong:
        ts = ts.copy()
        ts[np.fromiter(rows.wrong, np.int64, len(rows.wrong))] = MIN
    verdict = admit(ts, gate)
    unit = seeming_unit(
        rows.table, rows.table, read, config, gate.future_above, greatest=verdict.max_ts
    )
    keep = verdict.keep.nonzero()[0]
    late = verdict.late.nonzero()[0]
    return Tuples(
        n=len(keep),
        ts=ts if len(keep) == len(ts) else ts[keep],
        columns={name: _column(values[name], kind, keep) for name, kind in config.schema},
        late=Late(rows.offset[late], ts[late], [rows.text(row) for row in late.tolist()]),
        dead=dead_rows(rows, verdict, gate),
        cut=int(np.count_nonzero(ts > MIN)) - verdict.passed,
        passed=verdict.passed,
        max_ts=verdict.max_ts,
        times=verdict.times,
        alone=rows.alone,
        unit=unit,
        blank=rows.blank,
        lead=int(rows.offset[leading(ts, verdict)].sum()),
    )


def raw_rows(
    chunk: CsvChunk | JsonChunk | pa.Table,
    config: StreamConfig,
    reference: FileSplit,
    messages: Messages | None = None,
) -> RawRows:
    """Returns the columns that the stream reads, unconverted, with their ``messages``."""
    if messages is not None:
        assert isinstance(chunk, CsvChunk | JsonChunk), "messages are texts"
        apart = messages_apart(chunk, messages, config)
        rows = raw_rows(chunk, config, reference)
        return apart.settle(rows, config.beside_columns)
    if isinstance(chunk, pa.Table):
        return _table_rows(chunk, reference)
    needed = list(dict(config.read_columns))
    if config.time_field is not None and config.time_field not in needed:
        needed.append(config.time_field)
    if said := config.beside_columns:
        needed = [name for name in needed if name not in said] or [""]  # a table needs a column
    if isinstance(chunk, CsvChunk):
        return csv_rows(chunk, needed, reference)
    return json_rows(chunk.data, needed, reference, config.time_field)


def dead_rows(rows: RawRows, verdict: ElementFates, gate: AdmissionBounds) -> list[Dead]:
    """Returns the dead letters, by place."""
    future = verdict.future.nonzero()[0].tolist()
    fates = {**rows.wrong, **dict.fromkeys(future, gate.future)}
    return sorted(
        [
            *rows.dead,
            *(Dead(int(rows.offset[row]), why, rows.text(row)) for row, why in fates.items()),
        ]
    )


# -- Parquet --


def _table_rows(table: pa.Table, reference: FileSplit) -> RawRows:
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame), "a table is a frame"
    offset = np.arange(reference.start, reference.start + frame.height, dtype=np.int64)
    return RawRows(
        frame,
        offset,
        offset - reference.start,
        lambda row: _row_text(frame, row),
        [],
    )


def _row_text(frame: pl.DataFrame, row: int) -> str:
    values = {name: value_shown(frame[name], row) for name in frame.columns}
    try:
        return json.dumps(values, default=str)
    except (TypeError, ValueError):  # keys of a map that are not texts
        return str(values)


# -- values and times --


def cast_column(rows: RawRows, name: str, kind: str) -> pl.Series:
    """Casts a column to its type; marks values that do not fit in ``rows.wrong``."""
    values = rows.table.get_column(name).alias("")  # Polars interprets ^a$ as a pattern
    if kind == "string":
        return values.cast(pl.String())
    cast = _as_type(values, kind)
    # a cast that fails adds nulls
    if cast is values or cast.null_count() == values.null_count():
        return cast
    lost = cast.is_null() & values.is_not_null()
    if lost.any() and values.dtype == pl.String():
        values = values.str.strip_chars().replace("", None)
        cast = _as_type(values, kind)
        lost = cast.is_null() & values.is_not_null()
    for row in lost.arg_true().to_list():
        rows.wrong.setdefault(row, f"{name} is not {_ARTICLES[kind]}: {value_shown(values, row)}")
    return cast


def _check_signs(rows: RawRows, name: str) -> None:
    """Marks the rows of a relation without a valid sign."""
    for row in (
        (~rows.table[name].cast(pl.String()).is_in(SIGNS)).fill_null(True).arg_true().to_list()
    ):
        rows.wrong.setdefault(row, f"{name} is neither + nor -: {rows.table[name][row] or 'empty'}")


def _as_type(values: pl.Series, kind: str) -> pl.Series:
    if values.dtype == _POLARS[kind]:
        return values
    if kind == "boolean" and values.dtype == pl.String():
        return values.str.to_lowercase().replace_strict(
            _BOOLEANS, default=None, return_dtype=pl.Boolean()
        )
    return values.cast(_POLARS[kind], strict=False)


def _column(values: pl.Series, kind: str, keep: Times) -> TupleColumn:
    """Returns the facets of the kept rows."""
    values = values if len(keep) == len(values) else values.gather(keep)
    kinds = np.full(len(keep), _KINDS[kind], np.uint8)
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
                kinds,
                man=values.cast(pl.Int64()).to_numpy() if kind == "boolean" else values.to_numpy(),
            )
