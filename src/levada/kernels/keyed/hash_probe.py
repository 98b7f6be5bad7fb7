"""The join of a batch and a run in bucket order: rows of equal key, a common instant.

A row counts at the instants of ``[s, e)``; a pair counts where both do, so it exists iff max(s) <
min(e). The rows of a bucket are in order of ``s``: for a probe row only those with ``s < its e``
and ``s > its s - longest`` can match, where ``longest`` is the longest interval in the run. Two
binary searches narrow a large bucket to them, so a key with a third of all rows costs by its
matches (the narrowing replaces block nested loops over expired-sorted blocks:
parallel-windowed-stream-joins, section IV).

The kernel runs in blocks of three phases (look up the directory, touch the first rows, compare) so
that cache misses overlap, and in one pass: it stops before a probe row whose candidates might not
fit in the output and can be resumed.

Cost: 20 to 40 ns a probe row without matches in cache-cold runs, 3 to 6 ns a pair beyond that. One
piece of 16 k to 50 k probe rows at a time keeps the output in cache; runs cost one pass each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Ints, Words
from levada.core.event_time import MAX, MIN, Times
from levada.kernels import I32, I64, INT, OUT_I32, U64, fuse, kernel
from levada.kernels.keyed.bucket_layout import bits_for, bucket_order
from levada.kernels.keyed.radix_sort import in_order

BLOCK = 128
NARROW = 16  # a bucket of more rows than this is narrowed by time
LEAST_OUTPUT = 1024


class Buckets(NamedTuple):
    """A run as the kernels read it: columns in bucket order, rows of a bucket in order of ``s``.

    ``directory`` has 2**bits + 1 starts; ``longest`` is ``longest_of(s, e)`` or more. Where every
    interval is that long ``e`` is empty: most windows are the same for all rows. For
    ``probe_latest`` s is the event time, and e is not read.
    """

    k: Words
    h: Words
    s: Times
    e: Times
    directory: Ints
    bits: int
    longest: int

    @property
    def ends(self) -> Times:
        """``e`` of each row."""
        return self.e if len(self.e) == len(self.s) else self.s + self.longest


def longest_of(s: Times, e: Times) -> int:
    """Returns the length of the longest interval (0 without intervals); MAX if one is unbounded.

    >>> longest_of(np.array([1, 5]), np.array([4, 6])), longest_of(np.array([1]), np.array([MAX]))
    (3, 4611686018427387904)
    """
    counts = s < e
    if not counts.any():
        return 0
    if s.min(where=counts, initial=MAX) <= MIN or e.max(where=counts, initial=MIN) >= MAX:
        return MAX
    return min(int((e - s).max(where=counts, initial=0)), MAX)


def arrange(k: Words, h: Words, s: Times, e: Times) -> tuple[npt.NDArray[np.int64], Buckets]:
    """Rows as ``Buckets``, with the order that puts further columns of theirs in the same order."""
    in_time = bool((s[:-1] <= s[1:]).all())
    by_time = None if in_time else in_order(s)
    bits = bits_for(len(k))
    order, directory = bucket_order(k if by_time is None else k[by_time], bits)
    rows = order.astype(np.int64) if by_time is None else by_time[order]
    length = common_length(s, e)
    ends = e[rows] if length is None else e[:0]
    return rows, Buckets(
        k[rows],
        h[rows],
        s[rows],
        ends,
        directory,
        bits,
        longest_of(s, e) if length is None else length,
    )


def common_length(s: Times, e: Times) -> int | None:
    """The length that all these intervals have, if they have one and neither side is unbounded.

    >>> common_length(np.array([1, 5]), np.array([4, 8]))
    3
    >>> common_length(np.array([1, 5]), np.array([4, 9])) is None
    True
    >>> common_length(np.array([MIN + 1]), np.array([5])) is None  # no run remembers more than MAX
    True
    """
    if not len(s) or s.min() <= MIN or e.max() >= MAX:
        return None
    lengths = e - s
    length = int(lengths[0])
    return length if 0 < length < MAX and (lengths == length).all() else None


def join_pairs(
    k: Words, h: Words, s: Times, e: Times, run: Buckets, most: int = MAX
) -> tuple[Ints, Ints]:
    """Returns all pairs (i, j): probe row i and row j of the run (its place in bucket order) of
    equal key that meet in time.

    Ordered by i, then by j. The probe rows may be in any order; rows with ``s >= e`` match nothing.
    It stops when there are more than ``most``.
    """
    return pairs_of_some(k, h, s, e, run, most)[:2]


def pairs_of_some(
    k: Words, h: Words, s: Times, e: Times, run: Buckets, most: int
) -> tuple[Ints, Ints, int]:
    """The same, and of how many of the first probe rows these are all the pairs: of at least one,
    and it stops soon after ``most`` pairs.
    """
    start, rows = 0, k.size
    room = max(LEAST_OUTPUT, rows)
    parts: list[tuple[Ints, Ints]] = []
    total = 0
    while start < rows and total <= most:
        i, j = np.empty(room, np.int32), np.empty(room, np.int32)
        stop, n = probe(k, h, s, e, *run, start, i, j)
        parts.append((i[:n], j[:n]))
        total += n
        room *= 2  # the room for one probe row, and the rest, grow geometrically
        start = stop
    if len(parts) == 1:
        return *parts[0], start
    empty = np.empty(0, np.int32)
    i, j = (np.concatenate([empty, *of]) for of in zip((empty, empty), *parts, strict=True))
    return i, j, start


@fuse
def first_at_least(times: Times, low: int, high: int, t: int) -> int:
    """The first place in ``times[low:high]``, sorted, that holds t or more; ``high`` if none."""
    while low < high:
        middle = (low + high) >> 1
        if times[middle] < t:
            low = middle + 1
        else:
            high = middle
    return low


@fuse
def locate(
    pk: Words, start: int, count: int, directory: Ints, bits: int, low: Ints, high: Ints
) -> None:
    """Phase one: the buckets of a block of probe rows."""
    shift = np.uint64(64 - bits)
    for q in range(count):
        b = np.int64(pk[start + q] >> shift)
        low[q] = directory[b]
        high[q] = directory[b + 1]


@fuse
def touch(
    pk: Words,
    start: int,
    count: int,
    rk: Words,
    rh: Words,
    rs: Times,
    low: Ints,
    first: Words,
    loaded: Times,
) -> None:
    """Phase two: the first key of each bucket, and where it is the key sought, the columns of that
    row that are always read.

    ``first`` is used to reject single candidates; ``loaded`` is written for the loads' sake only:
    they bring the cache lines in while later rows are looked at.
    """
    last = rk.size - 1
    for q in range(count):
        a = min(low[q], last)
        first[q] = rk[a]
        if rk[a] == pk[start + q]:
            loaded[q] = rs[a] ^ np.int64(rh[a])


@kernel((U64, U64, I64, I64, U64, U64, I64, I64, I32, INT, INT, INT, OUT_I32, OUT_I32))
def probe(
    pk: Words,
    ph: Words,
    ps: Times,
    pe: Times,
    rk: Words,
    rh: Words,
    rs: Times,
    re: Times,
    directory: Ints,
    bits: int,
    longest: int,
    start: int,
    out_i: Ints,
    out_j: Ints,
) -> tuple[int, int]:
    """Pairs from probe row ``start`` on, written to ``out_i, out_j``; returns (next probe row,
    number of pairs).

    It stops early before a row that has more candidates than there is room; if that is the very
    first, the output must grow.
    """
    n = 0
    low, high = np.empty(BLOCK, np.int32), np.empty(BLOCK, np.int32)
    first, loaded = np.empty(BLOCK, np.uint64), np.empty(BLOCK, np.int64)
    if rk.size == 0:
        return pk.size, 0
    alike = re.size < rs.size  # all intervals are ``longest``
    for base in range(start, pk.size, BLOCK):
        count = min(BLOCK, pk.size - base)
        locate(pk, base, count, directory, bits, low, high)
        touch(pk, base, count, rk, rh, rs, low, first, loaded)
        for q in range(count):
            i = base + q
            a, z = int(low[q]), int(high[q])
            x, y, s, e = pk[i], ph[i], ps[i], pe[i]
            if a == z or (z == a + 1 and first[q] != x) or s >= e:
                continue
            if z - a > NARROW:
                if longest < MAX:
                    a = first_at_least(rs, a, z, s - longest + 1)
                z = first_at_least(rs, a, z, e)
            if n + z - a > out_i.size:
                return i, n
            for j in range(a, z):
                if (
                    rk[j] == x
                    and rh[j] == y
                    and max(s, rs[j]) < min(e, rs[j] + longest if alike else re[j])
                ):
                    out_i[n] = i
                    out_j[n] = j
                    n += 1
    return pk.size, n


def warm() -> None:
    """One join of one row: a process's first call of any kernel costs 10 ms more."""
    one, time = np.ones(1, np.uint64), np.zeros(1, np.int64)
    _, run = arrange(one, one, time, time + 1)
    join_pairs(one, one, time, time + 1, run)
