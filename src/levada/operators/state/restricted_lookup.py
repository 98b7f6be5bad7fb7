"""What is looked up in runs that others have written: their few rows that the new rows of an epoch
can meet, and no more of their files.

Who gets groups lists the runs of who had them (``taken_over``), of which most rows are of others.
Opened as they are, they would be checked, and so read, in whole, and each new row would look into
each of them. So of a *restricted* run those keys are looked up that are of its groups, and what is
there of these becomes a run by itself: the directory and the keys are read where these keys are,
rows where they match, each by the blocks of which a file is checked (``core.checksum_messages``).

It is right since rows of one key are of one group: whoever is in a stage came by the same slots,
which are among the keys of each join there. So a row that is not looked up here meets nobody here.

Cost: by the new rows of these groups, and by what they meet. Where they are many for a run, or half
of its rows are of these groups, it is opened in whole: so who has given groups away goes on with
what it has read, and who takes all groups of another one reads what it would read soon anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools, Longs, Words
from levada.core.frame import Column, Frame
from levada.core.frozen import frozen
from levada.core.row_ranges import ranges
from levada.core.size_thresholds import register
from levada.operators.state.run import Run, build_run, open_, range_of
from levada.operators.state.state_parts import State, StatePart

FEW = register(f"{__name__}.FEW", 4096)
"""Rows up to which a run is opened in whole."""
MANY = register(f"{__name__}.MANY", 16)
"""It is, too, where it has less than so many rows for a key that is looked up."""
MOSTLY, SAMPLE = 0.5, 1024
"""And where this part of its rows, by so many in its middle, is of the groups."""


@frozen
class LookupKeys:
    """The new rows of all inputs of an operator, with the first halves of their keys."""

    came: Sequence[tuple[Words, Frame]]
    _known: dict[int, Words] = field(default_factory=dict)

    def of(self, kept: int, groups: Bools) -> Words:
        """The keys of these groups, which are a set of a list, in order and once."""
        if kept not in self._known:
            key_hashes = [k[groups[rows[col.PLACE]]] for k, rows in self.came]
            self._known[kept] = np.unique(np.concatenate([np.empty(0, np.uint64), *key_hashes]))
        return self._known[kept]


def restrict_run(state: State, piece: StatePart, wanted: LookupKeys | None) -> Run | None:
    """A run as new rows meet it; None: they meet none of it. ``wanted`` None: any may."""
    groups = state.groups(piece)
    if groups is None or wanted is None:
        return open_(state, piece)
    asked = _lookup_keys(piece, groups, wanted)
    if not len(asked):
        return None
    few = piece.rows <= FEW or piece.rows < MANY * len(asked)
    if few or _share(state, piece, groups) >= MOSTLY:
        return open_(state, piece)
    rows = _rows(state, piece, asked)
    return replace(build_run(rows), is_part=True) if rows.n else None


def _lookup_keys(piece: StatePart, groups: Bools, wanted: LookupKeys) -> Words:
    """The keys that are looked up in a run, without the bits of its range, in order."""
    range_ = range_of(piece)
    asked = wanted.of(piece.kept, groups)
    return range_.rest(asked[range_.contains(asked)]) if range_.depth else asked


def _share(state: State, piece: StatePart, groups: Bools) -> float:
    """How much of a run is of these groups, by its middle."""
    first = max((piece.rows - SAMPLE) // 2, 0)
    at = np.arange(first, min(first + SAMPLE, piece.rows))
    return np.count_nonzero(groups[state.lazy_frame(piece).take(col.PLACE, at)]) / len(at)


def _rows(state: State, piece: StatePart, asked: Words) -> Frame:
    """The rows of a run that have one of these keys, in their order, with their # columns."""
    keys, rows = state.lazy_frame(piece, ".key"), state.lazy_frame(piece)
    places = _places(state, piece, asked)
    k = keys.take(col.KEY, places)
    places = places[np.isin(k, asked)]
    at = keys.take(col.ORDER, places).astype(np.int64)
    order = np.argsort(at, kind="stable")
    at, places = at[order], places[order]
    columns: dict[str, Column] = {name: rows.take(name, at) for name in rows.names}
    columns |= {name: keys.take(name, places) for name in keys.names if name != col.ORDER}
    columns[col.KEY] = range_of(piece).keys(columns[col.KEY])
    columns.setdefault(col.END, columns[col.BEGIN] + piece.longest)
    state.touched += len(at)
    return state.rows_of_partition(piece, Frame(columns, len(at)))


def _places(state: State, piece: StatePart, asked: Words) -> Longs:
    """The places of the buckets in which these keys would be; they are distinct and in order."""
    directory = state.lazy_frame(piece, ".dir")
    bucket = (asked >> np.uint64(64 - piece.bits)).astype(np.int64)
    bucket = bucket[np.append(True, bucket[1:] != bucket[:-1])]
    low, high = (directory.take("d", at).astype(np.int64) for at in (bucket, bucket + 1))
    return ranges(low, high - low)
