"""Converts rows of tables to RDF elements, by a mapping file
(``levada.connectors.config.row_mapping``): CSV, JSON or Parquet in, triples as columns out.

    records --readers--> text columns --types, formulas--> columns --templates--> N-Triples text
    --ingest.parse--> triples

A row is one element with one time. Its fate (cut, late, future, kept) is decided before its triples
are written. A row that cannot be read or has no time is dead with its record's place and text. A
triple that a value makes ill-formed (an IRI with a blank in it) is dead alone. Cost: a few string
operations of Polars a triple and row, then the N-Triples kernel.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from levada.connectors.config.mapping_formula import compile_
from levada.connectors.config.row_mapping import ROW, RowMapping
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.elements import Elements
from levada.connectors.ingest.lateness import AdmissionBounds, Dead, Late, admit, leading
from levada.connectors.ingest.parse.ntriples import Triples, parse
from levada.connectors.ingest.rml.table_joins import with_joins
from levada.connectors.ingest.tables.csv_rows import RawRows
from levada.connectors.ingest.tables.row_event_times import row_times, seeming_unit
from levada.connectors.ingest.tables.row_terms import (
    ROW_NUMBER,
    reference_of,
    row_lines,
    with_formulas,
)
from levada.connectors.ingest.tables.tuple_rows import cast_column, dead_rows, raw_rows
from levada.connectors.ingest.tables.unreadable_rows import compute_apart
from levada.connectors.ingest.tables.value_kinds import with_kinds, without_nulls
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.read_split import CsvChunk, JsonChunk
from levada.connectors.sources.splits import FileSplit
from levada.core.event_time import MIN, distinct
from levada.core.text_columns import join_lines

Times = npt.NDArray[np.int64]


def mapped_of(
    chunk: CsvChunk | JsonChunk | pa.Table,
    config: StreamConfig,
    reference: FileSplit,
    *,
    late_below: int,
    future_above: int,
    seed: int,
    messages: Messages | None = None,
) -> tuple[Triples, Elements]:
    """Returns the triples and elements of the output of
    ``connectors.sources.read_split.read_tuples``; the bounds are those of ``elements.elements_of``.
    """
    gate = AdmissionBounds.for_split(config, reference, late_below, future_above)
    rows = raw_rows(chunk, config, reference, messages)
    return compute_apart(rows, lambda some: _map_rows(some, config, reference, gate, seed))


def _map_rows(
    rows: RawRows, config: StreamConfig, reference: FileSplit, gate: AdmissionBounds, seed: int
) -> tuple[Triples, Elements]:
    assert config.mapping is not None, "the stream has a mapping"
    frame = _columns(rows, config.mapping, reference)
    ts = row_times(rows, frame, config, reference, gate=gate)
    read = ts
    if rows.wrong:
        ts = ts.copy()
        ts[np.fromiter(rows.wrong, np.int64, len(rows.wrong))] = MIN
    verdict = admit(ts, gate)
    unit = seeming_unit(frame, rows.table, read, config, gate.future_above, greatest=verdict.max_ts)
    keep, late = np.flatnonzero(verdict.keep), np.flatnonzero(verdict.late)
    texts, faults = row_lines(frame[keep], config.mapping)
    if config.mapping.joins:
        texts = with_joins(texts, frame[keep], config.mapping.joins)
    triples = parse(
        join_lines(texts),
        quads=config.mapping.has_graphs,
        timed=False,
        seed=seed,
        document=reference.document,
    )
    ends = np.cumsum(texts.str.len_bytes().to_numpy().astype(np.int64))
    row = np.searchsorted(ends, triples.line, "right")
    times = ts[keep][row]
    dead = dead_rows(rows, verdict, gate)
    alone = rows.alone + len(triples.bad) + len(faults)
    malformed = [
        (int(np.searchsorted(ends, at, "right")), why, text) for at, why, text in triples.bad
    ]
    for at, reason, text in [*malformed, *faults]:
        source = int(keep[at])
        why = f"its triple is malformed: {reason}{rows.place(source)}"
        dead.append(Dead(int(rows.offset[source]), why, text))
    return triples, Elements(
        keep=np.ones(triples.n, np.bool_),
        ts=times,
        element=row.astype(np.int32),
        late=Late(rows.offset[late], ts[late], [rows.text(r) for r in late.tolist()]),
        dead=sorted(dead),
        elements=len(keep),
        triples=triples.n,
        cut=int(np.count_nonzero(ts > MIN)) - verdict.passed,
        passed=verdict.passed,
        max_ts=verdict.max_ts,
        times=distinct(times),  # a row without a triple does not count in a window
        alone=alone,
        unit=unit,
        blank=rows.blank,
        lead=int(rows.offset[leading(ts, verdict)].sum()),
        empty_columns=_empty_columns(rows, config.mapping, keep),
    )


def _empty_columns(rows: RawRows, mapping: RowMapping, keep: Times) -> tuple[str, ...]:
    """Returns the columns without a value in any of the kept rows."""
    columns = (_without_lists(rows.table[name]) for name in mapping.needed_columns)
    suspects = (column for column in columns if column.null_count() >= len(keep) > 0)
    empty = (c.name for c in suspects if c.gather(keep).null_count() == len(keep))
    return tuple(map(reference_of, empty) if mapping.is_rml else empty)


def _without_lists(column: pl.Series) -> pl.Series:
    """Returns a column with the first value of each list."""
    if not isinstance(column.dtype, pl.List):
        return column
    return column.list.drop_nulls().list.first()


def _columns(rows: RawRows, mapping: RowMapping, reference: FileSplit) -> pl.DataFrame:
    """Returns the typed columns, the number of each record in the stream, and the formulas."""
    if mapping.is_rml:
        return _rml_columns(rows, mapping, reference)
    made = {name: cast_column(rows, name, kind) for name, kind in mapping.needed_columns.items()}
    number = pl.Series(rows.number + reference.row, dtype=pl.Int64)
    frame = pl.DataFrame({**made, ROW: number})
    for name, expression in _formulas(mapping):
        frame = frame.with_columns(expression.alias(name))
    return frame


def _rml_columns(rows: RawRows, mapping: RowMapping, reference: FileSplit) -> pl.DataFrame:
    """Returns the columns of texts, the kinds of their values, and a number of each row."""
    table = with_kinds(rows.table, mapping.needed_columns)
    is_csv = reference.format == "csv"
    table = without_nulls(table, mapping.needed_columns, mapping.nulls, is_csv=is_csv)
    table = with_formulas(table, mapping.let) if mapping.let else table
    at = pl.Series(rows.offset).cast(pl.String)  # several rows of a message have one place
    number = at + "x" + pl.Series(np.arange(table.height)).cast(pl.String)
    return table.with_columns(number.alias(ROW_NUMBER))


@lru_cache(maxsize=16)
def _formulas(mapping: RowMapping) -> tuple[tuple[str, pl.Expr], ...]:
    types = {**mapping.needed_columns, ROW: "integer"}
    expressions = []
    for name, formula in mapping.let:
        expression, types[name] = compile_(formula, types)
        expressions.append((name, expression))
    return tuple(expressions)
