"""Keys of 128 bits and bucket order: the layout of the rows of a keyed operator
(docs/architecture.md#a-triples-way).

A key is two uint64 halves ``(k, h)``, made of the identities of its slots by ``combine`` and of the
operator's number by ``mix``. Both halves contain the operator, so an equal ``(k, h)`` proves an
equal ``op`` and 10,000 operators share one run. The top bits of ``k`` choose the bucket, those of
``h`` the key group (``key_partitioner``): they are independent.

*Bucket order* is the stable order by the top ``bits`` bits of ``k``, with a directory of 2**bits +
1 starts: rows that arrive in time order stay in time order inside a bucket, as narrowing by time
needs it. It is not a sort by key.

Cost: mix and combine 1 to 3 ns a row, bucket order 4 to 8 ns (one counting pass up to 16 bits, else
two).
"""

from __future__ import annotations

import numpy as np

from levada.core.array_types import Ints, Words
from levada.core.event_time import Times
from levada.kernels import I32, I64, INT, U64, fuse, kernel

ONE_PASS_BITS = 16
LEAST_BITS, MOST_BITS = 4, 28

_ONE = np.uint64(1)
_SHIFT_A, _SHIFT_B, _SHIFT_C = np.uint64(32), np.uint64(29), np.uint64(33)
_ODD_A = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio
_ODD_B = np.uint64(0xD1B54A32D192ED03)
_ODD_C = np.uint64(0xAEF17502108EF2D9)
_ODD_D = np.uint64(0xDB4F0B9175AE2165)


@fuse
def avalanche(z: np.uint64) -> np.uint64:
    """A bijection of 64-bit words in which each bit moves about half of the output's bits."""
    z = (z ^ (z >> _SHIFT_A)) * _ODD_B
    z = (z ^ (z >> _SHIFT_B)) * _ODD_C
    return z ^ (z >> _SHIFT_C)


@kernel((U64, U64, I32))
def mix(xs: Words, ys: Words, op: Ints) -> tuple[Words, Words]:
    """Identities ``xs, ys`` with the operator's number in both halves.

    One op maps distinct identities to distinct keys; the same identity under two ops differs in
    both halves.
    """
    k = np.empty(xs.size, np.uint64)
    h = np.empty(xs.size, np.uint64)
    for i in range(xs.size):
        m = avalanche((np.uint64(op[i]) + _ONE) * _ODD_A)
        k[i] = xs[i] ^ m
        h[i] = ys[i] + m
    return k, h


@kernel((U64, U64, U64, U64))
def combine(k: Words, h: Words, x: Words, y: Words) -> tuple[Words, Words]:
    """The key ``(k, h)`` with one more slot's identity ``(x, y)`` folded in; order matters.

    For a fixed key it is a bijection of ``(x, y)`` and the reverse, so keys that differ in one slot
    never collide.
    """
    to_k = np.empty(k.size, np.uint64)
    to_h = np.empty(k.size, np.uint64)
    for i in range(k.size):
        a = k[i] * _ODD_A + x[i]
        b = h[i] * _ODD_D + y[i]
        a = avalanche(a + b * _ODD_C)
        to_h[i] = avalanche(b + a * _ODD_B)
        to_k[i] = a
    return to_k, to_h


@kernel((U64, U64, I64, I64))
def combine_instants(k: Words, h: Words, a: Times, b: Times) -> tuple[Words, Words]:
    """Adds two instants to the key ``(k, h)`` of well mixed halves, for grouping by them, for a
    sixth of ``combine``'s cost.

    For a fixed key it is a bijection of the instants.
    """
    to_k = np.empty(k.size, np.uint64)
    to_h = np.empty(k.size, np.uint64)
    for i in range(k.size):
        to_k[i] = k[i] + np.uint64(a[i]) * _ODD_A
        to_h[i] = h[i] + np.uint64(b[i]) * _ODD_D
    return to_k, to_h


def bits_for(n: int) -> int:
    """How many top bits make about ``n`` to ``2 n`` buckets.

    >>> bits_for(1000), bits_for(0)
    (10, 4)
    """
    return max(LEAST_BITS, min(MOST_BITS, (n - 1).bit_length()))


def bucket_order(k: Words, bits: int) -> tuple[Ints, Ints]:
    """Rows in bucket order, and directory: bucket b is ``order[directory[b]:directory[b + 1]]``.

    ``bits`` is 1 to 28 (see ``bits_for``), and there are fewer than 2**31 rows.

    >>> order, directory = bucket_order(np.array([1 << 63, 0, 1 << 63], np.uint64), 1)
    >>> order.tolist(), directory.tolist()
    ([1, 0, 2], [0, 1, 3])
    """
    assert 1 <= bits <= MOST_BITS, "a directory has 2 to 2**28 buckets"
    assert len(k) < 2**31, "a run has fewer than 2**31 rows"
    return _one_pass(k, bits) if bits <= ONE_PASS_BITS else _two_passes(k, bits)


@fuse
def _counts_to_starts(counts: Ints) -> None:
    """Counts, shifted by one place, become starts."""
    for b in range(1, counts.size):
        counts[b] += counts[b - 1]


@kernel((U64, INT))
def _one_pass(k: Words, bits: int) -> tuple[Ints, Ints]:
    """A stable counting sort on the top bits."""
    shift = np.uint64(64 - bits)
    directory = np.zeros((1 << bits) + 1, np.int32)
    for i in range(k.size):
        directory[np.int64(k[i] >> shift) + 1] += 1
    _counts_to_starts(directory)
    place = directory[:-1].copy()
    order = np.empty(k.size, np.int32)
    for i in range(k.size):
        b = np.int64(k[i] >> shift)
        order[place[b]] = i
        place[b] += 1
    return order, directory


@fuse
def _sort_part(low: Ints, row: Ints, start: int, order: Ints, directory: Ints) -> None:
    """A stable counting sort of one part into ``order[start:]``; ``directory`` is the part's share,
    with its end.
    """
    directory[:] = 0
    directory[0] = start
    for q in range(low.size):
        directory[low[q] + 1] += 1
    _counts_to_starts(directory)
    # moves each start to its bucket's end, that is to the start of the next
    for q in range(low.size):
        order[directory[low[q]]] = row[q]
        directory[low[q]] += 1
    for b in range(directory.size - 1, 0, -1):
        directory[b] = directory[b - 1]
    directory[0] = start


@kernel((U64, INT))
def _two_passes(k: Words, bits: int) -> tuple[Ints, Ints]:
    """The same by the high half of the top bits, then each part by the low half, which stays in the
    nearest cache.
    """
    shift = np.uint64(64 - bits)
    low_bits = bits // 2
    starts = np.zeros((1 << (bits - low_bits)) + 1, np.int32)
    for i in range(k.size):
        starts[(np.int64(k[i] >> shift) >> low_bits) + 1] += 1
    _counts_to_starts(starts)
    place = starts[:-1].copy()
    low = np.empty(k.size, np.int32)
    row = np.empty(k.size, np.int32)
    for i in range(k.size):
        b = np.int64(k[i] >> shift)
        p = place[b >> low_bits]
        place[b >> low_bits] = p + 1
        low[p] = b & ((1 << low_bits) - 1)
        row[p] = i
    order = np.empty(k.size, np.int32)
    directory = np.empty((1 << bits) + 1, np.int32)
    for part in range(starts.size - 1):
        a, z = starts[part], starts[part + 1]
        _sort_part(
            low[a:z], row[a:z], a, order, directory[part << low_bits : ((part + 1) << low_bits) + 1]
        )
    return order, directory
