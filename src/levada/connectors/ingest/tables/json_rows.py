"""Reads lines of JSON objects (NDJSON) as columns of texts, with the faults of some of them.

Every value is read as text: a string unchanged, a number or boolean as JSON writes it (numbers in
the shortest form of their double, or unchanged in the column of times), an array or object as JSON.
``null`` and a missing name have no value. If an object repeats a name, the last value counts. A
line is dead if it is not a JSON object or has half of a surrogate pair; blank lines are ignored.
Cost: a kernel's pass and one call of Polars' reader for a valid piece; a bad line costs the same on
halves of the piece, log2(lines) times.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.connectors.ingest.lateness import Dead
from levada.connectors.ingest.tables.bisect_records import read_by_halves
from levada.connectors.ingest.tables.csv_rows import RawRows, decode
from levada.connectors.sources.file_errors import encoding_fault
from levada.connectors.sources.splits import FileSplit
from levada.core.array_types import Bytes, Longs
from levada.kernels.text.json_duplicate_names import hash_name, superseded_names

NOT_JSON = "not a JSON object"
ARRAY = "a JSON array, and NDJSON has an object on each line"
_DOUBLE = 16  # characters of a number that a double holds
_DELETE = 127  # a character that no column name contains
HALF = "an escape is a surrogate without its other half, which is not a character"
# Polars reads an unpaired high surrogate as U+0000
_HALF = re.compile(
    rb"\\u[dD](?:[89abAB]..(?!\\u[dD][c-fC-F])|[c-fC-F]..(?<!\\u[dD][89abAB]..\\u[dD]...))"
)


def json_rows(
    data: Bytes, needed: Sequence[str], reference: FileSplit, exact: str | None = None
) -> RawRows:
    """Reads the ``needed`` columns of the lines of a reference; numbers of the column ``exact``
    keep all of their digits.
    """
    start, stop = _lines(data)
    text, begin, end = _rewrite(data, start, stop, needed, exact)
    table, faults = read_by_halves(
        lambda low, high: _read(text[begin[low] : end[high - 1]], needed, high - low), len(start)
    )
    dead = [
        Dead(
            reference.start + int(start[k]),
            _explain(data[start[k] : stop[k]].tobytes(), why),
            decode(data, start[k], stop[k]),
        )
        for k, why in faults.items()
    ]
    at = np.delete(np.arange(len(start)), list(faults))
    counted = _count(data, start)
    number: Longs = np.cumsum(counted) - counted
    return RawRows(
        pl.DataFrame(schema=_schema(needed)) if table is None else table,
        start[at] + reference.start,
        number[at],
        lambda row: decode(data, start[at[row]], stop[at[row]]),
        dead,
        int(np.count_nonzero(~counted)),
    )


def _explain(line: bytes, reason: str) -> str:
    """Returns the reason why a line is not a row.

    >>> _explain(b'[{"a": 1}]', NOT_JSON)
    'a JSON array, and NDJSON has an object on each line'
    """
    is_array = reason == NOT_JSON and line.lstrip()[:1] == b"["
    return encoding_fault(line) or (ARRAY if is_array else reason)


def _lines(data: Bytes) -> tuple[Longs, Longs]:
    """Returns where non-blank lines begin and end. Blank has the driver's meaning
    (``kernels.text.line_boundaries``): a line of control characters is a line, and not an object.
    """
    ends = np.flatnonzero(data == 10)
    start = np.concatenate([np.zeros(1, np.int64), ends + 1])
    stop = np.append(ends, len(data))
    blank = (data == 32) | (data == 9) | (data == 13) | (data == 10)
    ink = np.concatenate([np.zeros(1, np.int64), np.cumsum(~blank)])
    full = ink[stop] > ink[start]
    return start[full], stop[full]


def _count(data: Bytes, start: Longs) -> npt.NDArray[np.bool_]:
    """Returns a mask of the lines that the driver counts as elements
    (``kernels.text.line_boundaries``): those that do not begin like a comment.
    """
    ink = np.flatnonzero((data != 32) & (data != 9))
    first = data[ink[np.searchsorted(ink, start)]]
    counted: npt.NDArray[np.bool_] = (first != 35) & (first != 13)
    return counted


def _rewrite(
    data: Bytes, start: Longs, stop: Longs, needed: Sequence[str], exact: str | None
) -> tuple[Bytes, Longs, Longs]:
    """Returns the lines, and where each begins and ends. A name that its object repeats later is
    replaced, and a number of the column ``exact`` that a double may not hold is in quotes.
    """
    hashes = [hash_name(np.frombuffer(name.encode(), np.uint8)) for name in needed]
    names = np.sort(np.array(hashes, np.uint64))
    place = int(names.searchsorted(hashes[needed.index(exact)])) if exact in needed else -1
    at, size = np.empty(0, np.int64), np.empty(0, np.int64)
    number, digits = np.empty(len(start), np.int64), np.empty(len(start), np.int64)
    while True:
        seen = np.full(len(names), -1)
        count = superseded_names(data, start, stop, names, seen, at, size, place, number, digits)
        if count <= len(at):
            break
        at, size = np.empty(count, np.int64), np.empty(count, np.int64)
    text = data
    if count:
        text = data.copy()
        before = np.cumsum(size) - size
        text[np.repeat(at - before, size) + np.arange(size.sum())] = _DELETE
    long = digits > _DOUBLE
    if not long.any():
        return text, start, stop
    quotes = np.ravel([number[long], number[long] + digits[long]], order="F")
    return (
        np.insert(text, quotes, ord('"')),
        start + np.searchsorted(quotes, start),
        stop + np.searchsorted(quotes, stop, side="right"),
    )


def _read(text: Bytes, needed: Sequence[str], lines: int) -> pl.DataFrame:
    """Reads so many lines as columns. Raises ``ValueError`` if a line is faulty."""
    raw = text.tobytes()
    if any(_is_escape(raw, half.start()) for half in _HALF.finditer(raw)):
        raise ValueError(HALF)
    try:
        table = pl.read_ndjson(io.BytesIO(raw), schema=_schema(needed))
    except pl.exceptions.ComputeError:
        raise ValueError(NOT_JSON) from None
    if table.height != lines:
        raise ValueError(NOT_JSON)
    return table


def _is_escape(raw: bytes, at: int) -> bool:
    """Whether the backslash at a place is not escaped itself."""
    start = at
    while start and raw[start - 1] == ord("\\"):
        start -= 1
    return (at - start) % 2 == 0


def _schema(needed: Sequence[str]) -> dict[str, pl.DataType]:
    return dict.fromkeys(needed, pl.String())
