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
from collections.abc import Sequence
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
from levada.connectors.ingest.parse.message_batches import registry_or
from levada.connectors.ingest.tables.csv_rows import RawRows, csv_rows
from levada.connectors.ingest.tables.json_rows import NOT_JSON, document_rows, json_rows
from levada.connectors.ingest.tables.row_event_times import row_times, seeming_unit, value_shown
from levada.connectors.ingest.tables.unreadable_rows import compute_apart
from levada.connectors.sources.json_lines import NOT_LINES, spans_lines
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.read_split import CsvChunk, JsonChunk
from levada.connectors.sources.splits import FileSplit
from levada.core.array_types import Bytes, Longs
from levada.core.event_time import MIN
from levada.core.frozen import frozen
from levada.core.rdf_terms import Kind
from levada.kernels.text.csv_records import SOUND, scan_records

# Assigns rows of tables to the messages that contain them, with the faults of whole messages.
#
# No message reaches into the next one: line ends within a message that is one JSON object become
# blanks, and one with an open quote (CSV) is dead alone. Messages that are refused before the rows
# are read leave line ends in their places.


UNCLOSED_QUOTE = "a quote that is never closed"
SEVERAL_ROWS = "a message of several rows; say element=line to take them all"
_LINE_ENDS = (10, 13)


@frozen
class Rows:
    """The messages of a chunk of rows; ``dead``: the refused ones."""

    messages: Messages
    dead: list[Dead]
    single: bool

    def settle(self, rows: RawRows, beside: Sequence[str] = ()) -> RawRows:
        """Returns the rows with the places and times of their messages, and with the metadata
        columns among ``beside``.
        """
        messages = self.messages
        number = messages.number(rows.offset)
        if beside:
            rows.table = rows.table.with_columns(_metadata_columns(messages, number, beside))
        rows.offset = rows.number = messages.offsets[number]
        rows.times = messages.times[number]
        dead = messages.number(np.array([d.offset for d in rows.dead], np.int64))
        rows.dead = [
            Dead(int(messages.offsets[k]), d.reason, d.text)
            for k, d in zip(dead.tolist(), rows.dead, strict=True)
        ]
        filled = len(np.unique(np.concatenate([number, dead])))
        rows.alone = len(number) + len(rows.dead) - filled  # several rows are one message
        held = len(self.dead) + filled
        rows.blank = len(messages) - held
        if self.single and held < len(number) + len(rows.dead) + len(self.dead):
            rows = self._refuse(rows, number, dead)
        rows.dead += self.dead
        return rows

    def _refuse(self, rows: RawRows, number: Longs, dead: Longs) -> RawRows:
        """Returns the rows with one dead letter for each message of several."""
        first_dead = dict(reversed([*zip(dead.tolist(), rows.dead, strict=True)]))
        count = np.bincount(number, minlength=len(self.messages))
        is_dead = np.zeros(len(self.messages), np.bool_)
        is_dead[dead] = True
        is_first = np.ones(len(number), np.bool_)
        is_first[1:] = np.diff(number) > 0
        at = np.flatnonzero(is_first & ~is_dead[number])
        single_rows = rows.take(at)
        single_rows.dead = list(first_dead.values())
        single_rows.alone = 0
        single_rows.wrong = dict.fromkeys(
            np.flatnonzero(count[number[at]] > 1).tolist(), SEVERAL_ROWS
        )
        return single_rows


def _metadata_columns(messages: Messages, number: Longs, names: Sequence[str]) -> list[pl.Series]:
    """Returns the metadata of each row's message."""
    said = [messages.columns[name].gather(number) for name in names if name in messages.columns]
    of_topic = [name for name in names if name not in messages.columns]
    return said + (_of_topic(messages, number, of_topic) if of_topic else [])


def _of_topic(messages: Messages, number: Longs, names: Sequence[str]) -> list[pl.Series]:
    """Returns the topic of each row (``topic``), or one of its levels, from 1 (``topic_2``)."""
    assert messages.topics is not None, "the messages have topics"
    topics = messages.topics.gather(number)
    levels = topics.str.split("/")
    columns = []
    for name in names:
        _, _, level = name.partition("_")
        said = levels.list.get(int(level) - 1, null_on_oob=True) if level else topics
        columns.append(said.alias(name))
    return columns


