"""Unpacks record batches, one after the other into one buffer.

gzip, LZ4 frames and Zstandard are read as streams, since batches do not contain their unpacked
size. Snappy's blocks do, either one alone or several in the frame of snappy-java.

Cost: that of Arrow's codecs, and some 20 us a batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from levada.core.array_types import Bytes, Longs
from levada.kernels.kafka.records import OVER

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
STREAMS = {GZIP: "gzip", LZ4: "lz4", ZSTD: "zstd"}
MAX_BATCH_BYTES = (1 << 31) - 1
"""The most bytes of a batch's records: Kafka counts them in 32 bits."""
_JAVA = b"\x82SNAPPY\0"
_JAVA_HEAD = 16
_GUESS = 6  # the estimated ratio of unpacked to packed size


class PackedError(Exception):
    """A batch that cannot be unpacked; ``number``: its position."""

    def __init__(self, said: str, number: int) -> None:
        super().__init__(said)
        self.number = number


def unpack(packed: Sequence[tuple[int, Bytes]]) -> tuple[Bytes, Longs]:
    """Unpacks batches given by codec and bytes. Returns their records, with ``OVER`` padding bytes
    after all, and the places of their beginnings (n + 1). Raises ``PackedError``.
    """
    room = _Room(64 + _GUESS * sum(len(data) for _, data in packed))
    starts: Longs = np.zeros(len(packed) + 1, np.int64)
    for k, (codec, data) in enumerate(packed):
        try:
            _unpack_one(room, codec, data)
        except (OSError, pa.ArrowException, ValueError, struct.error) as error:
            raise PackedError(str(error).splitlines()[0].rstrip("."), k) from error
        starts[k + 1] = room.used
    return room.data, starts


class _Room:
    """A buffer that grows."""

    def __init__(self, size: int) -> None:
        self.data: Bytes = np.empty(size + OVER, np.uint8)
        self.used = 0

    def remaining(self) -> int:
        return len(self.data) - OVER - self.used

    def grow(self) -> None:
        more: Bytes = np.empty(2 * len(self.data), np.uint8)
        more[: self.used] = self.data[: self.used]
        self.data = more

    def add(self, data: Bytes) -> None:
        while self.remaining() < len(data):
            self.grow()
        self.data[self.used : self.used + len(data)] = data
        self.used += len(data)


def _unpack_one(room: _Room, codec: int, data: Bytes) -> None:
    if codec == SNAPPY:
        for block in _snappy_blocks(data.data):
            room.add(block)
        return
    if codec not in STREAMS:
        raise ValueError(f"nothing is packed by codec {codec}")
    before = room.used
    with pa.CompressedInputStream(pa.py_buffer(data), STREAMS[codec]) as stream:
        while True:
            left = room.remaining()
            room.used += stream.readinto(room.data.data[room.used : room.used + left])
            if room.used - before > MAX_BATCH_BYTES:
                raise ValueError(f"its records have more than {MAX_BATCH_BYTES} bytes")
            if room.remaining():
                return
            room.grow()


def _snappy_blocks(data: memoryview) -> Iterator[Bytes]:
    if bytes(data[: len(_JAVA)]) != _JAVA:
        yield _snappy(data)
        return
    at = _JAVA_HEAD
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        at += 4
        if not 0 <= size <= len(data) - at:
            raise ValueError("a block of Snappy is cut off")
        yield _snappy(data[at : at + size])
        at += size


def _snappy(block: memoryview) -> Bytes:
    """Unpacks a block, which begins with its unpacked size: seven bits a byte, the low ones
    first.
    """
    size = 0
    for k, c in enumerate(block[:5]):
        size |= (c & 127) << 7 * k
        if c < 128:
            break
    if size > min(MAX_BATCH_BYTES, 64 * len(block) + 64):  # Snappy makes at most 64 bytes of three
        raise ValueError("a block of Snappy says a size that it cannot have")
    data = pa.Codec("snappy").decompress(pa.py_buffer(block), size)
    return np.frombuffer(data, np.uint8)
