"""Sets of slices as few partials: a tree over slices in the order of time, each node the sum of its
two children (a segment tree; Scotty's, without its pointers).

A report needs a set of slices, mostly consecutive ones. Such a run is at most two nodes of each
height, so a window of n slices is composed of about 2 log n partials, whatever other windows there
are; and a node is added up once for all sets that contain it. No function needs an inverse, so MIN
and MAX are computed in the same way as SUM.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from levada.core.array_types import Longs


class Sets(NamedTuple):
    """Sets of places, each as runs [begin, end) of them; ``of``: the set of each run."""

    of: Longs
    begin: Longs
    end: Longs


class Uses(NamedTuple):
    """The nodes of one height that compose each set."""

    sets: Longs
    nodes: Longs


def runs(sets: Longs, places: Longs) -> Sets:
    """Sets by their places, which are sorted and distinct within each set.

    >>> [column.tolist() for column in runs(np.array([0, 0, 0, 1]), np.array([2, 3, 7, 8]))]
    [[0, 0, 1], [2, 7, 8], [4, 8, 9]]
    """
    follows = (sets[1:] == sets[:-1]) & (places[1:] == places[:-1] + 1)
    first = np.flatnonzero(np.concatenate([[True], ~follows])) if len(sets) else places[:0]
    last = np.append(first[1:] - 1, len(sets) - 1) if len(sets) else places[:0]
    return Sets(sets[first], places[first], places[last] + 1)


def covers(sets: Sets) -> list[Uses]:
    """The nodes that make up these sets, by height: node i of height h is of the places from i *
    2**h on. No place of a set is in two of its nodes.

    >>> one = Sets(np.array([0]), np.array([1]), np.array([7]))
    >>> [nodes.tolist() for _, nodes in covers(one)]
    [[1, 6], [1, 2]]
    """
    of, begin, end = sets
    uses = []
    while len(of):
        left, right = (begin & 1) == 1, (end & 1) == 1
        nodes = np.concatenate([begin[left], end[right] - 1])
        uses.append(Uses(np.concatenate([of[left], of[right]]), nodes))
        begin, end = (begin + 1) >> 1, end >> 1
        more = begin < end
        of, begin, end = of[more], begin[more], end[more]
    return uses


def needed_nodes(uses: list[Uses], places: int) -> list[Longs]:
    """Returns for each height, in order, the nodes that some set has and the ancestors of needed
    nodes.
    """
    levels = list[Longs]()
    below = np.empty(0, np.int64)
    for height in reversed(range(len(uses))):
        nodes = np.concatenate([uses[height].nodes, 2 * below, 2 * below + 1])
        below = np.unique(nodes[nodes << height < places])
        levels.append(below)
    return levels[::-1]


def numbers(nodes: Longs, chosen: Longs) -> Longs:
    """Returns the place of each node among the sorted wanted nodes; -1: the node is not wanted.

    >>> numbers(np.array([4, 9, 6]), np.array([4, 6])).tolist()
    [0, -1, 1]
    """
    if not len(chosen) or not len(nodes):
        return np.full(len(nodes), -1, np.int64)
    if (most := max(int(chosen[-1]), int(nodes.max())) + 1) <= 4 * len(nodes):
        table = np.full(most, -1, np.int64)
        table[chosen] = np.arange(len(chosen))
        return table[nodes]
    at = np.minimum(np.searchsorted(chosen, nodes), len(chosen) - 1)
    numbers_: Longs = np.where(chosen[at] == nodes, at, -1)
    return numbers_