def messages_apart(chunk: CsvChunk | JsonChunk, messages: Messages, config: StreamConfig) -> Rows:
    """Separates the messages of a chunk, so that none reaches into another, in place."""
    data, single = chunk.data, config.element == "message"
    if isinstance(chunk, JsonChunk):
        if single:
            _one_line(data, messages)
        dead = _refuse_messages(data, messages, _zero_prefixed(data, messages), "")
        if not single:
            dead += _refuse_messages(data, messages, _over_lines(data, messages), NOT_LINES)
        return Rows(messages, dead, single and not config.iterator)
    open_ = _open(data, messages, ord(chunk.separator))
    return Rows(messages, _refuse_messages(data, messages, open_, UNCLOSED_QUOTE), single)


def _one_line(data: Bytes, messages: Messages) -> None:
    """Replaces line ends within messages by blanks."""
    ends = (data == _LINE_ENDS[0]) | (data == _LINE_ENDS[1])
    data[ends] = 32
    data[messages.starts[1:] - 1] = 10


def _over_lines(data: Bytes, messages: Messages) -> Longs:
    """Returns the messages that are one JSON value over several lines, except those whose first
    line ends like an object.
    """
    ends = np.flatnonzero(data == 10)
    first = ends[np.searchsorted(ends, messages.starts[:-1])]
    last = data[first - 1 - (data[first - 1] == 13)]
    several = np.flatnonzero((first < messages.starts[1:] - 1) & (last != 125)).tolist()
    at = messages.starts
    numbers = [k for k in several if spans_lines(data[at[k] : at[k + 1]].tobytes())]
    return np.array(numbers, np.int64)


def _zero_prefixed(data: Bytes, messages: Messages) -> Longs:
    """Returns the messages that begin with a zero byte."""
    return np.flatnonzero(data[messages.starts[:-1]] == 0)


def _open(data: Bytes, messages: Messages, separator: int) -> Longs:
    """Returns the messages with open quotes; examines each alone if one of them reaches into the
    next.
    """
    quotes = np.flatnonzero(data == 34)
    if not len(quotes):
        return quotes
    start, stop, _, fault = scan_records(data, separator)
    reach = messages.number(start) != messages.number(np.maximum(stop - 1, start))
    if not reach.any() and (fault == SOUND).all():
        return np.empty(0, np.int64)
    suspects = np.unique(messages.number(quotes)).tolist()
    open_messages = [k for k in suspects if _is_open(data, messages, k, separator)]
    return np.array(open_messages, np.int64)


def _is_open(data: Bytes, messages: Messages, number: int, separator: int) -> bool:
    start, stop = int(messages.starts[number]), int(messages.starts[number + 1])
    # an appended letter is a new record, unless a quote is open
    alone = np.concatenate([data[start:stop], np.frombuffer(b"x\n", np.uint8)])
    first, _, _, _ = scan_records(alone, separator)
    return not len(first) or int(first[-1]) != stop - start


def _refuse_messages(data: Bytes, messages: Messages, numbers: Longs, reason: str) -> list[Dead]:
    """Returns these messages as dead letters, and replaces them by line ends."""
    dead = []
    for k in numbers.tolist():
        start, stop = int(messages.starts[k]), int(messages.starts[k + 1]) - 1
        head = data[start : min(stop, start + 6)].tobytes()
        why = reason or registry_or(head, NOT_JSON)
        dead.append(Dead(int(messages.offsets[k]), why, messages.text(data, k)))
        data[start:stop] = 10
    return dead


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
_UNBOUND = int(Kind.UNBOUND)
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

    @property
    def is_empty(self) -> bool:
        """Whether there are rows, and none has a value."""
        kinds = self.kind  # most columns have a value at once
        return bool(kinds.size and kinds[0] == _UNBOUND and (kinds == _UNBOUND).all())

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
    read = document_rows if config.format == "json" else json_rows
    return read(
        chunk.data,
        needed or [""],
        reference,
        config.time_field,
        config.steps,
        paths=dict(config.paths),
        typed=config.mapping is not None and config.mapping.is_rml,
    )


def dead_rows(rows: RawRows, verdict: ElementFates, gate: AdmissionBounds) -> list[Dead]:
    """Returns the dead letters, by place."""
    future = verdict.future.nonzero()[0].tolist()
    fates = {**rows.wrong, **dict.fromkeys(future, gate.future)}
    return sorted(
        [
            *rows.dead,
            *(
                Dead(int(rows.offset[row]), why + rows.place(row), rows.text(row))
                for row, why in fates.items()
            ),
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
