"""Counts of values by group in the order of the values: the best values are read without looking at
the others.

As in ``state/counters``, an epoch's changes are one part, the count of a value is the sum of its
rows in all parts, and two parts become one when the younger has half as many rows. In a part the
rows of a group are consecutive, the best first; a directory has their places.

Where the best values leave first, values with a count of zero would be read again and again. So a
caller that has read the first rows of a group may *take* them: they do not count any more, and the
caller writes the rest of them anew. The number of rows of a group that have been taken from a part
is a tally, which ends with the part. Cost: the rows read; a row is taken once, rewritten some
times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Longs, Words
from levada.core.event_time import MAX
from levada.core.frame import Frame, concat
from levada.core.frozen import frozen
from levada.core.row_ranges import ranges, starts_segment
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.keyed.radix_sort import in_order
from levada.operators.state import counters
from levada.operators.state.state_parts import State, StatePart

Order = Callable[[Frame], Longs]
Texts = Callable[[Frame], Mapping[str, Frame]]
_ADDED = partial(counters.add, by=(), sums=(col.COUNT,))


def _no_texts(rows: Frame) -> Mapping[str, Frame]:
    return {}


@frozen
class First:
    """The first rows of some groups in all parts: each with its group's place ``of`` and its part;
    in order of these.

    ``cut``: the last row of a group from a part that has more of it.
    """

    rows: Frame
    of: Longs
    piece: Longs
    cut: Longs


def first(state: State, key: str, k: Words, h: Words, limits: Longs) -> First | None:
    """Returns up to ``limits`` of the best rows of each part for each of these distinct groups, or
    None without rows.
    """
    rows, of, piece, cut = [], [], [], []
    n = 0
    for number, one in enumerate(state.pieces(key)):
        at, places = _entries(state, one, k, h)
        directory = state.frame(one, ".dir")
        taken_counts = _take(state, key, one, k[at], h[at])
        left = directory[col.COUNT][places] - taken_counts
        counts = np.minimum(left, limits[at])
        rows.append(state.frame(one).take(ranges(directory[col.AT][places] + taken_counts, counts)))
        of.append(np.repeat(at, counts))
        piece.append(np.full(rows[-1].n, number, np.int64))
        cut.append((np.cumsum(counts) - 1 + n)[(left > counts) & (counts > 0)])
        n += rows[-1].n
        state.touched += rows[-1].n
    return First(concat(rows), *map(np.concatenate, (of, piece, cut))) if n else None


def take_first(state: State, key: str, first_counts: First, rows: Longs, groups: Frame) -> None:
    """Takes these rows, which are the first of their ``groups`` (#k, #h, g) in their pieces."""
    for number in np.unique(first_counts.piece[rows]):
        of, counts = np.unique(
            first_counts.of[rows[first_counts.piece[rows] == number]], return_counts=True
        )
        piece = state.pieces(key)[int(number)]
        _count(state, key, piece, groups.take(of), counts.astype(np.int64))


def insert(
    state: State,
    key: str,
    rows: Frame,
    by: tuple[str, ...],
    order: Order,
    *,
    texts: Texts = _no_texts,
) -> None:
    """Adds an epoch's changes ``#n`` of the values ``by`` of groups #k, #h, which are in order:
    groups together, best rows first.

    ``order`` puts rows in that order. ``texts`` are kept with them, where nothing else keeps them.
    """
    if not rows.n:
        return
    pieces, size, older = list(state.pieces(key)), rows.n, []
    while pieces and pieces[-1].rows <= 2 * size:
        size += pieces[-1].rows
        older.append(_remaining_rows(state, key, pieces.pop()).select(rows.columns))
    if older:
        rows = counters.add(concat([*older, rows]), by, (col.COUNT,))
        rows = rows.take(order(rows))
    if rows.n:
        pieces.append(
            state.put({"": rows, ".dir": _directory(rows), **texts(rows)}, rows.n, (MAX, 0, 0))
        )
    state.replace(key, pieces)


def _directory(rows: Frame) -> Frame:
    k, h = rows[col.KEY], rows[col.CHECK]
    at = np.flatnonzero(starts_segment(k, h))
    directory = Frame(
        {
            col.KEY: k[at],
            col.CHECK: h[at],
            col.PLACE: rows[col.PLACE][at],
            col.AT: at,
            col.COUNT: np.diff(np.append(at, rows.n)),
        },
        len(at),
    )
    return directory.take(in_order(directory[col.KEY]))


def _entries(state: State, piece: StatePart, k: Words, h: Words) -> tuple[Longs, Longs]:
    """Returns the groups that a part has, and their places in its directory."""
    directory = state.frame(piece, ".dir")
    begins = np.searchsorted(directory[col.KEY], k, "left")
    counts = np.searchsorted(directory[col.KEY], k, "right") - begins
    at = np.repeat(np.arange(len(k)), counts)
    places = ranges(begins, counts)
    same = directory[col.CHECK][places] == h[at]
    if (groups := state.groups(piece)) is not None:
        same &= groups[directory[col.PLACE][places]]
    return at[same], places[same]


def _remaining_rows(state: State, key: str, piece: StatePart) -> Frame:
    """Returns the rows of a part that is dropped, without the taken ones."""
    directory, rows = state.rows_of_partition(piece, state.frame(piece, ".dir")), state.frame(piece)
    state.touched += rows.n
    taken_counts = _take(state, key, piece, directory[col.KEY], directory[col.CHECK])
    some = np.flatnonzero(taken_counts)
    _count(state, key, piece, directory.take(some), -taken_counts[some])
    keep = np.ones(rows.n, np.bool_)
    keep[ranges(directory[col.AT], taken_counts)] = False
    return state.rows_of_partition(piece, rows.where(keep))


def _take(state: State, key: str, piece: StatePart, k: Words, h: Words) -> Longs:
    taken_counts = counters.find(state, f"{key}.taken", *_of_piece(piece, k, h))
    return counters.sum_column(taken_counts, len(k), col.COUNT)


def _count(state: State, key: str, piece: StatePart, groups: Frame, more: Longs) -> None:
    k, h = _of_piece(piece, groups[col.KEY], groups[col.CHECK])
    columns = {col.KEY: k, col.CHECK: h, col.PLACE: groups[col.PLACE], col.COUNT: more}
    counters.insert(state, f"{key}.taken", Frame(columns, len(k)), _ADDED)


def _of_piece(piece: StatePart, k: Words, h: Words) -> tuple[Words, Words]:
    """Returns the keys of groups in a part, whose name is unique."""
    return combine(k, h, np.full(len(k), int(piece.name), np.uint64), np.zeros(len(k), np.uint64))
