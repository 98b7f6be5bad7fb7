"""Record batches of Kafka (magic 2), one behind the other: their boundaries and headers. The
checksum of each is computed and compared.

A row of ``out`` is a batch, its columns are named below. ``PLACE`` to ``END`` are the bytes behind
the header, which may be compressed. Bytes behind the last whole batch are the beginning of a batch
that the broker has cut off, which is allowed.

Source: https://kafka.apache.org/documentation/#recordbatch. Cost: that of the checksum. The twin is
in ``tests/support/kafka_record_batches.py``.
"""

from __future__ import annotations

from numba import types

from levada.core.array_types import Bytes, Longs
from levada.kernels import U8, kernel, part
from levada.kernels.kafka.crc32c import checksum
from levada.kernels.text.byte_ops import View, byte, view_of

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
