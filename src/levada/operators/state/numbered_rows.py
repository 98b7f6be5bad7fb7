"""Rows by their number in a sequence: the state of count windows, as tallies (``state/counters``).

Row number q of a sequence (a member's stream, or one key of it) has a key of its own, so that
exactly the rows that leave are looked up. The number of rows that a sequence has had is a tally.
The cost of an epoch follows from its rows and the rows that they push out, not from the size of a
window.
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
    """Returns the keys of rows number q of the sequences k, h; keys of consecutive rows are
    consecutive, so they are stored together.
    """
    return k + q.view(np.uint64), h


def count_arrived(state: State, key: str, k: Words, h: Words) -> Longs:
    """Returns the number of rows that each of these distinct sequences has had."""
    return counters.sum_column(counters.find(state, key, k, h), len(k), col.COUNT)


def count(state: State, key: str, k: Words, h: Words, more: Longs, *, place: Places) -> None:
    """Adds numbers of rows to these distinct sequences, of these groups."""
    columns: dict[str, Column] = {col.KEY: k, col.CHECK: h, col.PLACE: place, col.COUNT: more}
    counters.insert(state, key, Frame(columns, len(k)), _ADDED)
