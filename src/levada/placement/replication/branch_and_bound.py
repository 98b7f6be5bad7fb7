"""Placement of replicas by branch and bound (BriskStream, Algorithm 2).

Units (some replicas of one operator that stay together: compression, heuristic 3) are placed pair
by pair of producer and consumer (heuristic 1), in the order of the dataflow: a decision places both
ends, or the one that is still unplaced. A node's bound is the model with unplaced units next to all
their producers and without constraints. A node whose bound is not above the best plan is cut. If
all other producers of a pair are placed, ``best_fit`` keeps only the best child, among equals the
one in the fullest place (heuristic 2).

Two symmetries are skipped without loss. A unit never goes to the left of an equal one before it.
Empty places whose exchange leaves the machine unchanged are tried only once. Both keep the first
plan in alphabetical order.

Without ``best_fit``, with units of one replica and enough nodes, the result is the best plan that
satisfies all constraints. Unlike the paper's text, the number of new units is counted, not taken as
1 or 2, and a complete plan's constraints are checked again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from levada.core.array_types import Bools, Doubles, Longs
from levada.core.frozen import frozen
from levada.placement.replication.model_arrays import Arrays, Problem
from levada.placement.replication.numba_cache import compile_function
from levada.placement.replication.throughput_models import Model, Work, demand, evaluate

SLACK = 1 + 1e-9


@frozen
class BestPlan:
    """The best plan (``counts``; the incumbent if none is better), its tuples/s, the number of
    visited nodes, and whether the search was ``complete``.
    """

    counts: Longs
    throughput: float
    nodes: int
    complete: bool


class _Tree(NamedTuple):
    """Units (operator, size, the equal one before), decisions (the units they place, whether only
    the best child counts), and which places are interchangeable.
    """

    model: Model
    arrays: Arrays
    units: Longs
    decisions: Longs
    same: Bools


def branch(
    model: Model,
    problem: Problem,
    replication: Longs,
    incumbent: tuple[Longs, float],
    *,
    ratio: int = 5,
    best_fit: bool = True,
    nodes: int = 20_000,
) -> BestPlan:
    """Returns the best placement that ``nodes`` nodes find. ``incumbent``: a plan and its tuples/s
    (0: it breaks the constraints). ``ratio``: how many replicas stay together.
    """
    operator, size = _units(replication, ratio)
    first, second, free = _decisions(problem, operator)
    tree = _Tree(
        model,
        problem.arrays,
        np.column_stack([operator, size, _before(operator, size)]),
        np.column_stack([first, second, free & best_fit]),
        interchangeable(problem),
    )
    start = incumbent[0].astype(np.int64)
    counts, throughput, looked = _search(tree, start, incumbent[1], nodes)
    return BestPlan(counts, throughput, looked, looked < nodes)


def _units(replication: Longs, ratio: int) -> tuple[Longs, Longs]:
    pairs = [
        (o, min(ratio, k - at)) for o, k in enumerate(replication) for at in range(0, k, ratio)
    ]
    operator, size = np.array(pairs, np.int64).T
    return operator.copy(), size.copy()


def _before(operator: Longs, size: Longs) -> Longs:
    """Returns the equal unit before each unit, or -1."""
    alike = (np.diff(operator) == 0) & (np.diff(size) == 0)
    return np.concatenate([[-1], np.where(alike, np.arange(len(alike)), -1)])


def _decisions(problem: Problem, operator: Longs) -> tuple[Longs, Longs, Bools]:
    """Returns the units that each decision places (the second may be -1), and whether all other
    producers are placed before.
    """
    streams: list[list[int]] = [[] for _ in range(problem.operators)]
    for stream in problem.graph.streams:
        ends = problem.graph.place_of
        streams[ends[stream.consumer]].append(ends[stream.producer])
    units = [np.flatnonzero(operator == o).tolist() for o in range(problem.operators)]
    placed = set[int]()
    rows = list[tuple[int, int, bool]]()
    for o, producers in enumerate(streams):
        pairs = [(s, c) for c in units[o] for p in sorted(producers) for s in units[p]]
        for s, c in pairs or [(-1, u) for u in units[o] if not _feeds(problem, o)]:
            new = [u for u in (s, c) if u >= 0 and u not in placed]
            if new:
                feeding = {u for p in producers for u in units[p]} - {s}
                rows.append((new[0], new[1] if len(new) > 1 else -1, feeding <= placed))
                placed.update(new)
    first, second, free = zip(*rows, strict=True)
    return np.array(first, np.int64), np.array(second, np.int64), np.array(free, np.bool_)


def _feeds(problem: Problem, o: int) -> bool:
    return any(s.producer == problem.graph.operators[o].name for s in problem.graph.streams)


def interchangeable(problem: Problem) -> Bools:
    """Returns for each pair of places whether their exchange leaves the machine unchanged."""
    n = problem.places
    same = np.zeros((n, n), np.bool_)
    for p in range(n):
        for q in range(n):
            swap = np.arange(n + 1)
            swap[[p, q]] = q, p
            same[p, q] = all(
                np.array_equal(m, m[np.ix_(swap, swap)])
                for m in (problem.arrays.latency, problem.arrays.bandwidth)
            ) and bool(problem.arrays.cores[p] == problem.arrays.cores[q])
    return same


@compile_function
def _may_place(a: Arrays, same: Bools, counts: Longs, unit: Longs, place: int) -> bool:
    """Returns whether a unit may go to a place: the place has room, and no equivalent plan is tried
    elsewhere.
    """
    used = counts[:, place].sum()
    if used + unit[1] > a.room[place]:
        return False
    if used == 0:
        for other in range(place):
            if same[other, place] and counts[:, other].sum() == 0:
                return False
    return True


@compile_function
def _move(counts: Longs, unit: Longs, source: int, target: int) -> None:
    counts[unit[0], source] -= unit[1]
    counts[unit[0], target] += unit[1]


@compile_function
def _least(units: Longs, where: Longs, unit: int) -> int:
    """Returns the first place for a unit: that of the equal unit before it."""
    return where[units[unit, 2]] if units[unit, 2] >= 0 else 0


@compile_function
def _children(
    tree: _Tree, level: int, state: tuple[Longs, Longs], work: Work, out: tuple[Longs, Doubles]
) -> int:
    """Fills ``out`` with the ways to take a decision, best bound first, then fullest place; returns
    their number.
    """
    a, units, same = tree.arrays, tree.units, tree.same
    counts, where = state
    to, bounds = out
    places = counts.shape[1] - 1
    u, v, only = tree.decisions[level]
    keys = np.empty(places * places)
    n = 0
    for p in range(_least(units, where, u), places):
        if not _may_place(a, same, counts, units[u], p):
            continue
        _move(counts, units[u], places, p)
        where[u] = p
        for q in range(_least(units, where, v) if v >= 0 else 0, places if v >= 0 else 1):
            if v >= 0:
                if not _may_place(a, same, counts, units[v], q):
                    continue
                _move(counts, units[v], places, q)
            to[n, 0], to[n, 1] = p, q
            bounds[n] = evaluate(tree.model, a, counts, work, True)
            left = a.room[p] - counts[:, p].sum()
            if v >= 0:
                left += a.room[q] - counts[:, q].sum() + (100 if p != q else 0)
                _move(counts, units[v], q, places)
            keys[n] = -bounds[n] * (1.0 - 1e-9 * left)
            n += 1
        _move(counts, units[u], p, places)
    order = np.argsort(keys[:n], kind="mergesort")
    to[:n] = to[:n][order]
    bounds[:n] = bounds[:n][order]
    return min(n, 1) if only else n


@compile_function
def _take(tree: _Tree, level: int, to: Longs, state: tuple[Longs, Longs], back: bool) -> None:
    """Places the units of a decision, or takes them ``back``."""
    counts, where = state
    unplaced = counts.shape[1] - 1
    for i in range(2):
        unit = tree.decisions[level, i]
        if unit >= 0 and back:
            _move(counts, tree.units[unit], to[i], unplaced)
        elif unit >= 0:
            _move(counts, tree.units[unit], unplaced, to[i])
            where[unit] = to[i]


@compile_function
def _search(tree: _Tree, best: Longs, value: float, nodes: int) -> tuple[Longs, float, int]:
    """Runs the stack of Algorithm 2: a row of children for each open decision."""
    places = len(tree.arrays.cores) - 1
    depth = len(tree.decisions)
    counts = np.zeros((len(tree.arrays.cost), places + 1), np.int64)
    for unit in tree.units:
        counts[unit[0], places] += unit[1]
    work = (np.zeros(counts.shape), np.zeros(counts.shape))
    to = np.zeros((depth, places * places, 2), np.int64)
    bounds = np.zeros((depth, places * places))
    n, at = np.zeros(depth, np.int64), np.zeros(depth, np.int64)
    state = (counts, np.zeros(len(tree.units), np.int64))
    looked, level = 0, at[0]  # a literal would compile all callees again
    n[0] = _children(tree, level, state, work, (to[0], bounds[0]))
    while level >= 0 and looked < nodes:
        back = at[level] > 0  # returns from a child
        if back:
            _take(tree, level, to[level, at[level] - 1], state, back)
        if at[level] == n[level] or bounds[level, at[level]] <= value:
            at[level] = 0
            level -= 1
            continue
        _take(tree, level, to[level, at[level]], state, False)
        at[level] += 1
        looked += 1
        if level + 1 < depth:
            level += 1
            n[level] = _children(tree, level, state, work, (to[level], bounds[level]))
            continue
        throughput = evaluate(tree.model, tree.arrays, counts, work, False)
        if throughput > value and demand(tree.arrays, counts, work[0]) <= SLACK:
            value = throughput
            best = counts[:, :places].copy()
    return best, value, looked
