"""The refined placer: local search from several starts; the result is the best placement within the
bound on RSD.

Starts are METIS' cuts, a greedy pass, tasks by weight alone, and random placements of few tasks.
METIS' best cut is among them, so the result is at least as good if that is within the bound. METIS
fails if one task nearly fills a machine's part; then the greedy pass leads. With ``before``, that
is the only start. Deterministic: the same problem and seed give the same placement. Cost: about 5
million steps of 100 ns, shared among the starts.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from levada.core.array_types import Ints
from levada.errors import UsageError
from levada.placement import metis
from levada.placement.annealing import Heat, Net, Rule, anneal, attach
from levada.placement.baseline_placers import by_weight
from levada.placement.cost import machine_loads, rsd
from levada.placement.problem import Problem, net

STEPS, MOST_STARTS, FEW_TASKS = 5_000_000, 40, 50
PRICES, UNEVEN = (3.0, 10.0, 30.0), (10, 30, 50, 100)
HEATS, HEATS_OF_FEW = (0.2, 0.05, 0.05, 0.5), (2.0, 0.5, 5.0, 1.0)
"""Temperatures in units of an edge's mean messages. Placements of few tasks are cheap to try and
differ widely in cost.
"""


def refine_placement(problem: Problem) -> Ints:
    """Returns the cheapest placement within the bound that was found. Raises ``UsageError`` with
    the least possible RSD if there was none.
    """
    if problem.floor() > problem.bound + 1e-12:
        raise _impossible(problem, problem.floor(), "the least is")
    network = net(problem)
    best, least, nearest = None, np.inf, np.inf
    for turn, start in enumerate(_starts(problem, network)):
        placement, cost = _search(problem, network, start, turn)
        deviation = _rsd(problem, placement)
        nearest = min(nearest, deviation)
        if deviation <= problem.bound + 1e-12 and cost < least:
            best, least = placement, cost
    if best is None:
        raise _impossible(problem, nearest, "the least that was found is")
    return best


def evenest(problem: Problem) -> float:
    """Returns the RSD of a placement by loads alone, the heaviest task first."""
    return _rsd(problem, _deal(net(problem)))


def present(problem: Problem) -> float:
    """Returns the RSD of the placement ``before``, with new tasks near their neighbours."""
    assert problem.before is not None, "there is one"
    return _rsd(problem, _fill(net(problem), problem.before))


def _fill(network: Net, before: Ints) -> Ints:
    filled = np.where(before < 0, attach(network, by_weight(network), np.inf, True), before)
    return filled.astype(np.int32)


def _deal(network: Net) -> Ints:
    return attach(network, np.argsort(-network.load, kind="stable").astype(np.int32), -1.0, False)


def _search(problem: Problem, network: Net, start: Ints, turn: int) -> tuple[Ints, float]:
    """Returns the placement that the search reaches from a start, and its cost."""
    k, n = problem.machines, start.size
    most = problem.bound / k * np.sqrt(max(k - 1, 1)) + 1e-12
    before = np.full(n, -1, np.int32) if problem.before is None else problem.before
    rule = Rule(most, PRICES[turn % len(PRICES)], before.astype(np.int32), problem.moves)
    heats, most_sweeps = (HEATS, 500) if n > FEW_TASKS else (HEATS_OF_FEW, 2_000)
    hot = heats[turn % len(heats)] / max(network.other.size / 2, 1.0)
    sweeps = int(np.clip(STEPS // (n * _turns(n)), 100, most_sweeps))
    rng = np.random.default_rng([problem.seed, turn])
    placement, _ = anneal(network, start.astype(np.int32), rule, Heat(sweeps, hot, hot / 500), rng)
    return placement, _cost(network, placement)


def _starts(problem: Problem, network: Net) -> Iterator[Ints]:
    """Yields the starts of the searches."""
    n, k = network.load.size, problem.machines
    if problem.before is not None:
        yield from [_fill(network, problem.before)] * min(_turns(n), 6)
        return
    if metis.fits(problem):
        yield metis.cut(problem)
    for room in (1.0, 1.0 + problem.bound):
        yield attach(network, by_weight(network), room / k, True)
    yield _deal(network)
    lots = np.random.default_rng(problem.seed)
    for turn in range(_turns(n) - 4):
        if metis.fits(problem) and (n > FEW_TASKS or turn % 2):
            yield metis.partition(
                network, k, problem.seed + turn, uneven=UNEVEN[turn % len(UNEVEN)], cuts=1
            )
        else:
            yield lots.integers(0, k, n, np.int32)


def _turns(tasks: int) -> int:
    return int(np.clip(10_000 // tasks, 4, MOST_STARTS))


def _cost(network: Net, place: Ints) -> float:
    source = np.repeat(np.arange(place.size), np.diff(network.first))
    return float(network.out @ network.apart[place[source], place[network.other]])


def _rsd(problem: Problem, place: Ints) -> float:
    return rsd(machine_loads(problem.graph, place, problem.machines, problem.load))


def _impossible(problem: Problem, least: float, said: str) -> UsageError:
    task, part = problem.heaviest()
    return UsageError(
        f"No placement on {problem.machines} machines has an RSD of {problem.bound:.2%} or less: "
        f"{said} {least:.2%}. The heaviest task is {task}, with {part:.1%} of the load.",
        hint=f"Allow {least * 1.05:.1%} or more, use fewer machines, or split that task.",
    )
