"""Rows with weights (Z-sets): equal rows merged, changes added up in time, and rows repeated by
multiplicity.

A weight is the multiplicity of a row, or its change: +1 adds a row, -1 removes it. Three steps are
common to all incremental operators:

    consolidate   equal rows as one, with the sum of their weights
    steps         changes by key and instant, each with its net change; ``integrate``: the value of
                  the key after each step
    expand        a row as often as its weight says, each copy with its sign

Cost: consolidating is a hash probe a row, stepping a sort, expanding its output. See Budiu et al.,
DBSP (VLDB 2023), for the algebra.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Ints, Longs, Words
from levada.core.frame import Frame
from levada.core.row_ranges import ends_segment
from levada.kernels.keyed.group_sums import sum_weights
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.radix_sort import in_order

Weights = npt.NDArray[np.int8] | npt.NDArray[np.int64]


class Consolidated(NamedTuple):
    """Distinct rows in order of their first coming: the code of each row, a row of each code, the
    sum of its weights.
    """

    codes: Ints
    first: Longs
    weight: Longs


def consolidate(k: Words, h: Words, weights: Weights) -> Consolidated:
    """Rows of equal keys as one.

    >>> k = np.array([7, 8, 7], np.uint64)
    >>> consolidate(k, k, np.array([1, 1, -1], np.int8)).weight.tolist()
    [0, 1]
    """
    codes, first = group(k, h)
    return Consolidated(codes, first, sum_weights(codes, weights, len(first)))


class Steps(NamedTuple):
    """Changes in the ``order`` of (key, instant); the changes of one key at one instant are a step.

    ``step`` of each change in that order; for each step the place of its last change, its key
    ``of`` and its instant ``at``.
    """

    order: Longs
    step: Longs
    last: Longs
    of: Ints
    at: Longs

    def net(self, weights: Weights) -> Longs:
        """Returns the change of each step's key; ``weights`` of the changes in their original
        order.
        """
        total = np.cumsum(weights[self.order], dtype=np.int64)[self.last]
        return np.diff(total, prepend=0)

    @property
    def is_final(self) -> npt.NDArray[np.bool_]:
        """Whether a step is the last one of its key."""
        return ends_segment(self.of)


def steps(codes: Ints, instants: Longs) -> Steps:
    """The steps of changes of the keys ``codes`` at these instants.

    >>> key_steps = steps(np.array([1, 0, 1, 1], np.int32), np.array([5, 9, 5, 2]))
    >>> changes = key_steps.net(np.array([1, 1, 1, -1]))
    >>> key_steps.of.tolist(), key_steps.at.tolist(), changes.tolist()
    ([0, 1, 1], [9, 2, 5], [1, -1, 2])
    """
    order = in_order(instants, codes)
    of, at = codes[order], instants[order]
    ends = ends_segment(of, at)
    last = np.flatnonzero(ends)
    return Steps(order, np.cumsum(ends) - ends, last, of[last], at[last])


def integrate(key_steps: Steps, change: Longs, before: Longs | None = None) -> Longs:
    """Returns the value of each key after each of its steps; ``before``: the previous value by key
    (None: 0).

    >>> key_steps = steps(np.array([0, 0, 1], np.int32), np.array([1, 2, 1]))
    >>> integrate(key_steps, np.array([1, 2, 3]), np.array([10, 20])).tolist()
    [11, 13, 23]
    """
    total = np.cumsum(change)
    final = key_steps.is_final
    number: Longs = np.cumsum(final) - final  # of the keys that have steps
    earlier = np.concatenate([[0], total[final]])[number]
    after: Longs = total - earlier
    return after if before is None else after + before[key_steps.of]


def expand(rows: Frame, change: Longs) -> Frame:
    """Each row as often as its change says, with the sign in ``w``.

    >>> expand(Frame({"x0": np.array([7, 8])}, 2), np.array([0, -2])).columns["w"].tolist()
    [-1, -1]
    """
    many = np.abs(change)
    return rows.take(np.repeat(np.arange(rows.n), many)).with_(
        w=np.repeat(np.sign(change), many).astype(np.int8)
    )
