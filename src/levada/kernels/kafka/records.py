"""Records of Kafka's batches: the places of their values, their offsets and times; and values as
one text.

A batch is described by the address and the size of its unpacked records, its header's count, first
offset and first time, and by the time that all its records have (``NO_TIME``: each its own). A
record begins with its length, so the bytes behind the value (headers) are skipped unless they are
wanted. A length of -1 is null. Numbers are zigzag varints of any size. A length that would leave
the batch is damage, and nothing behind it is read.

Source: https://kafka.apache.org/documentation/#record. Cost: some ten bytes looked at a record, and
a copy of the value by eight bytes. The twin is in ``tests/support/kafka_record_batches.py``.
"""

from __future__ import annotations

from numba import types

from levada.core.array_types import Bytes, Longs
from levada.kernels import I64, INT, kernel, part
from levada.kernels.text.byte_ops import View, W, as_int, byte, number, put, set_number, view_of

NO_TIME = -(1 << 63)
MIN_RECORD_BYTES = 7
"""Bytes of the smallest record."""
OVER = 8
"""Bytes behind what is copied, and behind where it is copied to, that are touched, too."""

_OUT = types.Array(types.int64, 1, "C")
_BYTES = types.Array(types.uint8, 1, "C")


@part
def _varint(view: View, at: int, end: int) -> tuple[int, int]:
    """A number, and the place behind it; -1 if it does not end before ``end``."""
    bits, shift = W(0), 0
    while at < end and shift < 70:
        c = byte(view, at)
        at += 1
        bits |= W(c & 127) << W(shift)
        if c < 128:
            return as_int(bits >> W(1)) ^ -as_int(bits & W(1)), at
        shift += 7
    return 0, -1


@part
def _blob(view: View, at: int, end: int) -> tuple[int, int]:
    """Returns the size of the bytes whose length is at ``at``, and where they begin; -1 for
    null.
    """
    size, at = _varint(view, at, end)
    if at < 0 or size < -1 or size > end - at:
        return 0, -1
    return size, at


@kernel((I64, I64, I64, I64, I64, I64, INT, INT, _OUT, _OUT, _OUT, _OUT, _OUT))
def read_records(
    address: Longs,
    size: Longs,
    count: Longs,
    first: Longs,
    base: Longs,
    fixed: Longs,
    start: int,
    stop: int,
    place: Longs,
    length: Longs,
    offset: Longs,
    time: Longs,
    more: Longs,
) -> int:
    """How many records are in [start, stop): of each the address and the length of its value, its
    offset and time. ``more``: room for four numbers a record (address and length of the key and of
    the headers, their count first), or empty. A batch k that is damaged: -1 - k.
    """
    n = 0
    for k in range(len(address)):
        view = (int(address[k]), int(size[k]))
        at = 0
        for _ in range(count[k]):
            whole, at = _blob(view, at, size[k])
            if at < 0 or whole < 0:
                return -1 - k
            end = at + whole
            later, at = _varint(view, at + 1, end)  # behind the attributes, which say nothing
            if at < 0:
                return -1 - k
            further, at = _varint(view, at, end)
            if at < 0:
                return -1 - k
            key_size, key = _blob(view, at, end)
            if key < 0:
                return -1 - k
            value_size, at = _blob(view, key + max(key_size, 0), end)
            if at < 0:
                return -1 - k
            here = first[k] + further
            if start <= here < stop:
                place[n] = address[k] + at
                length[n] = value_size
                offset[n] = here
                time[n] = base[k] + later if fixed[k] == NO_TIME else fixed[k]
                if len(more):
                    behind = at + max(value_size, 0)
                    more[4 * n] = address[k] + key
                    more[4 * n + 1] = key_size
                    more[4 * n + 2] = address[k] + behind
                    more[4 * n + 3] = end - behind
                n += 1
            at = end
    return n


@kernel((I64, I64, I64, _BYTES))
def join_values(place: Longs, length: Longs, starts: Longs, out: Bytes) -> None:
    """Copies values to where each starts in a text, a newline behind each. ``OVER`` bytes can be
    read behind each, and written behind the last one.
    """
    whole = view_of(out)
    for k in range(len(place)):
        at, n = int(starts[k]), int(length[k])
        source, target = (int(place[k]), n + OVER), (whole[0] + at, whole[1] - at)
        for word in range((n + 7) >> 3):
            set_number(target, word, number(source, word))
        put(target, n, 10)
