"""Reads event times from texts by the stream's options: of each row of a table, in columns, and of
a file's name.

    texts       as those of all sources (``kernels.text.timestamps``); or by ``time_format``
    numbers     in the stream's unit, as their texts
    timestamps  of Parquet and frames: as they are

A time without a zone is local time in the stream's ``zone``. If a local time occurs twice (when
clocks are put back), the earlier instant counts. A skipped one (when they are put forward) is not a
time, and its row is dead. Cost: a kernel's pass over the texts; with a format or a zone a few
column operations of Polars.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.config.time_format import UTC
from levada.connectors.ingest.lateness import (
    NO_TIME,
    WRONG_TIME,
    AdmissionBounds,
    clock_times,
    likely_unit,
)
from levada.connectors.ingest.tables.csv_rows import RawRows
from levada.connectors.sources.file_errors import is_of_data
from levada.connectors.sources.splits import FileSplit
from levada.core.array_types import Bools, Bytes, Longs
from levada.core.event_time import MAX, MIN
from levada.kernels.text.timestamps import instants

Times = npt.NDArray[np.int64]
_CALENDAR = 1 << 52  # ms: the largest time that time zones support


def row_times(
    rows: RawRows,
    table: pl.DataFrame,
    config: StreamConfig,
    reference: FileSplit,
    *,
    gate: AdmissionBounds,
) -> Times:
    """Returns the event time of each row, by the file's name, a clock or a column of ``table``;
    marks a row without one in ``rows.wrong``.
    """
    values: pl.Series | None = None
    if config.time_kind in ("timestamp", "arrival"):
        ts = clock_times(config, rows.times, table.height, gate)
    elif config.time_kind == "filename":
        ts = np.full(table.height, file_time(config, reference.name), np.int64)
    else:
        values = _column(table, rows.table, config.time_argument)
        ts = field_times(values, config)
    without = (ts == MIN).nonzero()[0]
    if not len(without):
        return ts
    values = pl.Series([None]) if values is None else values
    empty = np.broadcast_to(values.is_null().to_numpy(), table.height)
    for row in without.tolist():
        why = NO_TIME if empty[row] else f"{_wrong(config)}: {value_shown(values, row)}"
        rows.wrong.setdefault(row, why)
    return ts


def seeming_unit(
    table: pl.DataFrame,
    raw: pl.DataFrame,
    ts: Times,
    config: StreamConfig,
    tomorrow: int,
    *,
    greatest: int = MIN,
) -> str:
    """Returns ``lateness.likely_unit`` of the rows' times; also if integers are too large for
    any.
    """
    if config.time_format or not len(ts):
        return ""
    none = greatest == MIN and int(ts.max()) == MIN
    if none and config.time_kind == "field" and config.unit == "ms":
        values = _column(table, raw, config.time_argument)
        if not values.dtype.is_temporal():
            ts = values.cast(pl.Int64(), strict=False).drop_nulls().to_numpy()
    return likely_unit(ts, config, tomorrow, greatest)


def value_shown(values: pl.Series, row: int) -> object:
    """Returns a value for people; an instant outside Python's range as its number.

    >>> value_shown(pl.Series([2**62]).cast(pl.Datetime("us")), 0)
    4611686018427387904
    """
    try:
        return values.slice(row, 1).to_list()[0]
    except BaseException as error:
        if not is_of_data(error):
            raise
        return values.to_physical()[row]


def _wrong(config: StreamConfig) -> str:
    """Returns the reason why a value is not a time."""
    words = f"its time does not fit {config.time_format}" if config.time_format else WRONG_TIME
    return words if config.zone == UTC else f"{words}, or there was none such in {config.zone}"


def _column(table: pl.DataFrame, raw: pl.DataFrame, name: str) -> pl.Series:
    return (table if name in table.columns else raw).get_column(name)


def field_times(values: pl.Series, config: StreamConfig) -> Times:
    """Returns the time of each value; MIN without one."""
    if config.time_format:
        return _by_format(_texts(values), config)
    if values.dtype.is_integer():
        return _scale(values, config.unit_power)
    if values.dtype.is_temporal():
        return _timestamps(values, config.zone)
    texts = _texts(values)
    buffer, edge = _bytes_of(texts)
    off, length = edge[:-1], np.diff(edge)
    ts = instants(buffer, off, length, config.unit_power)
    if config.zone != UTC:
        local = (ts > MIN) & _zoneless(buffer, off, length)
        ts[local] = _at_zone(ts[local], config.zone)
    return ts


def file_time(config: StreamConfig, name: str) -> int:
    """Returns the time in a file's name by ``filename:REGEX``: its first group, or MIN.

    >>> time = r"filename:_([0-9]+)"
    >>> config = StreamConfig.from_options("s", "d_12.nt", time=time, unit="s")
    >>> file_time(config, "d_12.nt")
    12000
    """
    match = re.search(config.time_argument, name)
    return int(field_times(pl.Series([(match[1] or "") if match else ""]), config)[0])


def _texts(values: pl.Series) -> pl.Series:
    return values.cast(pl.String()).str.strip_chars().fill_null("")


def _bytes_of(texts: pl.Series) -> tuple[Bytes, Longs]:
    """Returns the bytes of all texts, and where each begins and ends."""
    text = texts.to_arrow().cast(pa.large_string())
    _, edges, data = text.buffers()
    edge = np.frombuffer(edges, np.int64)[text.offset : text.offset + len(text) + 1]
    return (np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)), edge


def _scale(values: pl.Series, power: int) -> Times:
    """Converts integers, units of 10**power ms, to milliseconds."""
    unit, parts = 10 ** max(power, 0), 10 ** max(-power, 0)
    numbers = values.cast(pl.Int64(), strict=False)
    raw: Times = (numbers.fill_null(MIN) if numbers.null_count() else numbers).to_numpy()
    if parts > 1:
        return np.where(values.is_null().to_numpy(), MIN, raw // parts)
    if unit == 1 and len(raw) and raw.min() > MIN and raw.max() < MAX:
        return raw
    return np.where((raw > MIN // unit) & (raw < MAX // unit), raw * unit, MIN)


def _timestamps(values: pl.Series, zone: str) -> Times:
    """Converts timestamps and dates; those without a zone are local."""
    ts: Times = values.dt.epoch("ms").fill_null(MIN).to_numpy().copy()
    if zone != UTC and getattr(values.dtype, "time_zone", None) is None:
        held = ts > MIN
        ts[held] = _at_zone(ts[held], zone)
    return ts


def _by_format(texts: pl.Series, config: StreamConfig) -> Times:
    form = config.time_format.replace("%S.%f", "%S%.f")
    instants = texts.str.to_datetime(form, time_unit="ms", strict=False)
    if "%Y" in form:  # Polars reads the 24 of 31.01.24 as the year 24
        instants = instants.set(instants.dt.year() < 1000, None)
    return _timestamps(instants, config.zone)


def _zoneless(buffer: Bytes, off: Longs, length: Longs) -> Bools:
    """Returns a mask of the texts, each a time, that are dateTimes or dates without a zone: they
    have the dash of a date, and neither ``Z`` nor ``+01:00`` at their end.
    """
    if not len(buffer):
        return np.zeros(len(off), np.bool_)

    def byte_at(place: Longs) -> Bytes:
        byte: Bytes = buffer[np.clip(place, 0, len(buffer) - 1)]
        return byte

    dated = np.zeros(len(off), np.bool_)
    for digits in (4, 5, 6):  # of the year
        before = byte_at(off + digits - 1)  # in a number it may be the e of the exponent
        dated |= (length > digits) & (byte_at(off + digits) == ord("-")) & (before <= ord("9"))
    end = off + length
    sign = byte_at(end - 6)
    offset = ((sign == ord("+")) | (sign == ord("-"))) & (byte_at(end - 3) == ord(":"))
    zoned: Bools = (byte_at(end - 1) == ord("Z")) | (offset & (length > 6))
    return dated & ~zoned


def _at_zone(ts: Times, zone: str) -> Times:
    """Converts local times to instants: the earlier of two, MIN without one."""
    known = np.abs(ts) < _CALENDAR
    local = pl.Series(np.where(known, ts, 0)).cast(pl.Datetime("ms"))
    zoned = local.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    return np.where(known, zoned.dt.epoch("ms").fill_null(MIN).to_numpy(), MIN)
