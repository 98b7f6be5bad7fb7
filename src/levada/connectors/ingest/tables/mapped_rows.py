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

import urllib.parse
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from levada.connectors.config.mapping_formula import column_of, compile_
from levada.connectors.config.row_mapping import ROW, Part, RowMapping
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.elements import Elements
from levada.connectors.ingest.lateness import AdmissionBounds, Dead, Late, admit, leading
from levada.connectors.ingest.parse.ntriples import Triples, parse
from levada.connectors.ingest.tables.csv_rows import RawRows
from levada.connectors.ingest.tables.row_event_times import row_times, seeming_unit
from levada.connectors.ingest.tables.tuple_rows import cast_column, dead_rows, raw_rows
from levada.connectors.ingest.tables.unreadable_rows import compute_apart
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.read_split import CsvChunk, JsonChunk
from levada.connectors.sources.splits import FileSplit
from levada.core.event_time import MIN, distinct
from levada.core.rdf_terms import XSD
from levada.core.text_columns import join_lines

Times = npt.NDArray[np.int64]
_UNSAFE = r"[^A-Za-z0-9._~-]"
_ESCAPED = r'["\\\n\r]'
_NO_IRI = r"[\x00-\x20<>]"  # characters that could end an IRI, or its line


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
    texts = frame[keep].select(text=_text(config.mapping))["text"]
    triples = parse(
        join_lines(texts), quads=False, timed=False, seed=seed, document=reference.document
    )
    ends = np.cumsum(texts.str.len_bytes().to_numpy().astype(np.int64))
    row = np.searchsorted(ends, triples.line, "right")
    times = ts[keep][row]
    dead = dead_rows(rows, verdict, gate)
    alone = rows.alone + len(triples.bad)
    for at, reason, text in triples.bad:
        source = int(keep[np.searchsorted(ends, at, "right")])
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
    columns = (rows.table[name] for name in mapping.needed_columns)
    suspects = (column for column in columns if column.null_count() >= len(keep) > 0)
    return tuple(c.name for c in suspects if c.gather(keep).null_count() == len(keep))


def _columns(rows: RawRows, mapping: RowMapping, reference: FileSplit) -> pl.DataFrame:
    """Returns the typed columns, the number of each record in the stream, and the formulas."""
    made = {name: cast_column(rows, name, kind) for name, kind in mapping.needed_columns.items()}
    number = pl.Series(rows.number + reference.row, dtype=pl.Int64)
    frame = pl.DataFrame({**made, ROW: number})
    for name, expression in _formulas(mapping):
        frame = frame.with_columns(expression.alias(name))
    return frame


@lru_cache(maxsize=16)
def _formulas(mapping: RowMapping) -> tuple[tuple[str, pl.Expr], ...]:
    types = {**mapping.needed_columns, ROW: "integer"}
    expressions = []
    for name, formula in mapping.let:
        expression, types[name] = compile_(formula, types)
        expressions.append((name, expression))
    return tuple(expressions)


@lru_cache(maxsize=16)
def _text(mapping: RowMapping) -> pl.Expr:
    """Returns the lines of a row; a triple with a missing value has none."""
    types = mapping.types()
    lines = []
    for s, p, o in mapping.triples:
        parts = [*s, Part(" "), *p, Part(" "), *o, Part(" .\n")]
        pieces = (piece for part in parts for piece in _pieces(part, types.get(part.text, "")))
        lines.append(pl.concat_str(*_merge_texts(pieces)))
    return pl.concat_str(*lines, ignore_nulls=True)


def _merge_texts(pieces: Iterable[str | pl.Expr]) -> Iterator[pl.Expr]:
    """Yields the pieces of a line, neighbouring texts as one: a concatenation costs by piece."""
    for is_text, group in groupby(pieces, lambda piece: isinstance(piece, str)):
        if is_text:
            yield pl.lit("".join(map(str, group)))
        else:
            yield from (piece for piece in group if isinstance(piece, pl.Expr))


def _pieces(part: Part, kind: str) -> Iterator[str | pl.Expr]:
    """Yields the pieces of a part: texts and values."""
    if part.how == "text":
        yield part.text
    elif part.how == "value":
        yield from ('"', _value(part, kind), '"' if kind == "string" else f'"^^<{XSD}{kind}>')
    else:
        yield _value(part, kind)


def _value(part: Part, kind: str) -> pl.Expr:
    """Returns a value as its place writes it."""
    value = _lexical(part.text, kind)
    if kind in ("integer", "boolean") and part.how != "blank":
        return value  # nothing in it is escaped
    match part.how:
        # a blank keeps the IRI malformed, so that a value cannot inject triples
        case "whole":
            return value.str.replace_all(_NO_IRI, " ")
        case "iri":
            return _map_(value, _UNSAFE, lambda text: urllib.parse.quote(text, safe=""))
        case "blank":
            return _map_(value, "[^A-Za-z0-9]", lambda text: "_" + text.encode().hex())
        case _:
            return _escape(value) if kind == "string" else value


def _lexical(name: str, kind: str) -> pl.Expr:
    """Returns a value's text: that of a string, else its XSD form, doubles as in tuples (2, not
    2.0).
    """
    value = column_of(name)
    if kind != "double":
        return value.cast(pl.String)
    special = {"inf": "INF", "-inf": "-INF"}
    return value.cast(pl.String).str.strip_suffix(".0").replace(special)


def _escape(value: pl.Expr) -> pl.Expr:
    def escape_all(series: pl.Series) -> pl.Series:
        if not series.str.contains(_ESCAPED).any():
            return series
        for raw, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r")):
            series = series.str.replace_all(raw, escape, literal=True)
        return series

    return value.map_batches(escape_all, return_dtype=pl.String)


def _map_(value: pl.Expr, odd: str, convert: object) -> pl.Expr:
    """Converts texts with odd characters, each distinct one by Python; returns the others
    unchanged.
    """

    def convert_all(series: pl.Series) -> pl.Series:
        marked = series.str.contains(odd).fill_null(False)
        if not marked.any():
            return series
        distinct = series.filter(marked).unique()
        texts = [convert(text) for text in distinct.to_list()]  # type: ignore[operator]
        made = pl.Series(texts, dtype=pl.String)
        return series.replace(distinct, made)

    return value.map_batches(convert_all, return_dtype=pl.String)
