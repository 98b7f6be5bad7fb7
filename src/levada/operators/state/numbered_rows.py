"""Rows by their number in a sequence: the state of count windows, as tallies
(``windows/state/tallies``).

Row number q of a sequence (a member's stream, or one key of it) lies under a key of its own, so
that exactly the rows that leave are looked up. How many rows a sequence has had is a tally. What an
epoch costs follows from its rows and those that they push out, not from how many a window holds.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Longs, Places, Words
from levada.core.frame import Column, Frame
from levada.operators.state import counters
from levada.operators.state.state_parts import State

_ADDED = partial(counters.add, by=(), sums=(col.COUNT,))


def number(k: Words, h: Words, q: Longs) -> tuple[Words, Words]:
    """The keys of rows number q of the sequences k, h; those of rows that follow one another do so,
    too: they lie together.
    """
    return k + q.view(np.uint64), h


def count_arrived(state: State, key: str, k: Words, h: Words) -> Longs:
    """How many rows each of these distinct sequences has had."""
    return counters.sum_column(counters.find(state, key, k, h), len(k), col.COUNT)


def count(state: State, key: str, k: Words, h: Words, more: Longs, *, place: Places) -> None:
    """Each of these distinct sequences, of these groups, has had so many rows more."""
    columns: dict[str, Column] = {col.KEY: k, col.CHECK: h, col.PLACE: place, col.COUNT: more}
    counters.insert(state, key, Frame(columns, len(k)), _ADDED)
