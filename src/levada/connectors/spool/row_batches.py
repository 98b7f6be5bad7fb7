"""Converts the data of Python users into batches of a spool: frames, RDF graphs, rows.

    a frame (whatever exports Arrow)     tuples; with ``columns`` statements
    an RDF graph (RDFLib's)              its triples
    an iterable                          statements (s, p, o, ts); N-Triples or N-Quads lines with
                                         their times; (graph, time); with a schema tuples, as
                                         mappings or sequences

A term is an N-Triples text, a term of RDFLib, or a non-text value of Python or of a frame's column,
which represents its literal. Cost: a few operations of Arrow and Polars a column; one loop over the
values of rows that are Python objects, only here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from typing import Any, Protocol, runtime_checkable

import polars as pl
import pyarrow as pa

from levada.connectors.config.json_path import struct_fields
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.spool.row_lines import statement_lines
from levada.core.frozen import frozen
from levada.core.rdf_terms import XSD
from levada.errors import UsageError, near

CHUNK = 10_000  # the rows of a batch from an iterable
STATEMENT = ("s", "p", "o", "ts")
_TYPES = {
    "integer": pl.Int64(),
    "double": pl.Float64(),
    "string": pl.String(),
    "boolean": pl.Boolean(),
}
_TIMES = (pl.String, pl.Categorical, pl.Enum, pl.Datetime, pl.Date, pl.Null)
_INDEX = re.compile(r"__index_level_\d+__")


@runtime_checkable
class ArrowFrame(Protocol):
    """A table that exports itself to Arrow: of Polars, pandas, PyArrow, DuckDB, ..."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule interface."""


@runtime_checkable
class RdfGraph(Protocol):
    """An RDFLib graph."""

    def triples(self, triple: tuple[None, None, None], /) -> Iterable[object]:
        """Returns the triples that match."""

    def serialize(self, destination: None = None, format: str = "nt") -> str:
        """Returns its triples as a text."""


Row = Sequence[object] | Mapping[str, object] | str
Rows = ArrowFrame | RdfGraph | Iterable[Row]


@frozen
class Shape:
    """The shape of a stream's rows: statements of ``columns`` (the last is the time), or tuples."""

    config: StreamConfig
    columns: tuple[str, ...] = ()

    @property
    def _types(self) -> dict[str, pl.DataType | None]:
        """Returns the columns of tuples; the time's has any type unless the schema declares one."""
        types: dict[str, pl.DataType | None] = {
            name: _TYPES[kind] if self.config.mapping is None else None
            for name, kind in self.config.read_columns
        }
        if self.config.time_field is not None:
            types.setdefault(self.config.time_field, None)
        return types

    def batches(self, rows: Rows, most: int | None = CHUNK) -> Iterator[pl.DataFrame | pl.Series]:
        """Yields the rows as batches: frames of tuples, lines of statements; with at most ``most``
        rows of an iterable. Raises ``UsageError``.
        """
        if isinstance(rows, RdfGraph):
            lines = graph_lines(rows)
            yield _by_subject(lines) if self.config.element == "subject" else lines
        elif isinstance(rows, ArrowFrame):
            yield self._of_frame(frame_of(rows))
        else:
            taken = iter(rows)
            while chunk := list(islice(taken, most)):
                yield self.build_batch(chunk)

    def _of_frame(self, frame: pl.DataFrame) -> pl.DataFrame | pl.Series:
        wanted = self.columns or tuple(self._types)
        for name in wanted:
            if name not in frame.columns and (nested := _field(frame, name)) is not None:
                frame = frame.with_columns(nested.alias(name))
            if name not in frame.columns:
                raise UsageError(
                    f"The frame of the stream {self.config.name} has no column {name}.",
                    hint=near(name, frame.columns),
                )
        time = self.columns[-1] if self.columns else self.config.time_field
        if time is not None:
            self._check_time(frame[time].dtype)
            if frame[time].dtype.is_numeric() or frame[time].dtype.is_temporal():
                frame = frame.sort(time, maintain_order=True, nulls_last=True)
        if self.columns:
            return statement_lines(with_terms(frame, self.columns[:-1]), self.columns)
        return frame.select(
            pl.col(name) if kind is None else pl.col(name).cast(kind)
            for name, kind in self._types.items()
        )

    def build_batch(self, rows: Sequence[Row]) -> pl.DataFrame | pl.Series:
        """Returns a batch of rows that are Python objects. Raises ``UsageError``."""
        if self.columns:
            return pl.concat(
                [
                    pl.Series("line", [], pl.String),
                    *(self._lines(part) for part in _group_alike(rows)),
                ]
            )
        names = list(self._types)
        columns: dict[str, Any] = {
            name: self._values(rows, i, name) for i, name in enumerate(names)
        }
        time = self.config.time_field
        if time is not None and self._types[time] is None:
            columns[time] = _times(columns[time])
            self._check_time(columns[time].dtype)
        try:
            return pl.DataFrame([pl.Series(n, columns[n], kind) for n, kind in self._types.items()])
        except (TypeError, OverflowError, pl.exceptions.PolarsError) as error:
            raise self._wrong(str(error).partition("\n")[0]) from error

    def _check_time(self, kind: pl.DataType) -> None:
        if not kind.is_numeric() and not isinstance(kind, _TIMES):
            raise self._wrong(f"{kind} is no event time")

    def _values(self, rows: Sequence[Row], i: int, name: str) -> list[object]:
        width = len(self._types)
        try:
            return [
                _member(row, name) if isinstance(row, Mapping) else _check_width(row, width)[i]
                for row in rows
            ]
        except (ValueError, TypeError) as error:
            raise self._wrong(str(error)) from error

    def _lines(self, rows: Sequence[Row]) -> pl.Series:
        """Returns the lines of rows that are all lines, all graphs with their times, or all
        statements.
        """
        first = rows[0]
        if isinstance(first, str):
            return pl.Series("line", [f"{str(row).strip(chr(10) + chr(13))}\n" for row in rows])
        if len(first) == 2 and not isinstance(first, Mapping) and isinstance(first[0], RdfGraph):
            return pl.concat([_triples_at(row[0], row[1]) for row in rows])  # type: ignore[arg-type, index]
        width = len(self.columns)
        try:
            cells = [
                [row.get(name) for name in self.columns]
                if isinstance(row, Mapping)
                else _check_width(row, width)
                for row in rows
            ]
        except (ValueError, TypeError) as error:
            raise self._wrong(str(error)) from error
        terms = [
            pl.Series(name, [term_text(row[i]) for row in cells], pl.String)
            for i, name in enumerate(self.columns[:-1])
        ]
        times = pl.Series(self.columns[-1], [time_text(row[-1]) for row in cells], pl.String)
        return statement_lines(pl.DataFrame([*terms, times]), self.columns).alias("line")

    def _wrong(self, what: str) -> UsageError:
        said = ", ".join(self.columns or self._types)
        return UsageError(
            f"A row of the stream {self.config.name} does not fit: {what}.",
            hint=f"A row has {said}.",
        )


