"""Parses the answer of a Fetch into batches, and batches into one text with places, offsets and
times.

Kernels parse headers and checksums (``kernels.kafka.record_batches``), then records (``.records``).
Transaction markers and, with read_committed, records of aborted transactions are dropped when the
answer arrives, since only the whole answer shows which these are.

Source: KIP-98. Cost: some 10 us an answer, 20 us a packed batch; the rest is kernels'.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from levada.connectors.sources.kafka.wire_protocol import BrokerError
from levada.connectors.sources.message_texts import Loss, Messages
from levada.core.array_types import Bools, Bytes, Longs
from levada.core.frozen import frozen
from levada.kernels.kafka.record_batches import (
    ATTRIBUTES,
    COUNT,
    DAMAGED,
    END,
    FIELDS,
    FIRST,
    HEADER,
    LAST,
    LATEST,
    MAGIC,
    OLD,
    PLACE,
    PRODUCER,
    TIME,
    read_batches,
)
from levada.kernels.kafka.records import MIN_RECORD_BYTES, NO_TIME, OVER, join_values, read_records
from levada.kernels.text.byte_ops import parsing_room

# Unpacks record batches, one after the other into one buffer.
#
# gzip, LZ4 frames and Zstandard are read as streams, since batches do not contain their unpacked
# size. Snappy's blocks do, either one alone or several in the frame of snappy-java.
#
# Cost: that of Arrow's codecs, and some 20 us a batch.


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


Table = npt.NDArray[np.int64]  # a row a batch, by the columns of the kernel
CODEC, APPENDED, TRANSACTIONAL, CONTROL = 7, 8, 16, 32  # bits of attributes
CORRUPT = 2  # error code
_KIND = 7  # the offset of a marker's kind: after five one-byte numbers and its version
_ABORT = b"\0\0"


class DamagedBatchError(BrokerError):
    """An unreadable batch at ``first``; ``behind``: the offset after it, 0 if unknown."""

    def __init__(self, first: int, behind: int, why: str) -> None:
        super().__init__(f"the batch at the offset {first} is damaged: {why}", CORRUPT, final=True)
        self.first, self.behind = first, behind


@frozen
class Batches:
    """The visible batches of an answer, and the offset after all of them. ``aborted``: producer and
    first offset of transactions, ascending.
    """

    data: Bytes
    table: Table
    behind: int

    @classmethod
    def parse(cls, data: Bytes, at: int, aborted: Sequence[tuple[int, int]]) -> Batches:
        """Parses the answer of a Fetch from ``at`` on; data have ``OVER`` padding bytes after them.
        Raises ``BrokerError``.
        """
        out: Longs = np.empty((len(data) // HEADER + 1) * FIELDS, np.int64)
        n, fault = read_batches(data, out)
        table = out[: n * FIELDS].reshape(n, FIELDS)
        behind = max(at, int(table[-1, LAST]) + 1) if n else at
        if fault == DAMAGED and not n:
            raise DamagedBatchError(at, _next_offset(data), "its checksum or its size is wrong")
        if fault == OLD and not n:
            why = "its format, of before Kafka 0.11, is not read"
            raise DamagedBatchError(at, _next_offset(data, old=True), why)
        seen = (table[:, ATTRIBUTES] & CONTROL) == 0
        if aborted:
            seen &= ~_mark_aborted(data, table, aborted)
        return cls(data, table[seen], behind)

    def rows_before(self, stop: int) -> Table:
        """Returns the rows of batches with offsets before ``stop``."""
        return self.table[self.table[:, FIRST] < stop]

    def rest(self, stop: int) -> Batches | None:
        """Returns the remaining batches for a range that begins at ``stop``."""
        if self.behind <= stop:
            return None
        return replace(self, table=self.table[self.table[:, LAST] >= stop])


def _next_offset(data: Bytes, *, old: bool = False) -> int:
    """Returns the offset after a damaged batch at the beginning of data: that of the next batch,
    else that in its header, if it is plausible; 0: unknown. ``old``: it has no such header.
    """
    if len(data) < HEADER:
        return 0
    head = data.tobytes()[:HEADER]
    first, size = struct.unpack_from(">qi", head)
    following = size + 12
    if HEADER <= following <= len(data) - 17:
        begin: int = struct.unpack(">q", data[following : following + 8].tobytes())[0]
        if begin > first and (old or data[following + 16] == MAGIC):
            return begin
    if old:
        return 0
    (later,), (count,) = struct.unpack_from(">i", head, 23), struct.unpack_from(">i", head, 57)
    return first + later + 1 if 0 < count <= min(later + 1, size // MIN_RECORD_BYTES) else 0


def _mark_aborted(data: Bytes, table: Table, aborted: Sequence[tuple[int, int]]) -> Bools:
    """Returns a mask of the batches of aborted transactions: those of a producer from its
    transaction's first offset up to its marker.
    """
    waiting = sorted(aborted, key=lambda each: each[1], reverse=True)
    open_: set[int] = set()
    of_aborted = np.zeros(len(table), np.bool_)
    for k, row in enumerate(table.tolist()):
        while waiting and waiting[-1][1] <= row[LAST]:
            open_.add(waiting.pop()[0])
        if row[ATTRIBUTES] & CONTROL:
            kind = data[row[PLACE] + _KIND : row[PLACE] + _KIND + 2].tobytes()
            if row[COUNT] and kind == _ABORT:
                open_.discard(row[PRODUCER])
        elif row[ATTRIBUTES] & TRANSACTIONAL:
            of_aborted[k] = row[PRODUCER] in open_
    return of_aborted


@frozen
class Records:
    """Records in the order of their offsets: the places of their values (a length of -1 is null),
    offsets, times. ``more``: four numbers each, if requested (``kernels.kafka``). ``held``: the
    buffers with the bytes. ``damaged``: unreadable ones, by first offset.
    """

    place: Longs
    length: Longs
    offset: Longs
    time: Longs
    more: Longs
    held: Sequence[Bytes] = field(repr=False)
    damaged: tuple[Loss, ...] = ()

    def join(self, *, timed: bool, lost: tuple[Loss, ...]) -> tuple[Bytes, Messages]:
        """Joins the records with a value to one text, each followed by a newline, with padding for
        the parser.
        """
        place, length, offset, time = self.place, self.length, self.offset, self.time
        nulls = 0
        if len(length) and length.min() < 0:
            there = length >= 0
            nulls = len(there) - int(there.sum())
            place, length, offset, time = place[there], length[there], offset[there], time[there]
        n = len(offset)
        starts: Longs = np.zeros(n + 1, np.int64)
        np.cumsum(length + 1, out=starts[1:])
        size = int(starts[-1])
        data: Bytes = np.empty(size + max(parsing_room(size), OVER), np.uint8)
        join_values(place, length, starts, data)
        times = time if timed else np.zeros(n, np.int64)
        return data[:size], Messages(starts, offset, times, nulls, lost + self.damaged)


def read(
    answers: Sequence[tuple[Bytes, Table]], start: int, stop: int, *, more: bool = False
) -> Records:
    """Returns the records of [start, stop) of batches, from the answers' data. Raises
    ``BrokerError``.
    """
    table = np.concatenate([np.zeros((0, FIELDS), np.int64), *(rows for _, rows in answers)])
    size = table[:, END] - table[:, PLACE]
    address = np.concatenate(
        [np.zeros(0, np.int64), *(data.ctypes.data + rows[:, PLACE] for data, rows in answers)]
    )
    held = [data for data, _ in answers]
    codec = table[:, ATTRIBUTES] & CODEC
    packed = np.flatnonzero(codec != NONE)
    if len(packed):
        held.append(_unpack_batches(answers, table, packed, address, size))
    count = table[:, COUNT]
    wrong = (count < 0) | (count * MIN_RECORD_BYTES > size)
    if wrong.any():
        raise _damage(table, int(wrong.argmax()), "it cannot have as many records as it says")
    fixed = np.where(table[:, ATTRIBUTES] & APPENDED, table[:, LATEST], NO_TIME)
    most = int(count.sum())
    place, length, offset, time = (np.empty(most, np.int64) for _ in range(4))
    rest = np.empty(4 * most * more, np.int64)
    n = read_records(
        address, size, count.copy(), table[:, FIRST].copy(), table[:, TIME].copy(), fixed,
        start, stop, place, length, offset, time, rest,
    )  # fmt: skip
    if n < 0:
        raise _damage(table, -1 - n, "a record goes beyond its end")
    return Records(place[:n], length[:n], offset[:n], time[:n], rest[: 4 * n], held)


def _unpack_batches(
    answers: Sequence[tuple[Bytes, Table]], table: Table, packed: Longs, address: Longs, size: Longs
) -> Bytes:
    """Returns the buffer with the records of packed batches; sets address and size to it."""
    whose = np.repeat(np.arange(len(answers)), [len(rows) for _, rows in answers])
    rows = table[packed]
    pieces = [
        (row[ATTRIBUTES] & CODEC, answers[k][0][row[PLACE] : row[END]])
        for k, row in zip(whose[packed].tolist(), rows.tolist(), strict=True)
    ]
    try:
        data, starts = unpack(pieces)
    except PackedError as error:
        raise _damage(rows, error.number, f"it cannot be unpacked ({error})") from error
    address[packed] = data.ctypes.data + starts[:-1]
    size[packed] = np.diff(starts)
    return data


def _damage(table: Table, row: int, why: str) -> DamagedBatchError:
    return DamagedBatchError(int(table[row, FIRST]), int(table[row, LAST]) + 1, why)
