"""Restricted look-ups in runs that other partitions have written: reads only the rows that the new
rows of an epoch can meet, and no more of the files.

A partition that takes over key groups lists the runs of their old owners (``state_handover``); most
rows of these runs belong to others. An opened run would be checked, and so read, in whole, and each
new row would probe it. So a *restricted* run is only searched for the wanted keys of its groups,
and the matches become a run by themselves: the directory and the keys are read where these keys
are, rows where they match, each by the blocks by which a file is checked
(``core.checksum_messages``).

This is correct since rows of one key are of one group: all rows in a stage were partitioned by the
same slots, which are among the keys of each join there. So a row that is not looked up here has no
partner here.

Cost: by the new rows of these groups, and by their matches. Where the new rows are many for a run,
or half of its rows are of these groups, the run is opened in whole: so a partition that has given
groups away continues with the data it has read, and a partition that takes all groups of another
one reads data that it would read soon anyway.
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

MAX_WHOLE_RUN_ROWS = register(f"{__name__}.MAX_WHOLE_RUN_ROWS", 4096)
"""Rows up to which a run is opened in whole."""
MAX_ROWS_PER_KEY = register(f"{__name__}.MAX_ROWS_PER_KEY", 16)
"""It is, too, where it has less than so many rows for a key that is looked up."""
MOSTLY, SAMPLE = 0.5, 1024
"""And where this part of its rows, by so many in its middle, is of the groups."""


@frozen
class LookupKeys:
    """The new rows of all inputs of an operator, with the first halves of their keys."""

    came: Sequence[tuple[Words, Frame]]
    _known: dict[int, Words] = field(default_factory=dict)

    def distinct_keys(self, kept: int, groups: Bools) -> Words:
        """Returns the distinct keys, in order, that are in these groups, a set of a list."""
        if kept not in self._known:
            key_hashes = [k[groups[rows[col.PLACE]]] for k, rows in self.came]
            self._known[kept] = np.unique(np.concatenate([np.empty(0, np.uint64), *key_hashes]))
        return self._known[kept]


def restrict_run(state: State, piece: StatePart, wanted: LookupKeys | None) -> Run | None:
    """Returns a run restricted to the rows that new rows can meet, or None without such rows.
    ``wanted`` None: no restriction.
    """
    groups = state.groups(piece)
    if groups is None or wanted is None:
        return open_(state, piece)
    asked = _lookup_keys(piece, groups, wanted)
    if not len(asked):
        return None
    few = piece.rows <= MAX_WHOLE_RUN_ROWS or piece.rows < MAX_ROWS_PER_KEY * len(asked)
    if few or _share(state, piece, groups) >= MOSTLY:
        return open_(state, piece)
    rows = _rows(state, piece, asked)
    return replace(build_run(rows), is_part=True) if rows.n else None


def _lookup_keys(piece: StatePart, groups: Bools, wanted: LookupKeys) -> Words:
    """The keys that are looked up in a run, without the bits of its range, in order."""
    range_ = range_of(piece)
    asked = wanted.distinct_keys(piece.kept, groups)
    return range_.rest(asked[range_.contains(asked)]) if range_.depth else asked


def _share(state: State, piece: StatePart, groups: Bools) -> float:
    """Returns the share of a run's rows that is of these groups, estimated from its middle."""
    first = max((piece.rows - SAMPLE) // 2, 0)
    at = np.arange(first, min(first + SAMPLE, piece.rows))
    return np.count_nonzero(groups[state.lazy_frame(piece).take(col.PLACE, at)]) / len(at)


def _rows(state: State, piece: StatePart, asked: Words) -> Frame:
    """Returns the rows of a run that have one of these keys, in their order, with their #
    columns.
    """
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
