"""Record batches of Kafka (magic 2), one behind the other: their boundaries and headers. The
checksum of each is computed and compared.

A row of ``out`` is a batch, its columns are named below. ``PLACE`` to ``END`` are the bytes behind
the header, which may be compressed. Bytes behind the last whole batch are the beginning of a batch
that the broker has cut off, which is allowed.

Source: https://kafka.apache.org/documentation/#recordbatch. Cost: that of the checksum. The twin is
in ``tests/support/kafka_record_batches.py``.
"""

from __future__ import annotations

import numpy as np
from numba import types

from levada.core.array_types import Bytes, Longs, Words
from levada.kernels import INT, U8, inline, kernel, part
from levada.kernels.text.byte_ops import View, W, as_int, byte, view_of, word

# CRC32C (Castagnoli), the checksum of Kafka's record batches: eight bytes a step through eight
# tables.
#
# Source: RFC 3720, B.4 (polynomial and test vectors); "slicing by 8" of M. Kounavis and F. Berry,
# "A Systematic Approach to Building High Performance, Software-based, CRC Generators" (2005). Cost:
# a look-up a byte, some 2 GB a CPU-second. The twin in ``tests/support/kafka_record_batches.py``
# goes bit by bit.


POLYNOMIAL = 0x82F63B78  # reflected
ONES = W(0xFFFFFFFF)
LOW = W(255)


def _tables() -> Words:
    """Returns the tables: entry 256 k + b is the contribution of the byte b with k bytes behind
    it.
    """
    entries = np.zeros(8 * 256, np.uint64)
    for b in range(256):
        value = b
        for _ in range(8):
            value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0)
        entries[b] = value
    for at in range(256, 8 * 256):
        before = entries[at - 256]
        entries[at] = entries[before & LOW] ^ (before >> W(8))
    return entries


TABLES = _tables()


@inline
def checksum(view: View, start: int, stop: int) -> int:
    """The CRC32C of the bytes from ``start`` to ``stop``."""
    crc = ONES
    at = start
    while stop - at >= 8:
        x = word(view, at) ^ crc
        crc = (
            TABLES[1792 + as_int(x & LOW)]
            ^ TABLES[1536 + as_int((x >> W(8)) & LOW)]
            ^ TABLES[1280 + as_int((x >> W(16)) & LOW)]
            ^ TABLES[1024 + as_int((x >> W(24)) & LOW)]
            ^ TABLES[768 + as_int((x >> W(32)) & LOW)]
            ^ TABLES[512 + as_int((x >> W(40)) & LOW)]
            ^ TABLES[256 + as_int((x >> W(48)) & LOW)]
            ^ TABLES[as_int(x >> W(56))]
        )
        at += 8
    while at < stop:
        crc = TABLES[as_int((crc ^ W(byte(view, at))) & LOW)] ^ (crc >> W(8))
        at += 1
    return as_int(crc ^ ONES)


@kernel((U8, INT, INT))
def crc32c(data: Bytes, start: int, stop: int) -> int:
    """The CRC32C of a range of bytes."""
    return checksum(view_of(data), start, stop)


PLACE, END, FIRST, LAST, ATTRIBUTES, TIME, LATEST, PRODUCER, COUNT = range(9)
FIELDS = 9
SOUND, OLD, DAMAGED = 0, 1, 2
HEADER = 61  # bytes
MAGIC = 2

_OUT = types.Array(types.int64, 1, "C")


@part
def _big(view: View, at: int, size: int) -> int:
    """The signed big-endian number of ``size`` bytes."""
    value = byte(view, at)
    if value > 127:
        value -= 256
    for k in range(1, size):
        value = (value << 8) | byte(view, at + k)
    return value


@kernel((U8, _OUT))
def read_batches(data: Bytes, out: Longs) -> tuple[int, int]:
    """Returns the number of whole batches, and the defect of the next one (``SOUND``: none). Fills
    ``out``, which has room for a row each ``HEADER`` bytes.
    """
    view, size = view_of(data), len(data)
    at, n = 0, 0
    while at + 17 <= size:
        length = _big(view, at + 8, 4)
        magic = byte(view, at + 16)
        if magic < MAGIC:
            return n, OLD
        if magic > MAGIC or length < HEADER - 12:
            return n, DAMAGED
        end = at + 12 + length
        if end > size:
            break
        said = _big(view, at + 17, 4) & 0xFFFFFFFF
        if checksum(view, at + 21, end) != said:
            return n, DAMAGED
        row = n * FIELDS
        out[row + PLACE] = at + HEADER
        out[row + END] = end
        out[row + FIRST] = _big(view, at, 8)
        out[row + ATTRIBUTES] = _big(view, at + 21, 2)
        out[row + LAST] = out[row + FIRST] + _big(view, at + 23, 4)
        out[row + TIME] = _big(view, at + 27, 8)
        out[row + LATEST] = _big(view, at + 35, 8)
        out[row + PRODUCER] = _big(view, at + 43, 8)
        out[row + COUNT] = _big(view, at + 57, 4)
        at = end
        n += 1
    return n, SOUND
