"""Lines of JSON objects (NDJSON) as columns of texts, with what is wrong with some of them.

Every value is taken as text: a string as it is, a number or boolean as JSON writes it (numbers in
their shortest form), an array or object as JSON. ``null`` and a name that is not there are no
value. A line that is no JSON object is dead; blank lines are none. Cost: one call of Polars' reader
for a sound piece; a bad line costs that on halves of the piece, log2(lines) times.
"""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.intake.admission import Dead
from levada.intake.tables.csv_rows import RawRows, decode
from levada.model.arrays import Bytes, Longs
from levada.sources.reference import Reference

NOT_JSON = "not a JSON object"


def json_rows(data: Bytes, needed: Sequence[str], reference: Reference) -> RawRows:
    """The ``needed`` columns of the lines of a reference."""
    start, stop = _lines(data)
    bad = _bad(data, start, stop, needed, 0, high=len(start))
    dead = [
        Dead(reference.start + int(start[k]), NOT_JSON, decode(data, start[k], stop[k]))
        for k in bad
    ]
    good = np.ones(len(start), np.bool_)
    good[bad] = False
    at = np.flatnonzero(good)
    table = _read(data, start, stop, needed, at)
    counted = _count(data, start)
    number: Longs = np.cumsum(counted) - counted
    assert table is not None and table.height == len(at), (
        "what is sound line by line is sound together"
    )
    return RawRows(
        table,
        start[at] + reference.start,
        number[at],
        lambda row: decode(data, start[at[row]], stop[at[row]]),
        dead,
        int(np.count_nonzero(~counted)),
    )


def _lines(data: Bytes) -> tuple[Longs, Longs]:
    """Where the lines that are not blank begin and end. Blank is what is for the driver, too
    (``kernels.text.lines``): a line of control characters is one, and no object.
    """
    ends = np.flatnonzero(data == 10)
    start = np.concatenate([np.zeros(1, np.int64), ends + 1])
    stop = np.append(ends, len(data))
    blank = (data == 32) | (data == 9) | (data == 13) | (data == 10)
    ink = np.concatenate([np.zeros(1, np.int64), np.cumsum(~blank)])
    full = ink[stop] > ink[start]
    return start[full], stop[full]


def _count(data: Bytes, start: Longs) -> npt.NDArray[np.bool_]:
    """Which lines the driver counts as elements (``kernels.text.lines``): those that do not begin
    like a comment.
    """
    ink = np.flatnonzero((data != 32) & (data != 9))
    first = data[ink[np.searchsorted(ink, start)]]
    found: npt.NDArray[np.bool_] = (first != 35) & (first != 13)
    return found


def _bad(
    data: Bytes, start: Longs, stop: Longs, needed: Sequence[str], low: int, *, high: int
) -> list[int]:
    """Which of the lines ``low:high`` are no objects, by halves."""
    if low == high or _read(data, start, stop, needed, np.arange(low, high)) is not None:
        return []
    if high - low == 1:
        return [low]
    middle = (low + high) // 2
    halves = (low, middle), (middle, high)
    return [k for a, b in halves for k in _bad(data, start, stop, needed, a, high=b)]


def _read(
    data: Bytes, start: Longs, stop: Longs, needed: Sequence[str], rows: Longs
) -> pl.DataFrame | None:
    """These lines as columns; None if one of them is no object."""
    schema = dict.fromkeys(needed, pl.String())
    if not len(rows):
        return pl.DataFrame(schema=schema)
    dense = int(rows[-1] - rows[0]) == len(rows) - 1
    text = (
        data[start[rows[0]] : stop[rows[-1]]].tobytes() if dense else _join(data, start, stop, rows)
    )
    try:
        table = pl.read_ndjson(io.BytesIO(text), schema=schema)
    except pl.exceptions.ComputeError:
        return None
    return table if table.height == len(rows) else None


def _join(data: Bytes, start: Longs, stop: Longs, rows: Longs) -> bytes:
    return b"\n".join(
        data[a:b].tobytes() for a, b in zip(start[rows].tolist(), stop[rows].tolist(), strict=True)
    )
