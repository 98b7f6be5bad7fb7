"""Placers that ignore most or all of the messages: baselines for the others."""

from __future__ import annotations

import numpy as np

from levada.core.array_types import Ints
from levada.placement.annealing import Net
from levada.placement.problem import Problem
from levada.placement.send_graph import SendGraph


def uniform(problem: Problem) -> Ints:
    """Places by KATTS' baseline: the task's number modulo the machines. Without numbers as names
    the position in the graph counts.

    >>> graph = SendGraph(("14", "3"), *np.array([[0], [1]], np.int32), np.array([7]))
    >>> uniform(Problem(graph, 12)).tolist()
    [2, 3]
    """
    return numbers(problem.graph) % problem.machines


def numbers(graph: SendGraph) -> Ints:
    """Returns the tasks' names as numbers, or their positions."""
    plain = all(task.isascii() and task.isdigit() and len(task) < 10 for task in graph.tasks)
    return np.array(list(map(int, graph.tasks)) if plain else range(len(graph.tasks)), np.int32)


def place_evenly(problem: Problem) -> Ints:
    """Places as many tasks on each machine, at random: 1 - 1/machines of all messages cross
    machines.
    """
    n = len(problem.graph.tasks)
    order = np.random.default_rng(problem.seed).permutation(n)
    return (order % problem.machines).astype(np.int32)


def round_robin(problem: Problem) -> Ints:
    """Places tasks in turn, in the order of the flow: a task, then the receiver of most of its
    messages, and so on.
    """
    place = np.empty(len(problem.graph.tasks), np.int32)
    place[flow(problem.graph)] = np.arange(place.size) % problem.machines
    return place


def first_fit(problem: Problem) -> Ints:
    """Places tasks in the order of the flow, each on the first machine with room: an equal share
    and 3 %. Without room anywhere a task goes to the emptiest machine.
    """
    loads = problem.graph.loads(problem.load).astype(np.float64)
    room = np.full(problem.machines, 1.03 * loads.sum() / problem.machines)
    place = np.empty(loads.size, np.int32)
    for task in flow(problem.graph):
        fits = np.flatnonzero(room >= loads[task])
        at = int(fits[0]) if fits.size else int(room.argmax())
        place[task] = at
        room[at] -= loads[task]
    return place


def flow(graph: SendGraph) -> list[int]:
    """Returns the tasks depth first, from those that receive nothing, along the edges with the most
    rows.
    """
    order = np.lexsort((graph.rows, graph.source))
    first = np.searchsorted(graph.source[order], np.arange(len(graph.tasks) + 1)).tolist()
    targets = graph.target[order].tolist()
    receives = np.zeros(len(graph.tasks), bool)
    receives[graph.target[graph.source != graph.target]] = True
    seen: dict[int, None] = {}
    for root in np.argsort(receives, kind="stable").tolist():
        waiting = [root]
        while waiting:
            task = waiting.pop()
            if task not in seen:
                seen[task] = None
                waiting += targets[first[task] : first[task + 1]]
    return list(seen)


def by_weight(net: Net) -> Ints:
    """Returns the tasks by messages sent and received, largest first; ties keep their order."""
    whole = np.add.reduceat(np.append(net.out + net.back, 0.0), net.first[:-1])
    whole[net.first[1:] == net.first[:-1]] = 0.0
    return np.argsort(-np.maximum(whole, net.load), kind="stable").astype(np.int32)
