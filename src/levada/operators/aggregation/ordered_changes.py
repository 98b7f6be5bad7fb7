"""Ordered changes of groups: the input of all incremental groupings in ``operators/aggregation``.

The changes of an epoch are put in order of (group, report). Each report of a group is a *run* of
changes; a group has a *point* before its first run and one after each run. The value at a point
follows from the previous value and the runs up to that point.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Longs, Places, Words
from levada.core.frame import Column
from levada.core.row_ranges import starts_segment
from levada.kernels.time.running_aggregates import points_of


@dataclass(frozen=True)
class Runs:
    """The changes in order of (group, report).

    ``rows`` of the input frame (-1 - i: partial ``i``, of weight 0), ``w`` their weights, ``run``
    of each; per run its group ``of`` and report ``r``; ``starts`` of each group's changes; the
    groups' keys ``k, h``, where they are, ``place``, and a change of each, ``first``.
    """

    rows: Longs
    w: npt.NDArray[np.int8]
    run: Longs
    of: Longs
    r: Longs
    starts: Longs
    k: Words
    h: Words
    place: Places
    first: Longs

    @property
    def groups(self) -> int:
        """How many groups change."""
        return len(self.k)

    def columns(self, groups: Longs) -> dict[str, Column]:
        """Returns the keys and places of these groups, as the state has them."""
        return {col.KEY: self.k[groups], col.CHECK: self.h[groups], col.PLACE: self.place[groups]}

    @cached_property
    def before(self) -> Longs:
        """The point of each group before its first run; the points of its runs follow."""
        return np.searchsorted(self.of, np.arange(self.groups)) + np.arange(self.groups)

    @cached_property
    def after(self) -> Longs:
        """The point after each run."""
        return np.arange(len(self.of)) + self.of + 1

    def at_points(self, base: Longs, changes: Longs) -> Longs:
        """The value at each point, from that before and the change of each run."""
        return points_of(self.of, base, changes)

    def by_group(self, changes: Longs) -> Longs:
        """The sum of the changes of each group's runs."""
        first = np.searchsorted(self.of, np.arange(self.groups))
        return np.add.reduceat(changes, first) if len(first) else np.zeros(0, np.int64)

    @cached_property
    def first_of_run(self) -> Longs:
        """The first change of each run."""
        return np.flatnonzero(starts_segment(self.run))

    def put_values(self, base: Column, values: Column) -> Column:
        """Puts values at points: previous values and the values after each run."""
        out = np.empty(self.groups + len(self.of), values.dtype)
        out[self.before], out[self.after] = base, values
        return out

    def total(
        self, changes: npt.NDArray[Any], among: npt.NDArray[np.bool_] | slice = slice(None)
    ) -> Longs:
        """Returns the sum of changes of each run; ``among`` flags the changes within all
        changes.
        """
        if len(changes) == len(self.run) and len(changes):
            return np.add.reduceat(changes, self.first_of_run, dtype=np.int64)
        out = np.zeros(len(self.of), np.int64)
        np.add.at(out, self.run[among], changes)
        return out
