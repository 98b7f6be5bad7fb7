"""Aggregation of one key range after another, where memory is bounded: the work of a range needs
about as much memory as two theta (``state/key_ranges``; Parallel windowed joins, W23 to W26).

A group is in one range, with all of its rows, so sums by group can be computed range by range. All
ranges have one depth, since hashes spread groups evenly; a group that is larger than theta by
itself is not divided. Parts are read as maps. A part within one range is not copied; a part of
several ranges is ordered by range once, for 4 bytes a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools, Ints, Longs
from levada.core.frame import Frame
from levada.kernels.keyed.key_partitioner import scatter_order
from levada.operators.rows.route_rows import key_of
from levada.operators.state.key_ranges import ALL_KEYS, Range
from levada.operators.state.state_parts import State, StatePart

_BITS = 64


@dataclass(slots=True)
class Part:
    """Rows of groups. ``cut``: the range in which all of their keys are; ``groups``: of which they
    must be to count (None: all do).
    """

    rows: Frame
    cut: Range = ALL_KEYS
    groups: Bools | None = None
    _order: tuple[Ints, Longs] | None = None

    def select_range(self, some: Range, slots: range) -> Frame:
        """Returns the rows whose keys are in a range."""
        if self.cut.within(some):
            return self._rows_of_groups(self.rows)
        if not some.within(self.cut):
            return self.rows.slice(0, 0)
        deeper = some.depth - self.cut.depth
        at = some.prefix - (self.cut.prefix << deeper)
        order, offsets = self._order = self._order or self._order_by_range(slots, deeper)
        if at + 1 == 1 << deeper:
            self._order = None
        return self._rows_of_groups(self.rows.take(order[offsets[at] : offsets[at + 1]]))

    def _order_by_range(self, slots: range, deeper: int) -> tuple[Ints, Longs]:
        rest = self.cut.rest(key_of(self.rows, slots)[0])
        return scatter_order((rest >> np.uint64(_BITS - deeper)).astype(np.int32), 1 << deeper)

    def _rows_of_groups(self, rows: Frame) -> Frame:
        return rows if self.groups is None else rows.where(self.groups[rows[col.PLACE]])


def read_piece(state: State, piece: StatePart) -> Part:
    """A piece of state."""
    state.touched += piece.rows
    return Part(state.frame(piece), Range(piece.depth, piece.prefix), state.groups(piece))


def in_ranges(
    parts: Sequence[Part], slots: range, theta: int
) -> Iterator[tuple[Range, list[Frame]]]:
    """The rows of each range that has any, of all parts in their order: of all keys, unless there
    are more than two ``theta`` bytes.
    """
    bounded = theta and slots
    size = sum([c.nbytes for part in parts for c in part.rows.columns.values()]) if bounded else 0
    deep = (size // theta).bit_length() if size > 2 * theta else 0
    for prefix in range(1 << deep):
        some = Range(deep, prefix)
        range_rows = [rows for part in parts if (rows := part.select_range(some, slots)).n]
        if range_rows:
            yield some, range_rows