def _field(frame: pl.DataFrame, name: str) -> pl.Series | None:
    """Returns the field of structs that a column is a path to; None if there is none."""
    first, *inner = struct_fields(name) or ("",)
    column: pl.Series | None = frame.get_column(first, default=None)
    for each in inner:
        if column is None or not isinstance(column.dtype, pl.Struct):
            return None
        names = [field.name for field in column.dtype.fields]
        column = column.struct.field(each) if each in names else None
    return column


def _member(row: Mapping[str, object], name: str) -> object:
    """Returns the value of a mapping, or of the mappings in it that a column is a path to."""
    if row.get(name) is not None:
        return row[name]
    value: object = row
    for each in struct_fields(name) or (name,):
        value = value.get(each) if isinstance(value, Mapping) else None
    return value


def _times(values: Sequence[object]) -> pl.Series:
    """Returns event times of any types; as texts if these differ."""
    try:
        return pl.Series(values)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series([time_text(value) for value in values], dtype=pl.String)


def frame_of(rows: ArrowFrame) -> pl.DataFrame:
    """Returns a frame of an object that exports Arrow; an index of pandas is a column if it has a
    name.

    >>> frame_of(pl.DataFrame({"a": [1]})).rows()
    [(1,)]
    """
    frame = pl.from_arrow(pa.table(rows))
    assert isinstance(frame, pl.DataFrame), "a table is a frame"
    return frame.drop([name for name in frame.columns if _INDEX.fullmatch(name)])


def schema_of(frame: pl.DataFrame) -> dict[str, str]:
    """Returns the columns of a frame that tuples can have, with the words of their types.

    >>> schema_of(pl.DataFrame({"k": [1], "at": [datetime(2024, 1, 1)]}))
    {'k': 'integer'}
    """
    schema = {}
    for name, kind in frame.schema.items():
        if kind.is_integer():
            schema[name] = "integer"
        elif kind.is_numeric():
            schema[name] = "double"
        elif kind == pl.Boolean:
            schema[name] = "boolean"
        elif kind in (pl.String, pl.Categorical, pl.Enum):
            schema[name] = "string"
    return schema


def graph_lines(graph: RdfGraph) -> pl.Series:
    """Returns the triples of an RDF graph as lines, grouped by subject."""
    lines = [line for line in graph.serialize(format="nt").split("\n") if line.strip()]
    return pl.Series("line", [f"{line}\n" for line in sorted(lines)], pl.String)


