"""The task's side: the bytes or rows of a reference.

Files are read into memory by ``pread``, never mapped: a file that somebody cuts short while it is
read is then one sentence of a ``SourceError`` and not a fault of the process. A range is at most a
few megabytes, so the copy costs about a millisecond, and the kernels want a buffer of their own
anyway.
"""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from levada.errors import SourceError
from levada.kernels.text.bytes_ import parsing_room
from levada.kernels.text.records import cut_records
from levada.model.arrays import Bytes
from levada.sources.parquet import read_rows
from levada.sources.reference import Reference
from levada.streams.stream_config import StreamConfig

_HEADER = 1 << 16
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Header:
    """The first record of a CSV file: its column names in order, and where the data begin."""

    columns: tuple[str, ...]
    end: int


@dataclass(frozen=True, slots=True)
class CsvChunk:
    """Records of a CSV file: the bytes of a reference and the names of the columns."""

    columns: tuple[str, ...]
    data: Bytes


@dataclass(frozen=True, slots=True)
class JsonChunk:
    """Lines of JSON: the bytes of a reference."""

    data: Bytes


def read_range(path: str, start: int, stop: int, room: int = 0) -> Bytes:
    """Bytes ``start:stop`` of a file, all of them; fewer, or no file, is a ``SourceError``.

    The array is the beginning of one (its ``base``) with ``room`` more bytes: what reads it can pad
    it without a copy.
    """
    out = np.empty(stop - start + room, np.uint8)[: stop - start]
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            done = 0
            while done < len(out):
                got = os.preadv(handle, [out.data[done:]], start + done)
                if got == 0:
                    raise SourceError(
                        f"The file {path} is shorter than what was found of it: "
                        f"{start + done} bytes."
                    )
                done += got
        finally:
            os.close(handle)
    except OSError as error:
        raise SourceError(f"The file {path} cannot be read: {error.strerror}.") from error
    return out


def read_bytes(reference: Reference) -> Bytes:
    """The text of a reference to a text format, whole elements; with room for what parsing adds."""
    return read_range(
        reference.path,
        reference.start,
        reference.stop,
        parsing_room(reference.stop - reference.start),
    )


def read_header(path: str, size: int, *, whole: bool) -> Header | None:
    """The header of the CSV file of ``size`` bytes; None while it may grow (``whole`` false)."""
    window = _HEADER
    while True:
        data = read_range(path, 0, min(window, size))
        end, records = cut_records(data, 1, whole and len(data) == size)
        if records or len(data) == size:
            break
        window *= 8
    if not records:
        return None
    text = data[:end].tobytes().removeprefix(_BOM).decode("utf-8", "replace")
    names = next(row for row in csv.reader(io.StringIO(text, newline="")) if row)
    return Header(tuple(name.strip() for name in names), end)


def read_tuples(reference: Reference, config: StreamConfig) -> CsvChunk | JsonChunk | pa.Table:
    """The rows of a reference to a tuple format: CSV and JSON as bytes, Parquet as a table."""
    if reference.format == "parquet":
        return read_rows(reference.path, reference.start, reference.stop, config)
    if reference.format == "ndjson":
        return JsonChunk(read_bytes(reference))
    if config.header:
        return CsvChunk(config.header, read_bytes(reference))
    header = read_header(reference.path, reference.stop, whole=True)
    assert header is not None, "a reference to CSV lies behind a header"
    return CsvChunk(header.columns, read_bytes(reference))
