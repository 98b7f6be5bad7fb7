"""Reads and writes logs of messages, which are logged before they are acknowledged
(``connectors.spool.message_log``). A Parquet file has a row for each message, with its bytes, its
arrival time, its topic, its headers (as JSON, if any), and the reason if it could not be received.

The driver handles files of rows. A task turns the rows into the result of Kafka's reader for a
range of offsets, so that later code is the same. A message's offset is its number in the stream,
which the name of its file contains. Cost: two copies of the bytes, no object a message.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from levada.connectors.config.input_formats import TABLES
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.message_headers import Header, header_columns, read_headers
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.splits import FileSplit
from levada.connectors.sources.spooled_files import parquet_of, read_spooled
from levada.core.array_types import Bytes, Longs
from levada.errors import FileFault
from levada.kernels.text.byte_ops import parsing_room

PAYLOAD, TIME, TOPIC, HEADERS, FAULT = "payload", "time", "topic", "headers", "fault"
NOTE = b"levada.note"
_SCHEMA = pa.schema(
    [
        (PAYLOAD, pa.large_binary()),
        (TIME, pa.int64()),
        (TOPIC, pa.dictionary(pa.int32(), pa.large_string())),
        (HEADERS, pa.string()),
        (FAULT, pa.string()),
    ]
)


def log_file(
    payloads: Sequence[bytes],
    times: Sequence[int],
    topics: Sequence[str],
    headers: Sequence[Sequence[tuple[str, str]]],
    faults: Sequence[str],
    *,
    note: str,
) -> bytes:
    """Encodes messages as a file; ``note``: the text that the sender needs to continue."""
    table = pa.table(
        [
            pa.array(payloads, pa.large_binary()),
            pa.array(times, pa.int64()),
            pa.array(topics, pa.large_string()).dictionary_encode(),
            pa.array([json.dumps(all_) if all_ else None for all_ in headers], pa.string()),
            pa.array([fault or None for fault in faults], pa.string()),
        ],
        schema=_SCHEMA.with_metadata({NOTE: note.encode()}),
    )
    made = io.BytesIO()
    pq.write_table(table, made, write_page_checksum=True)
    return made.getvalue()


def note_of(path: Path) -> str:
    """Returns the note of a file. Raises ``CheckpointError`` for a damaged one."""
    source = parquet_of(str(path), read_spooled(str(path)))
    said: dict[bytes, bytes] = pq.read_schema(source).metadata or {}
    return said.get(NOTE, b"").decode()


def stem_of(first: int, count: int) -> str:
    """Returns the stem of a file name, from the stream's number ``first`` of its first message
    (from 0).

    >>> numbers_of(stem_of(12, 3))
    (12, 3)
    """
    return f"{first:015d}-{count:07d}"


def numbers_of(name: str) -> tuple[int, int]:
    """Returns the number of a file's first message, and the number of its messages."""
    first, _, rest = name.partition("-")
    return int(first), int(rest.partition(".")[0])


def files_of(config: StreamConfig) -> StreamConfig:
    """Returns the stream of the log's files, for the driver: rows of unknown content."""
    return replace(
        config, format="parquet", element="line", schema=(), mapping=None, time=f"field:{TIME}",
        unit="ms", time_format="", sign="", separator=",", closed=False, trusted=False,
    )  # fmt: skip


def read_log(reference: FileSplit, config: StreamConfig) -> tuple[Bytes, Messages]:
    """Returns the messages of a range of rows, each followed by a newline. Raises ``FileFault``,
    and ``CheckpointError`` for a damaged file.
    """
    source = parquet_of(reference.path, read_spooled(reference.path))
    try:
        with pq.ParquetFile(source, page_checksum_verification=True) as file:
            whole = file.read(use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise FileFault(f"The log {reference.path} cannot be read: {error}.") from error
    table = whole.slice(reference.start, reference.stop - reference.start).combine_chunks()
    n = table.num_rows
    starts: Longs = np.zeros(n + 1, np.int64)
    np.cumsum(pc.binary_length(table[PAYLOAD]).to_numpy() + 1, out=starts[1:])
    data = _join(table[PAYLOAD], starts)
    first = numbers_of(Path(reference.path).name)[0] + reference.start
    topics = pl.from_arrow(table[TOPIC].cast(pa.large_string()))
    assert isinstance(topics, pl.Series), "a column is a series"
    headers = _headers(table)
    said = read_headers(
        [(first + k, all_) for k, all_ in enumerate(headers) if all_],
        range(first, first + n),
        rdf=config.mapping is None and config.format not in TABLES,
    )
    for k, fault in _faults(table):
        said.wrong.append((first + k, fault))
        said.formats = said.formats or [""] * n
        said.formats[k] = "nt"  # a format without text
    return data, Messages(
        starts,
        np.arange(first, first + n, dtype=np.int64),
        table[TIME].to_numpy(),
        topics=topics,
        beside=said,
        columns=header_columns(config.beside_columns, headers),
    )


def _headers(table: pa.Table) -> list[list[Header]]:
    """Returns the headers of each message; an old log without headers has none."""
    if HEADERS not in table.column_names or table[HEADERS].null_count == table.num_rows:
        return [[]] * table.num_rows
    return [
        [(name, value.encode()) for name, value in json.loads(said)] if said else []
        for said in table[HEADERS].to_pylist()
    ]


def _faults(table: pa.Table) -> list[tuple[int, str]]:
    """Returns the messages that were not received, with the reasons; an old log has none."""
    if FAULT not in table.column_names or table[FAULT].null_count == table.num_rows:
        return []
    return [(k, fault) for k, fault in enumerate(table[FAULT].to_pylist()) if fault]


def _join(payloads: pa.ChunkedArray, starts: Longs) -> Bytes:
    """Concatenates all bytes, with padding for the parser."""
    size = int(starts[-1])
    out: Bytes = np.empty(size + parsing_room(size), np.uint8)[:size]
    out[:] = 10
    inside = np.ones(size, np.bool_)
    inside[starts[1:] - 1] = False
    whole = payloads.combine_chunks() if payloads.num_chunks != 1 else payloads.chunk(0)
    if len(whole):
        edges = np.frombuffer(whole.buffers()[1], np.int64)[whole.offset :][: len(whole) + 1]
        data = np.frombuffer(whole.buffers()[2] or b"", np.uint8)
        out[inside] = data[edges[0] : edges[-1]]
    return out
