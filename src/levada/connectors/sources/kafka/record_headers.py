"""Reads the keys and headers of records (``connectors.sources.message_headers``).

Cost: Python for each record with headers (equal ones are parsed once) and, if a column of the
stream is the key, for each record; nothing for others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import string_at

import numpy as np
import polars as pl

from levada.connectors.config.input_formats import TABLES
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.kafka.fetched_batches import Records
from levada.connectors.sources.message_headers import (
    Header,
    MessageHeaders,
    header_columns,
    read_headers,
)
from levada.core.array_types import Longs

Headers = tuple[Header, ...]


def said_beside(
    records: Records, partition: int, config: StreamConfig
) -> tuple[MessageHeaders, dict[str, pl.Series]]:
    """Returns the metadata in the headers of records, and the columns of the records with a
    value.
    """
    headers = _headers(records)
    there = np.flatnonzero(records.length >= 0)
    offsets = records.offset[there].tolist()
    rdf = config.mapping is None and config.format not in TABLES
    said = read_headers(
        [(int(records.offset[k]), all_) for k, all_ in headers.items()], offsets, rdf=rdf
    )
    names = config.beside_columns
    columns = header_columns(names, [headers.get(k) for k in there.tolist()] if names else [])
    assert config.kafka is not None, "the stream is a topic"
    asked: dict[str, Callable[[], Sequence[str | None]]] = {
        "message_key": lambda: _keys(records, there),
        "message_topic": lambda: [config.kafka.topic if config.kafka else ""] * len(there),
        "message_partition": lambda: [str(partition)] * len(there),
        "message_offset": lambda: list(map(str, offsets)),
        "message_time": lambda: list(map(str, records.time[there].tolist())),
    }
    for name in names:
        if name in asked:
            columns[name] = pl.Series(name, asked[name](), pl.String)
    return said, columns


def _keys(records: Records, there: Longs) -> list[str | None]:
    places = records.more.reshape(-1, 4)[there, :2].tolist()
    return [
        None if size < 0 else string_at(place, size).decode("utf-8", "replace")
        for place, size in places
    ]


def _headers(records: Records) -> dict[int, Headers]:
    """Returns the headers of the records that have some, by their numbers."""
    more = records.more.reshape(-1, 4)
    some = np.flatnonzero(more[:, 3] > 1)  # a count of one byte is 0
    read: dict[bytes, Headers] = {}
    headers = {}
    for k, (place, size) in zip(some.tolist(), more[some, 2:].tolist(), strict=True):
        raw = string_at(place, size)
        if raw not in read:
            read[raw] = _taken_apart(raw)
        headers[k] = read[raw]
    return headers


def _taken_apart(raw: bytes) -> Headers:
    """Parses names and values. A damaged header ends them, since the checksum is intact."""
    headers: list[Header] = []
    count, at = _number(raw, 0)
    for _ in range(min(count, len(raw))):
        size, at = _number(raw, at)
        name, at = raw[at : at + size].decode("utf-8", "replace"), at + size
        size, at = _number(raw, at)
        value = None if size < 0 else raw[at : at + size]
        at += max(size, 0)
        headers.append((name, value))
    return tuple(headers)


def _number(raw: bytes, at: int) -> tuple[int, int]:
    """Parses a zigzag varint; returns it with the place after it."""
    bits = shift = 0
    while at < len(raw):
        c = raw[at]
        at += 1
        bits |= (c & 127) << shift
        shift += 7
        if c < 128:
            break
    return (bits >> 1) ^ -(bits & 1), at
