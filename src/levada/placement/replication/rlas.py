"""RLAS: replication and placement together (BriskStream, Algorithm 1), followed by local search.

All operators start with one replica and are placed. Then the first over-supplied operator from the
sinks up gets more replicas, until no core is left or none is over-supplied. A spout with unlimited
input gets one replica at a time. Where the paper stops because no placement satisfies the
constraints, ``coarse`` adds a replica to the busiest operator. The last step stops at the last
core.

Local search starts from that plan and from replications in proportion to the operators' cost, with
near and with far tuples. ``nodes`` and ``steps`` bound the search, so its result is the same on
every machine. ``seconds`` of ``clock`` may end it earlier, with the best plan so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Literal

import numpy as np

from levada.core.array_types import Doubles, Longs
from levada.core.frozen import frozen
from levada.errors import UsageError
from levada.placement.replication.baseline_plans import (
    check_room,
    first_fit,
    metis,
    round_robin,
)
from levada.placement.replication.branch_and_bound import SLACK, BestPlan, branch
from levada.placement.replication.local_search import refine
from levada.placement.replication.model_arrays import FULL, Arrays, Problem
from levada.placement.replication.numba_cache import compile_function
from levada.placement.replication.throughput_models import (
    PAPER,
    SECOND,
    Model,
    _share_time,
    demand,
    evaluate,
)

UNIT = 5
"""The default number of replicas that are placed together; finer units are never worse."""
BOTTLENECK_RATIO = 1 + 1e-6
"""An operator whose input is this many times its capacity is a bottleneck."""


@frozen
class Search:
    """The settings of the search. ``ratio``: replicas that are placed together. ``step``: a
    bottleneck's replicas grow ``by`` its oversupply (as printed), or ``to`` that many times as
    many.
    """

    ratio: int = UNIT
    step: Literal["by", "to"] = "by"
    best_fit: bool = True
    coarse: bool = True
    nodes: int = 2_000
    steps: int = 100_000
    seed: int = 0
    seconds: float = math.inf
    clock: Callable[[], float] = field(default=lambda: 0.0)


@frozen
class Plan:
    """Replicas, operators by places; tuples/s by the model; whether it satisfies the
    constraints.
    """

    counts: Longs
    throughput: float
    within: bool

    @property
    def replication(self) -> Longs:
        """Returns the number of replicas of each operator."""
        total: Longs = self.counts.sum(axis=1)
        return total

    def better(self, other: Plan | None) -> bool:
        """Returns whether this plan is better; plans that satisfy the constraints come first."""
        return other is None or (self.within, self.throughput) > (other.within, other.throughput)


def evaluate_plan(model: Model, problem: Problem, counts: Longs) -> Plan:
    """Returns a plan with its rating by the model."""
    wide = np.zeros((problem.operators, problem.places + 1), np.int64)
    wide[:, :-1] = counts
    work = np.zeros(wide.shape), np.zeros(wide.shape)
    throughput = evaluate(model, problem.arrays, wide, work, False)
    return Plan(counts, throughput, demand(problem.arrays, wide, work[0]) <= SLACK)


def place(model: Model, problem: Problem, replication: Longs, search: Search) -> Plan:
    """Returns the best placement found for these replicas, by branch and bound from the best of
    METIS' cut, first fit and round robin. Raises ``UsageError`` if there are more replicas than
    cores.
    """
    return _place(model, problem, replication, search)[0]


def _place(
    model: Model, problem: Problem, replication: Longs, search: Search
) -> tuple[Plan, BestPlan]:
    check_room(problem, replication)
    simple = [rule(model, problem, replication) for rule in (first_fit, round_robin)]
    cut = metis(problem, replication, search.seed)
    best: Plan | None = None
    for counts in simple + ([cut] if cut is not None else []):
        plan = evaluate_plan(model, problem, counts)
        best = plan if plan.better(best) else best
    assert best is not None, "first fit always gives a plan"
    searched = branch(
        model,
        problem,
        replication,
        (best.counts, best.throughput if best.within else 0.0),
        ratio=search.ratio,
        best_fit=search.best_fit,
        nodes=search.nodes,
    )
    plan = evaluate_plan(model, problem, searched.counts)
    return (plan if plan.better(best) else best), searched


def rlas(model: Model, problem: Problem, search: Search | None = None) -> Plan:
    """Returns the best replication and placement found. Raises ``UsageError`` if the machine has
    fewer cores than the graph has operators.

    >>> from levada.placement.replication.example_applications import word_count
    >>> from levada.core.machine_file import shipped_machine
    >>> from levada.placement.replication.throughput_models import MODELS
    >>> from levada.placement.replication.model_arrays import problem
    >>> words = problem(word_count(), shipped_machine("server-b"))
    >>> plan = rlas(MODELS["sustainable"], words, Search(nodes=200, steps=2000))
    >>> plan.within, int(plan.replication.sum()) <= 64
    (True, True)
    """
    search = search or Search()
    end = search.clock() + search.seconds
    best = _search_plan(model, problem, search)
    left = end - search.clock()
    if search.ratio < UNIT and left > 0:  # a plan of coarse units is also one of fine units
        plan = _search_plan(model, problem, replace(search, ratio=UNIT, seconds=left))
        best = plan if plan.better(best) else best
    return best


def _search_plan(model: Model, problem: Problem, search: Search) -> Plan:
    end = search.clock() + search.seconds
    best = scale_up(model, problem, search)
    starts = [best.counts]
    for cost in balances(problem):
        if search.clock() >= end:
            return best
        starts.append(place(model, problem, balance_cores(problem, cost), search).counts)
    for i, counts in enumerate(starts):
        if search.clock() >= end:
            return best
        seed = search.seed + i
        refined_counts = refine(
            model, problem, counts, seed=seed, steps=search.steps, replicate=True
        )
        plan = evaluate_plan(model, problem, refined_counts)
        best = plan if plan.better(best) else best
    return best


def scale_up(model: Model, problem: Problem, search: Search) -> Plan:
    """Returns the best plan of Algorithm 1."""
    best: Plan | None = None
    end = search.clock() + search.seconds
    for plan in _steps(model, problem, search):
        best = plan if plan.better(best) else best
        if search.clock() >= end:
            break
    assert best is not None, "the first step always gives a plan"
    return best


def _steps(model: Model, problem: Problem, search: Search) -> Iterator[Plan]:
    if problem.room < problem.operators:
        raise UsageError(
            f"{problem.machine.name} has {problem.cores} cores for the {problem.operators} "
            f"operators of {problem.graph.name}.",
            hint="Each needs one at least.",
        )
    replication = np.ones(problem.operators, np.int64)
    while True:
        plan = place(model, problem, replication, search)
        yield plan
        left = problem.room - int(replication.sum())
        if left == 0 or not (plan.within or search.coarse):
            return
        ratios = oversupply(model, problem, plan)
        which = bottleneck(ratios) if plan.within else busiest(model, problem, plan)
        if which is None:
            return
        replication[which] += min(_more(problem, which, replication, ratios, search.step), left)


def _more(
    problem: Problem, which: int, replication: Longs, ratios: Doubles, step: Literal["by", "to"]
) -> int:
    spout = problem.arrays.first[which] == problem.arrays.first[which + 1]
    if ratios[which] < BOTTLENECK_RATIO or (spout and problem.arrays.rate >= FULL):
        return 1
    ratio = min(float(ratios[which]), float(problem.room))
    if step == "by":
        return math.ceil(ratio)
    return max(math.ceil(int(replication[which]) * ratio) - int(replication[which]), 1)


def bottleneck(ratios: Doubles) -> int | None:
    """Returns the first operator from the sinks up that receives more than it can take, or None."""
    over = np.flatnonzero(ratios > BOTTLENECK_RATIO)
    return int(over[-1]) if len(over) else None


def busiest(model: Model, problem: Problem, plan: Plan) -> int:
    """Returns the operator whose replicas have the most work."""
    times = np.zeros(problem.operators)
    wide = np.pad(plan.counts, ((0, 0), (0, 1)))
    for o in range(problem.operators):
        times[o] = max(
            _share_time(problem.arrays, wide, o, int(p)) for p in np.flatnonzero(wide[o])
        )
    return int(times.argmax())


def oversupply(model: Model, problem: Problem, plan: Plan) -> Doubles:
    """Returns the input of each operator, divided by its capacity. In ``sustainable`` and
    ``epochs``, where input never exceeds the slowest operator, the possible output of all operators
    before it counts.
    """
    wide = np.pad(plan.counts, ((0, 0), (0, 1)))
    work = np.zeros(wide.shape), np.zeros(wide.shape)
    evaluate(model, problem.arrays, wide, work, False)
    return _oversupply(model, problem.arrays, wide, work[0])


@compile_function
def _oversupply(model: Model, a: Arrays, counts: Longs, taken: Doubles) -> Doubles:
    operators, places = counts.shape
    ratios = np.ones(operators)
    able = np.empty(operators)  # output of each and all before it, in tuples of a spout
    for o in range(operators):
        spout = a.first[o] == a.first[o + 1]
        arrived = a.rate if spout else 0.0
        before = a.rate if spout else 1e300
        capacity = 1e300
        for e in range(a.first[o], a.first[o + 1]):
            s = a.source[e]
            arrived += (taken[s] * counts[s]).sum() * a.selectivity[e]
            before = min(before, able[s])
        for p in range(places):
            if counts[o, p]:
                capacity = min(capacity, SECOND / max(_share_time(a, counts, o, p), 1e-300))
        if model.kind == PAPER:
            got = (taken[o] * counts[o]).sum()
            ratios[o] = arrived / got if got > 0 else 1.0
        else:
            ratios[o] = before / capacity
        able[o] = min(before, capacity)
    return ratios


def balances(problem: Problem) -> list[Doubles]:
    """Returns the ns of each operator for a tuple of each spout, three times: with all inputs near,
    at half of the mean distance, and at the mean distance.
    """
    a = problem.arrays
    far = float(a.latency[:-1, :-1].mean())
    fetch = np.zeros(problem.operators)
    for o in range(problem.operators):
        for e in range(a.first[o], a.first[o + 1]):
            fetch[o] += a.flow[a.source[e]] * a.selectivity[e] * a.lines[e] * far
    return [a.cost * a.flow + part * fetch for part in (0.0, 0.5, 1.0)]


def balance_cores(problem: Problem, cost: Doubles) -> Longs:
    """Returns a division of all cores by cost, with at least one for each operator. Each next core
    goes to the operator with the most work a replica.
    """
    counts = np.ones(problem.operators, np.int64)
    for _ in range(problem.room - problem.operators):
        counts[(cost / counts).argmax()] += 1
    return counts
