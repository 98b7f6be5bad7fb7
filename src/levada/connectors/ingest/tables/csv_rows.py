"""Reads CSV records as columns of texts, with the faults of some of them.

A record is dead if it has another number of fields than the header, breaks the rules of quotes (RFC
4180) or is not UTF-8; the others are kept. An empty field has no value (null), a quoted empty
string is a value. Cost: a kernel's pass for the records, then pyarrow's reader.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv

from levada.connectors.config.column_names import number_names
from levada.connectors.ingest.lateness import Dead
from levada.connectors.ingest.tables.bisect_records import read_by_halves
from levada.connectors.sources.read_split import CsvChunk
from levada.connectors.sources.splits import FileSplit
from levada.core.array_types import Bytes
from levada.kernels.text.csv_records import OPEN_QUOTE, SOUND, STRAY_QUOTE, scan_records

Times = npt.NDArray[np.int64]
_FAULTS = {
    STRAY_QUOTE: "a quote inside a field",
    OPEN_QUOTE: "a quote that is never closed",
}


@dataclass(slots=True)
class RawRows:
    """Rows of the right shape: columns, the place and the text of each, faults.

    ``number``: the place of each among all rows of the reference, including dead ones. ``alone``:
    the number of dead ones that are not elements for the driver. ``times``: the time of each row's
    message, ms. ``blank``: messages without a row. ``place``: where a row is in its record, with a
    blank before it, for dead letters.
    """

    table: pl.DataFrame
    offset: Times
    number: Times
    text: Callable[[int], str]
    dead: list[Dead]
    alone: int = 0
    blank: int = 0
    times: Times | None = None
    place: Callable[[int], str] = lambda row: ""
    wrong: dict[int, str] = field(default_factory=dict)

    def take(self, rows: Times) -> RawRows:
        """Returns these rows, which have no faults yet."""
        text, place = self.text, self.place
        return replace(
            self,
            table=self.table[rows],
            offset=self.offset[rows],
            number=self.number[rows],
            text=lambda row: text(int(rows[row])),
            place=lambda row: place(int(rows[row])),
            dead=[],
            times=None if self.times is None else self.times[rows],
            wrong={},
        )


def csv_rows(chunk: CsvChunk, needed: Sequence[str], reference: FileSplit) -> RawRows:
    """Reads the ``needed`` columns of the records of a reference; null is an empty field."""
    data = chunk.data
    start, stop, fields, fault = scan_records(data, ord(chunk.separator))
    coded = not_utf8(data, start)
    sound = (fault == SOUND) & (fields == len(chunk.columns))
    sound[coded] = False
    dead = []
    for row in np.flatnonzero(~sound).tolist():
        count = f"{fields[row]} fields where the header has {len(chunk.columns)}"
        reason = "not UTF-8" if row in coded else _FAULTS.get(int(fault[row]), count)
        dead.append(
            Dead(reference.start + int(start[row]), reason, decode(data, start[row], stop[row]))
        )
    at = np.flatnonzero(sound)
    table, faults = read_by_halves(
        lambda low, high: _text_table(
            chunk, _select_records(data, start, stop, at[low:high]), needed, high - low
        ),
        len(at),
    )
    for row, why in zip(at[list(faults)].tolist(), faults.values(), strict=True):
        place = reference.start + int(start[row])
        dead.append(Dead(place, why, decode(data, start[row], stop[row])))
    at = np.delete(at, list(faults))
    return RawRows(
        pl.DataFrame(schema=dict.fromkeys(needed, pl.String())) if table is None else table,
        start[at] + reference.start,
        at,
        lambda row: decode(data, start[at[row]], stop[at[row]]),
        dead,
    )


def decode(data: Bytes, start: int, stop: int) -> str:
    """Decodes a part of a text, for people."""
    return data[start:stop].tobytes().decode("utf-8", "replace")


def not_utf8(data: Bytes, start: Times) -> list[int]:
    """Returns the records that are not UTF-8; one decode of the rest for each."""
    undecodable: list[int] = []
    if not len(data) or data.max() < 128:
        return undecodable
    raw, at = data.tobytes(), 0
    while True:
        try:
            raw[at:].decode()
            return undecodable
        except UnicodeDecodeError as error:
            row = int(np.searchsorted(start, at + error.start, "right")) - 1
            undecodable.append(row)
            at = int(start[row + 1]) if row + 1 < len(start) else len(raw)


def _select_records(data: Bytes, start: Times, stop: Times, rows: Times) -> Bytes:
    """Returns the text of these records only."""
    cuts = np.flatnonzero(np.diff(rows) > 1)
    if not len(cuts):
        return data[start[rows[0]] : stop[rows[-1]]]
    line_end = np.full(1, 10, np.uint8)
    parts: list[Bytes] = []
    for run in np.split(rows, cuts + 1):
        parts += [data[start[run[0]] : stop[run[-1]]], line_end]
    return np.concatenate(parts)


def _text_table(chunk: CsvChunk, data: Bytes, needed: Sequence[str], records: int) -> pl.DataFrame:
    """Reads the needed columns of so many records as strings; null is an empty field. Raises
    ``ValueError`` if pyarrow finds another number.
    """
    if len(data) and data[-1] == ord(chunk.separator):
        data = np.append(data, np.uint8(10))  # else pyarrow takes it for quoted behind a quoted one
    table = pacsv.read_csv(
        pa.BufferReader(pa.py_buffer(data)),
        pacsv.ReadOptions(
            column_names=number_names(chunk.columns), use_threads=False, block_size=len(data) + 1
        ),
        pacsv.ParseOptions(delimiter=chunk.separator, newlines_in_values=True),
        pacsv.ConvertOptions(
            column_types=dict.fromkeys(needed, pa.string()),
            include_columns=list(needed),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame), "a table is a frame"
    if frame.height != records:
        raise ValueError(f"the reader finds {frame.height} rows in it")
    frame.columns = list(needed)  # Polars invents a name for an empty one
    return frame
