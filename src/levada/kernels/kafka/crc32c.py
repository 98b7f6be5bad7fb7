"""CRC32C (Castagnoli), the checksum of Kafka's record batches: eight bytes a step through eight
tables.

Source: RFC 3720, B.4 (polynomial and test vectors); "slicing by 8" of M. Kounavis and F. Berry, "A
Systematic Approach to Building High Performance, Software-based, CRC Generators" (2005). Cost: a
look-up a byte, some 2 GB a CPU-second. The twin in ``tests/support/kafka_record_batches.py`` goes
bit by bit.
"""

from __future__ import annotations

import numpy as np

from levada.core.array_types import Bytes, Words
from levada.kernels import INT, U8, inline, kernel
from levada.kernels.text.byte_ops import View, W, as_int, byte, view_of, word

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
