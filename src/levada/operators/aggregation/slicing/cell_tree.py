"""Cells added up over the tree of an index (``rows/predicate_index``): each wanted node is the sum
of its two children, computed once for each group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from levada.core.array_types import Ints, Longs
from levada.core.frame import Column
from levada.kernels.keyed.hash_groups import group
from levada.operators.rows.predicate_index import Index

Columns = dict[str, Column]
Merge = Callable[[Columns, Ints, int], Columns]
"""Partials added up: of each the number of its sum, and how many sums there are."""


class _Level(NamedTuple):
    """Nodes of one height: the number here of each child (None: the same), the number of nodes, and
    the nodes that some member wants.
    """

    codes: Ints | None
    many: int
    places: Longs


@dataclass(frozen=True, eq=False, slots=True)
class Nodes:
    """The nodes that members want, level by level: of each a slice below it, and its number."""

    levels: tuple[_Level, ...]
    slices: Longs
    nodes: Longs

    @staticmethod
    def ancestors_of(index: Index, leaf: Longs, other_key: Longs) -> Nodes:
        """Returns the ancestors of slices, by their leaves and by ``other_key``, the other key of
        slices. Slices in the order of both are the cheapest.
        """
        inner = np.flatnonzero(np.diff(index.offsets))
        least = int(inner[0]) if len(inner) else 0
        node, at = leaf + index.size, np.arange(len(leaf))
        levels, slices, nodes = list[_Level](), [at[:0]], [node[:0]]
        codes: Ints | None = None
        while True:
            places = np.flatnonzero(index.offsets[node + 1] > index.offsets[node])
            levels.append(_Level(codes, len(node), places))
            slices.append(at[places])
            nodes.append(node[places])
            node = node >> 1
            if not len(node) or int(node.max()) < max(least, 1):
                break
            codes, first = _number_pairs(other_key, node)
            node, at, other_key = node[first], at[first], other_key[first]
        return Nodes(tuple(levels), np.concatenate(slices), np.concatenate(nodes))

    def partials(self, slices: Columns, merge: Merge) -> Columns:
        """Returns the partials of all wanted nodes, from those of the slices. An all-zero column is
        not added up; most columns of a sum are all zero.
        """
        some = [name for name, column in slices.items() if column.any()]
        sums = {name: np.zeros(len(self.nodes), c.dtype) for name, c in slices.items()}
        at = 0
        for level in self.levels:
            if level.codes is not None and level.many < len(level.codes):
                slices = merge(slices, level.codes, level.many)
            for name in some:
                sums[name][at : at + len(level.places)] = slices[name][level.places]
            at += len(level.places)
        return sums


def _number_pairs(beside: Longs, node: Longs) -> tuple[Ints, Longs]:
    """Returns the number of each pair, and one place for each pair. Ordered pairs need no
    look-up.
    """
    after = (beside[1:] > beside[:-1]) | ((beside[1:] == beside[:-1]) & (node[1:] > node[:-1]))
    same = (beside[1:] == beside[:-1]) & (node[1:] == node[:-1])
    if not (after | same).all():
        return group(beside.view(np.uint64), node.view(np.uint64))
    starts = np.concatenate([[True], after])
    return np.cumsum(starts, dtype=np.int32) - np.int32(1), np.flatnonzero(starts)
