"""Local search over plans: replicas move, swap places, and with ``replicate`` change their
operator.

Simulated annealing on the model's tuples/s. The model hardly distinguishes plans with the same
slowest replica, so replicas that are always busy cost a hundredth. A plan that exceeds a resource
counts by the fraction that it has. A step without effect is not taken, so a model without distances
keeps the places of the start. The result is never worse than the start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from levada.core.array_types import Longs
from levada.placement.replication.branch_and_bound import SLACK
from levada.placement.replication.model_arrays import Arrays, Problem
from levada.placement.replication.numba_cache import compile_function
from levada.placement.replication.throughput_models import Model, Work, demand, evaluate

HOT, COLD = 0.03, 0.0002
"""The fraction of tuples/s that a step may lose, at the start and at the end."""
NO_LIMIT = 1 << 40


class _Schedule(NamedTuple):
    seed: int
    steps: int
    replicate: bool
    moves: int


def refine(
    model: Model,
    problem: Problem,
    counts: Longs,
    *,
    seed: int,
    steps: int = 100_000,
    replicate: bool = False,
    moves: int = NO_LIMIT,
) -> Longs:
    """Returns a plan at least as good. ``replicate``: the search may change the number of replicas
    of operators. ``moves``: the most replicas that may be new or elsewhere at the end.
    """
    wide = np.zeros((problem.operators, problem.places + 1), np.int64)
    wide[:, :-1] = counts
    refined = _anneal(model, problem.arrays, wide, _Schedule(seed, steps, replicate, moves))
    return refined[:, :-1].copy()


@compile_function
def _pick(counts: Longs) -> tuple[int, int]:
    """Draws an operator, then a place in which it has a replica."""
    o = np.random.randint(counts.shape[0])
    at = np.random.randint(counts[o].sum())
    for p in range(counts.shape[1]):
        at -= counts[o, p]
        if at < 0:
            return o, p
    return o, 0


@compile_function
def _propose(a: Arrays, counts: Longs, replicate: bool) -> bool:
    """Changes a plan by one step; returns False, without a change, if the step is impossible."""
    places = counts.shape[1] - 1
    o, p = _pick(counts)
    q = np.random.randint(places)
    room = counts[:, q].sum() < a.room[q]
    draw = np.random.random()
    if replicate and draw < 0.3:
        other = np.random.randint(counts.shape[0])
        if draw < 0.05:  # one more
            if room:
                counts[o, q] += 1
            return bool(room)
        if counts[o].sum() == 1:
            return False
        if draw < 0.08:  # one less
            counts[o, p] -= 1
            return True
        if draw < 0.2 or p == q:
            q, room = p, True
        if other == o or not room:
            return False
        counts[o, p] -= 1
        counts[other, q] += 1
        return True
    if draw < 0.65:
        if p == q or not room:
            return False
        counts[o, p] -= 1
        counts[o, q] += 1
        return True
    other, q = _pick(counts)
    if other == o or p == q:
        return False
    counts[o, p] -= 1
    counts[o, q] += 1
    counts[other, q] -= 1
    counts[other, p] += 1
    return True


@compile_function
def _values(model: Model, a: Arrays, counts: Longs, work: Work) -> tuple[float, float]:
    """Returns the value that accepts steps, and the value that ranks plans."""
    taken, busy = work
    throughput = evaluate(model, a, counts, work, False)
    needed = demand(a, counts, taken)
    full, n = 0.0, 0
    for o in range(counts.shape[0]):
        for p in range(counts.shape[1]):
            if counts[o, p]:
                full += counts[o, p] * min(busy[o, p], 1.0) ** 8
                n += counts[o, p]
    smooth = throughput * (1.0 - 0.01 * full / n) / max(needed, 1.0)
    return smooth, throughput if needed <= SLACK else throughput * 1e-6 / needed


@compile_function
def _anneal(model: Model, a: Arrays, start: Longs, schedule: _Schedule) -> Longs:
    seed, steps, replicate, moves = schedule
    np.random.seed(seed)
    now = start.copy()
    work = (np.zeros(now.shape), np.zeros(now.shape))
    smooth, value = _values(model, a, now, work)
    best, best_value = now.copy(), value
    heat = HOT
    cooling = (COLD / HOT) ** (1.0 / max(steps, 1))
    trial = now.copy()
    for _ in range(steps):
        heat *= cooling
        trial[:] = now
        if not _propose(a, trial, replicate):
            continue
        if moves < NO_LIMIT and np.maximum(trial - start, 0).sum() > moves:
            continue
        next_smooth, next_value = _values(model, a, trial, work)
        gain = next_smooth - smooth
        if gain > 0 or (gain < 0 and np.random.random() < np.exp(gain / (heat * smooth))):
            now[:] = trial
            smooth = next_smooth
            if next_value > best_value:
                best, best_value = now.copy(), next_value
    return best
