"""Reads the bytes or rows of a reference in a task.

Files are read into memory by ``pread``, never mapped. So a file that is truncated meanwhile causes
a ``SourceError`` and not a fault of the process. A range is at most a few megabytes, so the copy
costs about a millisecond, and the kernels need a buffer of their own anyway.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import numpy as np
import pyarrow as pa
import xxhash

from levada.connectors.config.column_names import number_names
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.decompression import is_packed
from levada.connectors.sources.file_errors import encoding_fault
from levada.connectors.sources.fingerprint import (
    altered_file_error,
    check_same,
    first_altered,
    hash_blocks,
)
from levada.connectors.sources.json_lines import NOT_LINES, file_spans_lines
from levada.connectors.sources.parquet_files import read_rows
from levada.connectors.sources.regular_files import open_regular
from levada.connectors.sources.splits import FileSplit, Measured
from levada.connectors.sources.spooled_files import damage_error, read_spooled
from levada.core.array_types import Bytes
from levada.core.frozen import frozen
from levada.errors import FileFault, SourceError
from levada.kernels.text.byte_ops import parsing_room
from levada.kernels.text.csv_records import OPEN_QUOTE, cut_records, scan_records
from levada.kernels.text.line_boundaries import LineCounts, count_lines, cut_elements
from levada.kernels.text.subject_runs import count_byte

LONGEST_ELEMENT = 64 << 20
"""The most bytes of an element of lines: a longer one has lost its line ends and must not fill the
memory.
"""

_HEADER = 1 << 16
_BLOCK = 1 << 22
_BOM = b"\xef\xbb\xbf"


@frozen
class Header:
    """The first record of a CSV file: its column names in order, repeated and empty ones numbered,
    and the start of the data.
    """

    columns: tuple[str, ...]
    end: int


@frozen
class CsvChunk:
    """Records of a CSV file: the bytes of a reference and the names of the columns."""

    columns: tuple[str, ...]
    data: Bytes
    separator: str = ","


@frozen
class JsonChunk:
    """Lines of JSON, or a JSON document: the bytes of a reference."""

    data: Bytes


def read_range(path: str, start: int, stop: int, room: int = 0) -> Bytes:
    """Reads the bytes ``start:stop`` of a file, all of them. Raises ``SourceError`` for fewer, or a
    missing file.

    The array is the beginning of a larger one (its ``base``) with ``room`` more bytes, so readers
    can pad it without a copy.
    """
    out = np.empty(stop - start + room, np.uint8)[: stop - start]
    try:
        handle = open_regular(path)
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


def line_end(path: str, at: int, size: int) -> int | None:
    """Returns the end of the line that begins at ``at``, after its newline or carriage return; None
    if it does not end within ``size`` bytes. The file is searched in blocks.
    """
    for start in range(at, size, _BLOCK):
        data = read_range(path, start, min(start + _BLOCK, size)).tobytes()
        ends = [end for end in map(data.find, (b"\n", b"\r")) if end >= 0]
        if ends:
            return start + min(ends) + 1 + data.startswith(b"\r\n", min(ends))
    return None


def read_bytes(reference: FileSplit, *, document: bool = False, spooled: bool = False) -> Bytes:
    """Reads the text of a reference to a text format, whole elements, with padding for the parser.
    Raises ``FileFault``, also for an element that is too long and not a document, and
    ``CheckpointError`` for a damaged file of a spool.
    """
    size = reference.stop - reference.start
    if not document and size > LONGEST_ELEMENT:
        raise FileFault(
            f"The line at byte {reference.start} of the file {reference.name} has more than "
            f"{LONGEST_ELEMENT >> 20} MB: it is not read."
        )
    with _translated_errors(reference):
        data = read_range(reference.path, reference.start, reference.stop, parsing_room(size))
    check_same(reference, data)
    if spooled and first_altered(reference.pieces, reference.start, data) is not None:
        raise damage_error(reference.path)
    return data


def read_lines(reference: FileSplit, config: StreamConfig) -> tuple[Bytes, LineCounts, FileSplit]:
    """Reads the text of a reference to a format of lines, like ``read_bytes``, with newlines as
    line ends; also returns its counts, and the reference with the counts that the driver does not
    have.
    """
    data = read_bytes(reference, document=config.whole_files, spooled=config.settled)
    is_read_first = not reference.counted or reference.hashed[0] < reference.hashed[1]
    digest = xxhash.xxh3_64_hexdigest(data.data) if is_read_first else ""
    blocks = hash_blocks(reference, data)
    counts = count_lines(data)
    if counts.returns and _end_lone(data):
        counts = count_lines(data)
    if not is_read_first:
        return data, counts, reference
    elements = 0
    if not reference.counted:
        elements = counts.elements
        if config.element != "line":
            elements = cut_elements(data, config.element, len(data) + 1, True)[1]
    measured = Measured(reference.name, reference.start, elements, digest, blocks)
    return (
        data,
        counts,
        msgspec.structs.replace(
            reference, elements=elements or reference.elements, measured=measured
        ),
    )


@contextmanager
def _translated_errors(reference: FileSplit) -> Iterator[None]:
    """Turns read errors in the block into a ``FileFault`` if the file was replaced or deleted.
    Checks the file afterwards, so no other file comes between.
    """
    try:
        yield
    except (SourceError, OSError):
        _check_there(reference)
        check_same(reference, None)
        raise


def _check_there(reference: FileSplit) -> None:
    """Raises ``FileFault`` if the file was deleted: it stays deleted, however often the epoch runs.
    If its folder is missing too (for example an unmounted disk), or the unpacked copy, this is
    unknown.
    """
    path = reference.path
    if (
        not is_packed(reference.name)
        and not os.path.exists(path)
        and os.path.isdir(os.path.dirname(path) or ".")
    ):
        raise altered_file_error(reference, "was deleted") from None


def end_lines(data: Bytes) -> Bytes:
    r"""Replaces lone carriage returns in bytes of a format of lines by newlines, in place. Both end
    a line, and neither may occur in a term or a JSON string.

    >>> end_lines(np.frombuffer(bytearray(b"a\rb\r\nc\r"), np.uint8)).tobytes()
    b'a\nb\r\nc\n'
    """
    if count_byte(data, len(data), 13):  # a regular expression takes 40 times as long
        _end_lone(data)
    return data


def _end_lone(data: Bytes) -> int:
    """Replaces lone carriage returns by newlines, in place; returns their number."""
    at = np.flatnonzero(data == 13)
    alone = np.ones(len(at), np.bool_)
    inside = at + 1 < len(data)
    alone[inside] = data[at[inside] + 1] != 10
    data[at[alone]] = 10
    return int(np.count_nonzero(alone))


def read_header(path: str, size: int, separator: str = ",", *, whole: bool) -> Header | None:
    """Reads the header of the CSV file of ``size`` bytes; None while it may grow (``whole`` false).
    Raises ``FileFault``.
    """
    window = _HEADER
    while True:
        data = read_range(path, 0, min(window, size))
        end, records = cut_records(data, 1, whole and len(data) == size, ord(separator))
        if records or len(data) == size:
            break
        if window >= LONGEST_ELEMENT:
            raise FileFault(
                f"The header of {path} has more than {LONGEST_ELEMENT >> 20} MB.",
                hint="Is the file a CSV at all?",
            )
        window *= 8
    return header_of(path, data[:end], separator) if records else None


def header_of(path: str, record: Bytes, separator: str) -> Header:
    """Parses the header of a CSV file from its first record. Raises ``FileFault``."""
    end, data = len(record), record.tobytes()
    if fault := encoding_fault(data):
        raise FileFault(f"The file {path} cannot be read. {fault}")
    if _is_open(record, separator):
        raise FileFault(
            f"The header of {path} has a quote that is never closed.",
            hint="Close it, or leave it out.",
        )
    text = data.removeprefix(_BOM).decode("utf-8", "replace")
    lines = io.StringIO(text, newline="")
    try:
        names = next(row for row in csv.reader(lines, delimiter=separator) if row)
    except csv.Error as error:
        raise FileFault(
            f"The header of {path} cannot be read: {error}.", hint="Is the file a CSV at all?"
        ) from error
    return Header(number_names([name.strip() for name in names]), end)


def _is_open(header: Bytes, separator: str) -> bool:
    """Whether the first record has a quote that is never closed."""
    return int(scan_records(header, ord(separator)).fault[0]) == OPEN_QUOTE


def hashed_as_read(reference: FileSplit) -> FileSplit:
    """Returns a reference to rows with the hashes of the blocks of their file, if it names some."""
    blocks = hash_blocks(reference, np.empty(0, np.uint8))
    if not blocks:
        return reference
    measured = Measured(reference.name, reference.start, 0, "", blocks)
    return msgspec.structs.replace(reference, measured=measured)


def read_json(reference: FileSplit, config: StreamConfig) -> tuple[JsonChunk, FileSplit]:
    """Reads the lines of a reference to NDJSON; also returns the reference, like ``read_lines``."""
    if not config.settled:
        _check_lines(reference)
    data, _, reference = read_lines(reference, config)
    return JsonChunk(data), reference


def read_tuples(reference: FileSplit, config: StreamConfig) -> CsvChunk | pa.Table:
    """Reads the rows of a reference to a table: CSV as bytes, Parquet as a table."""
    if reference.format == "parquet":
        with _translated_errors(reference):
            rows = read_rows(reference.path, reference.start, reference.stop, config)
        check_same(reference, None)
        return rows
    if config.header:
        data = read_bytes(reference, spooled=config.settled)
        return CsvChunk(config.header, data, config.separator)
    with _translated_errors(reference):
        whole = read_spooled(reference.path) if config.settled else None
        header = (
            read_header(reference.path, reference.stop, config.separator, whole=True)
            if whole is None
            else first_record(reference.path, whole, config.separator)
        )
    assert header is not None, "a reference to CSV lies behind a header"
    data = read_bytes(reference, spooled=config.settled)
    return CsvChunk(header.columns, data, config.separator)


def _check_lines(reference: FileSplit) -> None:
    """Raises ``FileFault`` for a file that is not NDJSON."""
    with _translated_errors(reference):
        if not file_spans_lines(reference.path):
            return
    raise FileFault(
        f"The file {reference.name} is {NOT_LINES}: nothing of it is read.",
        hint="Say format=json.",
    )


def first_record(path: str, data: Bytes, separator: str) -> Header | None:
    """Reads the header of a CSV file with these bytes. Raises ``FileFault``."""
    end, records = cut_records(data, 1, True, ord(separator))
    return header_of(path, data[:end], separator) if records else None
