"""Ranges of keys, and the directory of bounded ranges: extendible hashing by the next bits of the
keys, which are hashes (Parallel windowed joins, section V; W23 to W26).

A range of *depth* d and *prefix* p has the keys whose first d bits are p. Its *buddy* differs in
the last of these bits, and both together are a range one less deep. A directory is the set of its
leaves: each key is in exactly one. A leaf larger than two theta is cut in two, again and again;
buddies that are no larger together are one. So all leaves but hot ones have two theta at most, and
two buddies more than that. A range is *hot* if cutting it would leave nearly all of it in one half:
then one key has most of it, and no bit divides that key.

The paper counts bits from the least significant one, of a second hash; here they are the first
ones, which define bucket order: so a range of a run is one part of its buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from levada.core.array_types import Bools, Words
from levada.core.size_thresholds import register

DEEPEST = 40
HOT = register(f"{__name__}.HOT", 32)
"""A half with all but one of so many parts is hot."""
ALONE = register(f"{__name__}.ALONE", 6)
"""After so many bits that part nothing there is one key, in all likelihood."""
_BITS = 64


class Range(NamedTuple):
    """The keys whose first ``depth`` bits are ``prefix``; depth 0: all keys.

    >>> Range(2, 0b10).halves
    (Range(depth=3, prefix=4), Range(depth=3, prefix=5))
    """

    depth: int = 0
    prefix: int = 0

    @property
    def halves(self) -> tuple[Range, Range]:
        """The two ranges by the next bit."""
        return Range(self.depth + 1, 2 * self.prefix), Range(self.depth + 1, 2 * self.prefix + 1)

    @property
    def buddy(self) -> Range:
        """The range with which this one makes a range one less deep."""
        return Range(self.depth, self.prefix ^ 1)

    def within(self, other: Range) -> bool:
        """Whether all of its keys are in another range.

        >>> Range(3, 5).within(Range(2, 2)), Range(1, 1).within(Range(2, 2))
        (True, False)
        """
        deeper = self.depth - other.depth
        return deeper >= 0 and self.prefix >> deeper == other.prefix

    def contains(self, k: Words) -> Bools:
        """Flags the keys that are in the range."""
        if not self.depth:
            return np.ones(len(k), np.bool_)
        is_inside: Bools = k >> np.uint64(_BITS - self.depth) == np.uint64(self.prefix)
        return is_inside

    def rest(self, k: Words) -> Words:
        """Removes the range's bits from keys of this range; the other bits distinguish them."""
        return k << np.uint64(self.depth) if self.depth else k

    def keys(self, rest: Words) -> Words:
        """The keys again.

        >>> a = Range(3, 5)
        >>> k = np.array([(5 << 61) + 7], np.uint64)
        >>> int(a.keys(a.rest(k))[0]) == (5 << 61) + 7
        True
        """
        if not self.depth:
            return rest
        first = np.uint64(self.prefix << (_BITS - self.depth))
        return (rest >> np.uint64(self.depth)) | first


ALL_KEYS = Range()
"""The range of all keys."""


def common_range(ranges: Iterable[Range]) -> Range:
    """Returns the least range that contains all of these.

    >>> common_range([Range(2, 1), Range(3, 0)])
    Range(depth=1, prefix=0)
    """
    enclosing: Range | None = None
    for each in ranges:
        enclosing = each if enclosing is None else enclosing
        while not each.within(enclosing):
            enclosing = Range(enclosing.depth - 1, enclosing.prefix >> 1)
    return enclosing or ALL_KEYS


def leaves(
    count: Callable[[Range], int], theta: int, root: Range = ALL_KEYS
) -> Iterator[tuple[Range, bool]]:
    """The directory of the rows below ``root``, of which ``count`` says how many are in a range:
    its leaves that have any, in the order of their keys, and whether each is hot.

    >>> of = {0: 3, 1: 2, 2: 0, 3: 1}  # rows by the first two bits of their keys
    >>> def count(some):
    ...     return sum(n for p, n in of.items() if Range(2, p).within(some))
    >>> [(tuple(leaf), hot) for leaf, hot in leaves(count, 2)]
    [((2, 0), False), ((2, 1), False), ((1, 1), False)]
    """
    assert theta > 0, "a leaf holds something"
    todo = [(root, count(root), 0)]
    while todo:
        leaf, n, alone = todo.pop()
        if n <= 2 * theta:
            if n:
                yield leaf, False
            continue
        some = [(half, count(half)) for half in leaf.halves]
        least = min(each for _, each in some)
        if alone >= ALONE or leaf.depth >= DEEPEST or 0 < least < n // HOT:
            yield leaf, True
        else:
            todo += [(half, each, 0 if least else alone + 1) for half, each in reversed(some)]
