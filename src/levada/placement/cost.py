"""What a placement costs, by the definitions of KATTS.

*Share*: what is sent between tasks on different machines, by all that is sent. *Load* of a machine:
what its tasks receive, from near or far. *RSD*: the sample standard deviation of the machines'
loads by their mean. Sums are those of integers, so they are exact.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Doubles, Ints, Longs
from levada.core.frozen import frozen
from levada.placement.send_graph import Load, SendGraph, Unit

VAIN, MIN_TASKS_PER_MACHINE = 0.9, 4
"""What part of what lots leave across machines a placement leaves that gains nothing to speak of;
fewer tasks a machine say nothing.
"""


@frozen
class Score:
    """Share and RSD, as fractions."""

    share: float
    rsd: float


def share(graph: SendGraph, place: Ints, unit: Unit = "rows") -> float:
    """The share of what is sent that crosses machines; 0 if nothing is sent.

    >>> graph = SendGraph(("r", "a"), *np.array([[0, 1], [1, 0]], np.int32), np.array([3, 1]))
    >>> share(graph, np.array([0, 1], np.int32)), share(graph, np.array([1, 1], np.int32))
    (1.0, 0.0)
    """
    sent = graph.sent(unit)
    total = int(sent.sum())
    far = place[graph.source] != place[graph.target]
    return int(sent[far].sum()) / total if total else 0.0


def between(graph: SendGraph, place: Ints, machines: int, unit: Unit = "rows") -> Doubles:
    """The share of what is sent that goes from each machine to each: rows are senders.

    >>> graph = SendGraph(("r", "a"), *np.array([[0, 1], [1, 0]], np.int32), np.array([3, 1]))
    >>> between(graph, np.array([0, 1], np.int32), 2).tolist()
    [[0.0, 0.75], [0.25, 0.0]]
    """
    sent, pairs = graph.sent(unit), place[graph.source] * machines + place[graph.target]
    total = np.bincount(pairs, sent, machines * machines)
    shares: Doubles = total.reshape(machines, machines) / max(float(total.sum()), 1.0)
    return shares


def machine_loads(graph: SendGraph, place: Ints, machines: int, load: Load = "rows") -> Doubles:
    """The load of each machine."""
    return np.bincount(place, graph.loads(load), machines).astype(np.float64)


def rsd(loads: npt.ArrayLike) -> float:
    """Sample standard deviation by mean; 0 of one machine, and where nothing is received.

    >>> round(rsd([1, 2, 3]), 3)
    0.5
    """
    values = np.asarray(loads, np.float64)
    mean = values.mean()
    return float(values.std(ddof=1) / mean) if values.size > 1 and mean else 0.0


def score(
    graph: SendGraph, place: Ints, machines: int, unit: Unit = "rows", load: Load = "rows"
) -> Score:
    """Share and RSD of a placement."""
    return Score(share(graph, place, unit), rsd(machine_loads(graph, place, machines, load)))


def by_lot(graph: SendGraph, machines: int, unit: Unit = "rows") -> float:
    """The share that crosses where tasks are dealt out by lot; what a task sends itself stays.

    >>> graph = SendGraph(("r", "a"), *np.array([[0, 1], [1, 1]], np.int32), np.array([3, 1]))
    >>> by_lot(graph, 4)
    0.5625
    """
    sent = graph.sent(unit)
    away, total = int(sent[graph.source != graph.target].sum()), int(sent.sum())
    return (1 - 1 / machines) * away / total if total else 0.0


def in_vain(graph: SendGraph, machines: int, least: float, unit: Unit = "rows") -> bool:
    """Whether a placement that leaves ``least`` is hardly better than lots."""
    many = len(graph.tasks) >= MIN_TASKS_PER_MACHINE * machines
    return many and least > VAIN * by_lot(graph, machines, unit)


def distant(graph: SendGraph, place: Ints, distance: Doubles, unit: Unit = "rows") -> float:
    """What is sent, each times the distance of its machines, by all that is sent."""
    sent = graph.sent(unit)
    return float(sent @ distance[place[graph.source], place[graph.target]]) / int(sent.sum())


def floor_rsd(loads: Longs | Doubles, machines: int) -> float:
    """An RSD that no placement is below: a machine holds at least the heaviest task, and what is
    left is dealt to the others as if it were sand; and so on with the next heaviest.

    >>> round(floor_rsd(np.array([6, 1, 1]), 2), 3), floor_rsd(np.array([1, 1, 1, 1]), 2)
    (0.707, 0.0)
    """
    heavy = np.sort(np.asarray(loads, np.float64))[::-1]
    left = float(heavy.sum())
    parts: list[float] = []
    while len(parts) < machines:
        free = machines - len(parts)
        heaviest = heavy[len(parts)] if len(parts) < heavy.size else 0.0
        if heaviest <= left / free or math.isclose(heaviest, left / free):
            parts += [left / free] * free
        else:
            parts.append(heaviest)
            left -= heaviest
    least = rsd(parts)
    return least if least > 1e-12 else 0.0