def _by_subject(lines: pl.Series) -> pl.Series:
    """Orders lines by subject, each with the lines of the blank nodes that it reaches."""
    # imported here: few programs push graphs
    from levada.connectors.ingest.parse.ntriples import parse
    from levada.connectors.ingest.subject_descriptions import describe_subjects

    triples = parse("".join(lines).encode(), quads=False, timed=False, seed=0, document=0)
    by_element, _ = describe_subjects(triples)
    if by_element.bad:
        return lines
    starts = lines.str.len_bytes().cast(pl.Int64).cum_sum().shift(fill_value=0)
    return lines.gather(starts.search_sorted(pl.Series(by_element.line)))


def _triples_at(graph: RdfGraph, time: object) -> pl.Series:
    """Returns the triples of a graph, all at one time."""
    text = str(time_text(time))
    said = text if text.startswith('"') else f'"{text}"'
    return graph_lines(graph).str.replace(r"\s*\.\s*$", f" {said} .\n")


def _check_width(row: Row, width: int) -> Sequence[object]:
    if isinstance(row, (str, Mapping)) or len(row) != width:
        raise ValueError(f"{row!r} has not {width} values")
    return row


def _group_alike(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Yields neighbours of one kind: lines, graphs, or statements."""
    start = 0
    for i in range(1, len(rows) + 1):
        if i == len(rows) or _kind(rows[i]) != _kind(rows[start]):
            yield rows[start:i]
            start = i


def _kind(row: Row) -> tuple[bool, bool]:
    return isinstance(row, str), not isinstance(row, (str, Mapping)) and len(row) == 2


def term_text(value: object) -> str | None:
    """Returns a term as an N-Triples text.

    >>> term_text(5), term_text("<http://e/a>"), term_text(None)
    ('"5"^^<http://www.w3.org/2001/XMLSchema#integer>', '<http://e/a>', None)
    """
    n3: Callable[[], str] | None = getattr(value, "n3", None)
    if value is None:
        return None
    if n3 is not None:
        return _n_triples(value)
    if isinstance(value, str):
        return value
    for kind, name, text in _LITERALS:
        if isinstance(value, kind):
            return f'"{text(value)}"^^<{XSD}{name}>'
    return repr(value)  # not a term: becomes a dead letter


def _n_triples(term: object) -> str:
    """Returns a term of RDFLib as N-Triples; RDFLib itself prints some literals as Turtle."""
    from levada.core.rdf_terms import STRING, Literal

    datatype, language = getattr(term, "datatype", None), getattr(term, "language", None)
    if hasattr(term, "toPython") and hasattr(term, "datatype"):
        return str(Literal(str(term), str(datatype or STRING), str(language or "")))
    return str(term.n3())  # type: ignore[attr-defined]


_LITERALS: tuple[tuple[type, str, Callable[..., str]], ...] = (
    (bool, "boolean", lambda value: str(value).lower()),
    (int, "integer", str),
    (float, "double", lambda value: _DOUBLES.get(repr(value), repr(value))),
    (Decimal, "decimal", lambda value: format(value, "f")),
    (datetime, "dateTime", datetime.isoformat),
    (date, "date", date.isoformat),
)
_DOUBLES: dict[str, str] = {"inf": "INF", "-inf": "-INF", "nan": "NaN"}


def time_text(value: object) -> str | None:
    """Returns an event time as a text, or a term of RDFLib as its literal. A datetime without a
    zone is UTC.

    >>> time_text(1000), time_text(datetime(2024, 1, 1)), time_text("2024-01-01T00:00:00Z")
    ('1000', '2024-01-01T00:00:00Z', '2024-01-01T00:00:00Z')
    """
    if isinstance(value, datetime):
        return value.isoformat() + ("Z" if value.tzinfo is None else "")
    if hasattr(value, "n3"):
        return _n_triples(value)
    return None if value is None else str(value)


def with_terms(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Converts the columns to terms: texts unchanged, values as their literals."""
    return frame.with_columns(_terms(name, frame.schema[name]) for name in columns)


def _terms(name: str, kind: pl.DataType) -> pl.Expr:
    value = pl.col(name)
    if kind.is_integer():
        return _literal(value.cast(pl.String), "integer")
    if kind.is_float():
        text = value.cast(pl.String).replace(_DOUBLES)
        return _literal(text, "double")
    if kind.is_decimal():
        return _literal(value.cast(pl.String), "decimal")
    if kind == pl.Boolean:
        return _literal(value.cast(pl.String), "boolean")
    if isinstance(kind, pl.Datetime):
        zone = "Z" if kind.time_zone else ""
        utc = value.dt.convert_time_zone("UTC") if kind.time_zone else value
        return _literal(utc.dt.strftime(f"%Y-%m-%dT%H:%M:%S%.6f{zone}"), "dateTime")
    if kind == pl.Date:
        return _literal(value.dt.strftime("%Y-%m-%d"), "date")
    return value.cast(pl.String)


def _literal(lexical: pl.Expr, name: str) -> pl.Expr:
    return pl.concat_str(pl.lit('"'), lexical, pl.lit(f'"^^<{XSD}{name}>')).alias(
        lexical.meta.output_name()
    )
