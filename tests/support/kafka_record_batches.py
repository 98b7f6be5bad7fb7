"""Record batches of Kafka by Python alone: they are written here as producers and brokers do, and
read by the letter of the specification. The twin of ``levada.kernels.kafka``.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

CODECS = ("none", "gzip", "snappy", "lz4", "zstd", "java")  # java: Snappy in a frame
_JAVA = b"\x82SNAPPY\0\0\0\0\1\0\0\0\1"


@dataclass(frozen=True)
class Record:
    offset: int
    time: int
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Batch:
    """``marker``: "" or the end of a transaction, ``commit`` or ``abort``. ``first`` and ``last``:
    offsets, of which records may be gone. ``appended``: the time that all records have.
    """

    first: int
    last: int
    records: tuple[Record, ...]
    codec: str = "none"
    producer: int = -1
    transactional: bool = False
    marker: str = ""
    appended: int | None = None
    base: int = field(default=1000)


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for c in data:
        crc ^= c
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def varint(value: int) -> bytes:
    bits = (value << 1) ^ (value >> 63)
    found = bytearray()
    while bits > 127:
        found.append(bits & 127 | 128)
        bits >>= 7
    return bytes([*found, bits])


def blob(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def record(one: Record, batch: Batch) -> bytes:
    inside = b"\0" + varint(one.time - batch.base) + varint(one.offset - batch.first)
    inside += blob(one.key) + blob(one.value) + varint(len(one.headers))
    for name, value in one.headers:
        inside += blob(name.encode()) + blob(value)
    return varint(len(inside)) + inside


def packed(codec: str, data: bytes) -> bytes:
    if codec == "none":
        return data
    if codec == "gzip":
        return gzip.compress(data)
    if codec in ("snappy", "java"):
        snappy = pa.Codec("snappy")
        if codec == "snappy":
            return bytes(snappy.compress(data, asbytes=True))
        blocks = [
            snappy.compress(data[k : k + 100], asbytes=True) for k in range(0, len(data), 100)
        ]
        return _JAVA + b"".join(struct.pack(">i", len(b)) + b for b in blocks)
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, codec) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def encoded(batch: Batch) -> bytes:
    inside = packed(batch.codec, b"".join(record(one, batch) for one in batch.records))
    return sealed(batch, inside, len(batch.records))


def sealed(batch: Batch, inside: bytes, count: int) -> bytes:
    """A batch with these bytes as its records."""
    number = {"java": 2}.get(batch.codec, CODECS.index(batch.codec))
    attributes = number | 8 * (batch.appended is not None) | 16 * batch.transactional
    attributes |= 32 * bool(batch.marker)
    latest = max([one.time for one in batch.records], default=batch.base)
    if batch.appended is not None:
        latest = batch.appended
    body = struct.pack(
        ">hiqqqhii", attributes, batch.last - batch.first, batch.base, latest, batch.producer, 0, 0,
        count,
    )  # fmt: skip
    rest = struct.pack(">ibI", 0, 2, crc32c(body + inside)) + body + inside
    return struct.pack(">qi", batch.first, len(rest)) + rest


def marker(batch: Batch) -> Batch:
    """A batch that ends a transaction, with the record that says so."""
    key = struct.pack(">hh", 0, batch.marker == "commit")
    one = Record(batch.first, batch.base, struct.pack(">hi", 0, 1), key)
    return replace(batch, records=(one,), last=batch.first, transactional=True)


def seen(
    batches: Sequence[Batch], start: int, stop: int, aborted: Sequence[tuple[int, int]]
) -> list[Record]:
    """The records that a reader is to see; ``aborted``: producer and first offset."""
    found, ends = [], {}
    for producer, first in aborted:
        later = (b.first for b in batches if b.producer == producer and b.marker == "abort")
        ends[producer, first] = min(at for at in later if at > first)
    for batch in batches:
        if batch.marker or any(
            batch.transactional and p == batch.producer and first <= batch.first < end
            for (p, first), end in ends.items()
        ):
            continue
        for one in batch.records:
            time = one.time if batch.appended is None else batch.appended
            if start <= one.offset < stop:
                found.append(replace(one, time=time))
    return found


def headers(data: bytes) -> tuple[tuple[str, bytes | None], ...]:
    """The headers that stand in the bytes behind a record's value."""
    at = 0

    def number() -> int:
        nonlocal at
        bits = shift = 0
        while True:
            c = data[at]
            at += 1
            bits |= (c & 127) << shift
            shift += 7
            if c < 128:
                return (bits >> 1) ^ -(bits & 1)

    def piece() -> bytes | None:
        nonlocal at
        size = number()
        if size < 0:
            return None
        at += size
        return data[at - size : at]

    found = []
    for _ in range(number()):
        name = piece()
        assert name is not None, "a header has a name"
        found.append((name.decode(), piece()))
    assert at == len(data)
    return tuple(found)
