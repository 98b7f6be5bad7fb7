"""Rows by their number in a sequence: the state of count windows, as tallies
(``windows/state/tallies``).

Row number q of a sequence (a member's stream, or one key of it) lies under a key of its own, so
that exactly the rows that leave are looked up. How many rows a sequence has had is a tally. What an
epoch costs follows from its rows and those that they push out, not from how many a window holds.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

from levada.kernels.keyed.keyed import combine
from levada.model import columns as col
from levada.model.frame import Frame
from levada.windows.state import tallies
from levada.windows.state.pieces import State

Words = npt.NDArray[np.uint64]
Longs = npt.NDArray[np.int64]
_ADDED = partial(tallies.add, by=(), sums=(col.COUNT,))


def number(k: Words, h: Words, q: Longs) -> tuple[Words, Words]:
    """The keys of rows number q of the sequences k, h."""
    return combine(k, h, np.ascontiguousarray(q).view(np.uint64), np.zeros(len(q), np.uint64))


def came(state: State, key: str, k: Words, h: Words) -> Longs:
    """How many rows each of these distinct sequences has had."""
    return sum_(tallies.find(state, key, k, h), len(k), col.COUNT)


def sum_(found: tuple[Longs, Frame] | None, n: int, name: str) -> Longs:
    """The sum of a column of what was found for each of n keys."""
    out = np.zeros(n, np.int64)
    if found is not None:
        np.add.at(out, found[0], found[1][name])
    return out


def count(state: State, key: str, k: Words, h: Words, more: Longs) -> None:
    """Each of these distinct sequences has had so many rows more."""
    tallies.insert(state, key, Frame({col.KEY: k, col.CHECK: h, col.COUNT: more}, len(k)), _ADDED)
