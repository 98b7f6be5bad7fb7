"""Placements of replicas by simple rules: first plans of the search, and baselines for it.

First fit and round robin satisfy the constraints if they can. If no place does, the constraints are
relaxed by a quarter, repeatedly. The number of cores is never relaxed: a place has at most one
replica a core.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from levada.core.array_types import Longs
from levada.errors import UsageError
from levada.placement.replication.model_arrays import Problem
from levada.placement.replication.throughput_models import Model, demand, evaluate


def check_room(problem: Problem, replication: Longs) -> None:
    """Raises ``UsageError`` if there are more replicas than cores."""
    if replication.sum() > problem.room:
        raise UsageError(
            f"{replication.sum()} replicas of {problem.graph.name} do not fit on the "
            f"{problem.cores} cores of {problem.machine.name}.",
            hint="Each is bound to a core: take fewer replicas, or a larger machine.",
        )


def first_fit(model: Model, problem: Problem, replication: Longs) -> Longs:
    """Places each replica, in the order of the dataflow, in the first place with room."""
    return _in_order(model, problem, replication, lambda _: range(problem.places))


def round_robin(model: Model, problem: Problem, replication: Longs) -> Longs:
    """Places each replica in the next place with room."""
    n = problem.places
    return _in_order(model, problem, replication, lambda i: (np.arange(i, i + n) % n).tolist())


Order = Callable[[int], Sequence[int]]
"""Returns the places to try for the i-th replica, in order."""


def _in_order(model: Model, problem: Problem, replication: Longs, places: Order) -> Longs:
    check_room(problem, replication)
    for relaxed in (1.25**i for i in itertools.count()):
        counts = _try(model, problem, replication, places, relaxed)
        if counts is not None:
            return counts
    raise AssertionError("some relaxation admits every plan that has a core for each replica")


def _try(
    model: Model, problem: Problem, replication: Longs, places: Order, relaxed: float
) -> Longs | None:
    wide = _without_places(problem, replication)
    work = np.zeros(wide.shape), np.zeros(wide.shape)
    for i, o in enumerate(np.repeat(np.arange(problem.operators), replication)):
        wide[o, -1] -= 1
        for p in places(i):
            if wide[:, p].sum() < problem.arrays.room[p]:
                wide[o, p] += 1
                evaluate(model, problem.arrays, wide, work, False)
                if demand(problem.arrays, wide, work[0]) <= relaxed:
                    break
                wide[o, p] -= 1
        else:
            return None
    return wide[:, :-1].copy()


def _without_places(problem: Problem, replication: Longs) -> Longs:
    wide = np.zeros((problem.operators, problem.places + 1), np.int64)
    wide[:, -1] = replication
    return wide


def scatter(problem: Problem, replication: Longs, seed: int) -> Longs:
    """Places each replica on a random core, as a system that ignores distances does."""
    check_room(problem, replication)
    cores = np.repeat(np.arange(problem.places), problem.arrays.room[:-1])
    drawn = np.random.default_rng(seed).permutation(cores)[: replication.sum()]
    counts = np.zeros((problem.operators, problem.places), np.int64)
    np.add.at(counts, (np.repeat(np.arange(problem.operators), replication), drawn), 1)
    return counts


def random_replication(problem: Problem, total: int, seed: int) -> Longs:
    """Returns one replica of each operator plus replicas of random operators, ``total`` in all."""
    draws = np.random.default_rng(seed).integers(0, problem.operators, total - problem.operators)
    return 1 + np.bincount(draws, minlength=problem.operators)


def metis(problem: Problem, replication: Longs, seed: int) -> Longs | None:
    """Places replicas by METIS' cut of their rates, a part a place; returns None without
    ``pymetis``. Replicas above a place's cores go to the next place with room.
    """
    if importlib.util.find_spec("pymetis") is None or problem.places == 1:
        return None
    import pymetis

    neighbours, weights = _network(problem, replication)
    if not any(neighbours):
        return None
    _, parts = pymetis.part_graph(
        problem.places,
        adjacency=neighbours,
        eweights=list(itertools.chain(*weights)),
        options=pymetis.Options(seed=seed),
    )
    counts = np.zeros((problem.operators, problem.places), np.int64)
    for o, part in zip(np.repeat(np.arange(problem.operators), replication), parts, strict=True):
        room = (
            p
            for p in _places_from(part, problem.places)
            if counts[:, p].sum() < problem.arrays.room[p]
        )
        counts[o, next(room)] += 1
    return counts


def _places_from(place: int, places: int) -> Iterator[int]:
    return ((place + i) % places for i in range(places))


def _network(problem: Problem, replication: Longs) -> tuple[list[list[int]], list[list[int]]]:
    """Returns the neighbours of each replica, in both directions, and the rates in thousandths of
    the greatest.
    """
    a = problem.arrays
    ends = np.cumsum([0, *replication])
    n = int(replication.sum())
    rate = np.zeros((n, n))
    for o in range(problem.operators):
        for e in range(a.first[o], a.first[o + 1]):
            s = a.source[e]
            each = a.flow[s] * a.selectivity[e] * a.lines[e] / (replication[o] * replication[s])
            rate[ends[s] : ends[s + 1], ends[o] : ends[o + 1]] = each
    rate += rate.T
    rows = [np.flatnonzero(row) for row in rate]
    most = max(rate.max(), 1e-300)
    weights = [np.maximum(1, 1000 * rate[i, row] / most).astype(int) for i, row in enumerate(rows)]
    return [row.tolist() for row in rows], [w.tolist() for w in weights]
