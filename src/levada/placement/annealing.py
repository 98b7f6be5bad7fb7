"""Simulated annealing over placements: tasks move to other machines, or two change places.

The objective is the cost (messages times the distance of their machines, by all messages) plus a
price for the loads' deviation above its bound. So the search may pass through unbalanced
placements. Once a sweep the placement is compared with the cheapest one within the bound, which is
the result. At most ``moves`` tasks differ from ``before``.

Loads and messages are fractions of their sums. Cost: 50 to 100 ns a step at a few neighbours a
task. The kernels are functions of the arrays and the generator. All compiled functions are in this
file, since numba's cache checks no other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from levada.core.array_types import Doubles, Ints, Longs
from levada.core.cache_folder import cache_compiled

F = TypeVar("F", bound=Callable[..., Any])
Table = npt.NDArray[np.float64]


def compile_loop(function: F) -> F:
    """Compiles a loop with numba; caches it on disk unless indexes are checked."""
    dispatcher = numba.njit(nogil=True)(function)
    if dispatcher is not function and not numba.config.BOUNDSCHECK:
        cache_compiled(dispatcher)
    return cast(F, dispatcher)


class Net(NamedTuple):
    """The graph by neighbours. Those of task v are at ``first[v]`` to ``first[v + 1]`` of
    ``other``; ``out`` is sent to each, ``back`` received from each. ``load``: of each task.
    ``apart``: distances of machines.
    """

    first: Longs
    other: Ints
    out: Doubles
    back: Doubles
    load: Doubles
    apart: Table


class Rule(NamedTuple):
    """``most``: the greatest deviation (the root of the sum of squares around the mean). ``price``:
    of a unit above it. At most ``moves`` tasks may differ from ``before`` (-1: the task may be
    anywhere).
    """

    most: float
    price: float
    before: Ints
    moves: int


class Crew(NamedTuple):
    """The machine of each task, and the load of each machine."""

    place: Ints
    load: Doubles


class Heat(NamedTuple):
    """The schedule: ``sweeps`` of a step for each task, from the temperature ``hot`` to
    ``cold``.
    """

    sweeps: int
    hot: float
    cold: float


@compile_loop
def gain(net: Net, place: Ints, v: int, b: int) -> float:
    """Returns the change of the cost if task v goes to machine b."""
    a = place[v]
    change: float = 0.0
    for j in range(net.first[v], net.first[v + 1]):
        p = place[net.other[j]]
        change += net.out[j] * (net.apart[b, p] - net.apart[a, p])
        change += net.back[j] * (net.apart[p, b] - net.apart[p, a])
    return change


@compile_loop
def deviation(load: Doubles) -> float:
    """Returns the root of the sum of the squares around the mean."""
    mean = load.sum() / load.size
    square = 0.0
    for each in load:
        square += (each - mean) * (each - mean)
    return float(np.sqrt(square))


@compile_loop
def squares(load: Doubles, a: int, b: int, weight: float) -> float:
    """Returns the change of the sum of squares if ``weight`` goes from machine a to b."""
    return float(2.0 * weight * (load[b] - load[a] + weight))


@compile_loop
def target(net: Net, place: Ints, v: int, rng: np.random.Generator) -> int:
    """Draws a machine for task v: mostly that of a neighbour, else any."""
    degree = net.first[v + 1] - net.first[v]
    if degree and rng.random() < 0.75:
        return int(place[net.other[net.first[v] + int(rng.random() * degree)]])
    return int(rng.random() * net.apart.shape[0])


@compile_loop
def partner(place: Ints, machine: int, tries: int, rng: np.random.Generator) -> int:
    """Draws a task on a machine; -1 if ``tries`` draws hit none."""
    for _ in range(tries):
        u = int(rng.random() * place.size)
        if place[u] == machine:
            return u
    return -1


@compile_loop
def strays(rule: Rule, v: int, a: int, b: int) -> int:
    """Returns the change of the number of tasks away from ``before`` if task v goes from a to b."""
    home = rule.before[v]
    return 0 if home < 0 else int(b != home) - int(a != home)


@compile_loop
def above(square: float, most: float) -> float:
    """Returns how far the deviation is above its bound."""
    return max(float(np.sqrt(max(square, 0.0))) - most, 0.0)


@compile_loop
def sweep(net: Net, crew: Crew, rule: Rule, heat: float, rng: np.random.Generator) -> float:
    """Tries a step for each task; changes ``crew`` and returns the change of the cost."""
    place, load = crew.place, crew.load
    n, machines = place.size, load.size
    gone = 0
    for v in range(n):
        gone += int(rule.before[v] >= 0 and place[v] != rule.before[v])
    square = deviation(load) ** 2
    changed = 0.0
    for _ in range(n):
        v = int(rng.random() * n)
        a, b = place[v], target(net, place, v, rng)
        if a == b:
            continue
        u = partner(place, b, 3 * machines, rng) if rng.random() < 0.5 else -1
        further = strays(rule, v, a, b) + (strays(rule, u, b, a) if u >= 0 else 0)
        if further > 0 and gone + further > rule.moves:
            continue
        weight = net.load[v] - (net.load[u] if u >= 0 else 0.0)
        after = square + squares(load, a, b, weight)
        cost = gain(net, place, v, b)
        place[v] = b
        if u >= 0:
            cost += gain(net, place, u, a)
        worse = cost + rule.price * (above(after, rule.most) - above(square, rule.most))
        if worse <= 0.0 or rng.random() < np.exp(-worse / heat):
            if u >= 0:
                place[u] = a
            load[a] -= weight
            load[b] += weight
            square, gone, changed = after, gone + further, changed + cost
        else:
            place[v] = a
    return changed


@compile_loop
def anneal(
    net: Net, start: Ints, rule: Rule, heat: Heat, rng: np.random.Generator
) -> tuple[Ints, float]:
    """Returns the cheapest placement within the bound on the way from ``start``, and its cost less
    that of the start. If none was within the bound, returns the last one and infinity.
    """
    place, best = start.copy(), start.copy()
    least, cost = np.inf, 0.0
    temperature = heat.hot
    for _ in range(heat.sweeps + 1):
        load = np.zeros(net.apart.shape[0])
        for v in range(place.size):
            load[place[v]] += net.load[v]
        if cost < least and deviation(load) <= rule.most:
            least = cost
            best[:] = place
        cost += sweep(net, Crew(place, load), rule, temperature, rng)
        temperature *= (heat.cold / heat.hot) ** (1.0 / heat.sweeps)
    return (best if least < np.inf else place), least


@compile_loop
def attach(net: Net, order: Ints, room: float, near: bool) -> Ints:
    """Places the tasks in an order, each on a machine with ``room`` of load.

    With ``near`` the machine is the one with the most messages to and from the task. Else, and
    among equals, it is the one with the least assigned weight. Without room anywhere it is the
    least loaded one.
    """
    n, machines = net.load.size, net.apart.shape[0]
    place = np.full(n, -1, np.int32)
    load, whole, pull = np.zeros(machines), np.zeros(machines), np.empty(machines)
    for v in order:
        pull[:] = 0.0
        weight = net.load[v]
        for j in range(net.first[v], net.first[v + 1]):
            both = net.out[j] + net.back[j]
            weight += both
            if near and place[net.other[j]] >= 0:
                pull[place[net.other[j]]] += both
        best = -1
        for m in range(machines):
            if load[m] + net.load[v] > room:
                continue
            if (
                best < 0
                or pull[m] > pull[best]
                or (pull[m] == pull[best] and whole[m] < whole[best])
            ):
                best = m
        if best < 0:
            best = int(np.argmin(load))
        place[v] = best
        load[best] += net.load[v]
        whole[best] += weight if near else net.load[v]
    return place
