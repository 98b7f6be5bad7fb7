"""Tallies: counts and sums by key that change by adding, as state parts sorted by key.

The changes of an epoch are one part; the total of a key is the sum of its rows in all parts. Two
parts become one as soon as the younger has half as many rows as the older: so there are about log n
parts, and a row is rewritten as often. The cost of an epoch follows from its keys, not from the
size of the state. Rows with a total of zero vanish where parts are merged.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Longs, Words
from levada.core.event_time import MAX
from levada.core.frame import Frame, concat
from levada.core.row_ranges import ranges
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.radix_sort import in_order, spans_of
from levada.operators.state.state_parts import State

Merge = Callable[[Frame], Frame]


def find(state: State, key: str, k: Words, h: Words) -> tuple[Longs, Frame] | None:
    """Returns the kept rows of these distinct keys, each with the place of its key among them, or
    None without rows.
    """
    if not state.pieces(key):
        return None
    places: list[Longs] = []
    rows: list[Frame] = []
    order = in_order(k)  # looked up in order, neighbours in memory come one after the other
    keys = k[order]
    for piece in state.pieces(key):
        stored = state.frame(piece)
        first, counts = spans_of(stored[col.KEY], keys)
        of = np.repeat(order, counts)
        at = ranges(first, counts)
        same = stored[col.CHECK][at] == h[of]
        if (groups := state.groups(piece)) is not None:
            same &= groups[stored[col.PLACE][at]]
        if same.any():
            places.append(of[same])
            rows.append(stored.take(at[same]))
        state.touched += len(at)
    return (np.concatenate(places), concat(rows)) if rows else None


def sum_column(matches: tuple[Longs, Frame] | None, n: int, name: str) -> Longs:
    """Returns the sum of a column of the matches for each of n keys."""
    out = np.zeros(n, np.int64)
    if matches is not None:
        np.add.at(out, matches[0], matches[1][name])
    return out


def insert(state: State, key: str, rows: Frame, merge: Merge) -> None:
    """Adds an epoch's changes (with #k, #h); ``merge`` adds up the rows of equal keys."""
    if not rows.n:
        return
    pieces = list(state.pieces(key))
    while pieces and pieces[-1].rows <= 2 * rows.n:
        rows = merge(concat([state.whole(pieces.pop()).select(rows.columns), rows]))
    if rows.n:
        ordered = rows.take(in_order(rows[col.KEY]))
        pieces.append(state.put({"": ordered}, rows.n, (MAX, 0, 0)))
    state.replace(key, pieces)


def add(rows: Frame, by: tuple[str, ...], sums: tuple[str, ...]) -> Frame:
    """Merges rows of equal #k, #h and ``by`` (words or int64), with their ``sums`` added up; rows
    with only zeros are left out.
    """
    k, h = rows[col.KEY], rows[col.CHECK]
    for name in by:
        k, h = combine(
            k, h, np.ascontiguousarray(rows[name]).view(np.uint64), np.zeros(rows.n, np.uint64)
        )
    codes, first = group(k, h)
    out = rows.take(first)
    columns = dict(out.columns)
    there = np.zeros(out.n, bool)
    for name in sums:
        columns[name] = np.zeros(out.n, np.int64)
        np.add.at(columns[name], codes, rows[name])
        there |= columns[name] != 0
    return Frame(columns, out.n).where(there) if out.n else out
