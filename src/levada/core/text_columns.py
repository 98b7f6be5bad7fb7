"""Columns of texts as bytes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pyarrow as pa


def join_lines(records: pl.Series) -> bytes:
    """Returns records as the bytes of a file."""
    return bytes(joined_view(records))


def joined_view(records: pl.Series) -> memoryview:
    """Returns records as the bytes of a file, without a copy of the whole."""
    # its texts lie one after the other
    array = records.rechunk().to_arrow().cast(pa.large_string())
    offsets = np.frombuffer(array.buffers()[1], np.int64)[
        array.offset : array.offset + len(array) + 1
    ]
    if not len(records) or array.buffers()[2] is None:
        return memoryview(b"")
    return memoryview(array.buffers()[2])[int(offsets[0]) : int(offsets[-1])]
