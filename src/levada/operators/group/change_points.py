"""Groups of windows that report on change: the value of each group between two instants at which
its own rows change.

Such a window reports at every change of anything in it, and a row counts at all reports of its
stay. Folding each row once per report would cost window times reports; but a value only *turns*
where a row of the group comes or goes. So per group the instants of its turns are the leaves of a
binary tree, and

    a row       is added to the few nodes that make up its stay (at most two a level; one, if it
                stays throughout)
    a turn      has the value of the nodes above it, merged

Partials only add up, nothing is taken back; so MIN and MAX cost as much as COUNT. Cost: (rows +
turns) times the logarithm of the turns of a group, however often the window reports.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from levada.kernels.keyed.groups import group
from levada.model import columns as col
from levada.model.arrays import Longs
from levada.model.frame import Frame
from levada.model.time import MAX, Times
from levada.operators.group import aggregates
from levada.operators.rows.edges import key_of
from levada.plan.sealed import steps as s


@dataclass(frozen=True, slots=True)
class Turns:
    """The turns of groups, in order of (group, time); a group has ``start[g]`` to ``start[g + 1]``.

    ``first``: a row of each group. ``begin``, ``end`` of each row: the turns between which it
    counts.
    """

    of: Longs
    at: Times
    start: Longs
    first: Longs
    begin: Longs
    end: Longs

    @staticmethod
    def of_rows(rows: Frame, keys: int, low: Times, high: Times) -> Turns:
        """The turns in [low, high] of rows that count in there, each group's first one at ``low``
        if a row counts there.
        """
        codes, first = group(*key_of(rows, range(keys)))
        of = codes.astype(np.int64)
        begin, end = np.maximum(rows[col.BEGIN], low), np.minimum(rows[col.END], high + 1)
        whole = end > high
        every = np.concatenate([of, of[~whole]])
        at = np.concatenate([begin, end[~whole]])
        order = np.lexsort((at, every))
        of_, at_ = every[order], at[order]
        new = np.ones(len(order), np.bool_)
        new[1:] = (of_[1:] != of_[:-1]) | (at_[1:] != at_[:-1])
        place = np.empty(len(order), np.int64)
        place[order] = np.cumsum(new) - 1
        start = np.searchsorted(of_[new], np.arange(len(first) + 1))
        last = start[of + 1]
        last[~whole] = place[rows.n :]
        return Turns(of_[new], at_[new], start, first.astype(np.int64), place[: rows.n], last)

    @property
    def until(self) -> Times:
        """The next turn of the same group; of its last one none: MAX."""
        out = np.append(self.at[1:], MAX)
        out[self.start[1:] - 1] = MAX
        return out


def values(
    rows: Frame, turns: Turns, specs: tuple[s.Aggregate, ...], rank: aggregates.Rank
) -> tuple[Longs, dict[str, npt.NDArray[np.generic]]]:
    """The turns at which a group has rows, ascending, its partials there; ``rows`` are partials."""
    size, base = _trees(turns)
    g = turns.of[turns.begin] if rows.n else np.empty(0, np.int64)
    local = turns.start[g]
    row, node = _stays(turns.begin - local + size[g], turns.end - local + size[g], base[g])
    nodes, code = np.unique(node, return_inverse=True)
    parts = Frame(
        aggregates.merge(rows, code.astype(np.int32), len(nodes), specs, rank, chosen=row),
        len(nodes),
    )
    there = np.full(int(base[-1]), -1, np.int64)
    there[nodes] = np.arange(len(nodes))
    of = turns.of
    turn, part = _above(np.arange(len(of)) - turns.start[of] + size[of], base[of], there)
    shown, code = np.unique(turn, return_inverse=True)
    return shown, aggregates.merge(
        parts, code.astype(np.int32), len(shown), specs, rank, chosen=part
    )


def _trees(turns: Turns) -> tuple[Longs, Longs]:
    """Of each group the leaves of its tree, a power of two, and where its nodes begin among all."""
    many = np.diff(turns.start)
    size = np.left_shift(1, np.ceil(np.log2(np.maximum(many, 1))).astype(np.int64))
    return size, np.concatenate([[0], np.cumsum(2 * size)])


def _stays(left: Longs, right: Longs, base: Longs) -> tuple[Longs, Longs]:
    """(row, node) for the nodes that make up the leaves ``left`` to ``right`` (exclusive) of each
    row, in its tree at ``base``.
    """
    rows: list[Longs] = []
    nodes: list[Longs] = []
    row = np.flatnonzero(left < right)
    left, right, base = left[row], right[row], base[row]
    while len(row):
        odd = (left & 1) == 1
        rows.append(row[odd])
        nodes.append(base[odd] + left[odd])
        left = (left + odd) >> 1
        odd = (right & 1) == 1
        right = right - odd
        rows.append(row[odd])
        nodes.append(base[odd] + right[odd])
        right >>= 1
        more = left < right
        row, left, right, base = row[more], left[more], right[more], base[more]
    return _join(rows), _join(nodes)


def _above(leaf: Longs, base: Longs, there: Longs) -> tuple[Longs, Longs]:
    """(turn, part) for the nodes above each leaf that something was added to."""
    turns: list[Longs] = []
    parts: list[Longs] = []
    turn, node = np.arange(len(leaf)), leaf
    while len(turn):
        part = there[base[turn] + node]
        turns.append(turn[part >= 0])
        parts.append(part[part >= 0])
        node = node >> 1
        more = node > 0
        turn, node = turn[more], node[more]
    return _join(turns), _join(parts)


def _join(parts: list[Longs]) -> Longs:
    return np.concatenate([np.empty(0, np.int64), *parts])
