"""The cost of a placement, by the definitions of KATTS.

*Share*: the messages between tasks on different machines, by all messages. *Load* of a machine: the
messages that its tasks receive, from near or far. *RSD*: the sample standard deviation of the
machines' loads by their mean. Sums are of integers, so they are exact.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Doubles, Ints, Longs
from levada.core.frozen import frozen
from levada.placement.send_graph import Load, SendGraph, Unit

VAIN, MIN_TASKS_PER_MACHINE = 0.9, 4
"""A placement is useless if its share exceeds ``VAIN`` times that of a random one. With fewer than
``MIN_TASKS_PER_MACHINE`` tasks a machine nothing is concluded.
"""


@frozen
class Score:
    """Share and RSD, as fractions."""

    share: float
    rsd: float


def share(graph: SendGraph, place: Ints, unit: Unit = "rows") -> float:
    """Returns the share of messages that crosses machines; 0 if nothing is sent.

    >>> graph = SendGraph(("r", "a"), *np.array([[0, 1], [1, 0]], np.int32), np.array([3, 1]))
    >>> share(graph, np.array([0, 1], np.int32)), share(graph, np.array([1, 1], np.int32))
    (1.0, 0.0)
    """
    sent = graph.sent(unit)
    total = int(sent.sum())
    far = place[graph.source] != place[graph.target]
    return int(sent[far].sum()) / total if total else 0.0


def between(graph: SendGraph, place: Ints, machines: int, unit: Unit = "rows") -> Doubles:
    """Returns the share of messages from each machine (a row) to each.

    >>> graph = SendGraph(("r", "a"), *np.array([[0, 1], [1, 0]], np.int32), np.array([3, 1]))
    >>> between(graph, np.array([0, 1], np.int32), 2).tolist()
    [[0.0, 0.75], [0.25, 0.0]]
    """
    sent, pairs = graph.sent(unit), place[graph.source] * machines + place[graph.target]
    total = np.bincount(pairs, sent, machines * machines)
    shares: Doubles = total.reshape(machines, machines) / max(float(total.sum()), 1.0)
    return shares


def machine_loads(graph: SendGraph, place: Ints, machines: int, load: Load = "rows") -> Doubles:
    """Returns the load of each machine."""
    return np.bincount(place, graph.loads(load), machines).astype(np.float64)


def rsd(loads: npt.ArrayLike) -> float:
    """Returns the sample standard deviation by mean; 0 for one machine or a mean of 0.

    >>> round(rsd([1, 2, 3]), 3)
    0.5
    """
    values = np.asarray(loads, np.float64)
    mean = values.mean()
    return float(values.std(ddof=1) / mean) if values.size > 1 and mean else 0.0


def score(
    graph: SendGraph, place: Ints, machines: int, unit: Unit = "rows", load: Load = "rows"
) -> Score:
    """Returns share and RSD of a placement."""
    return Score(share(graph, place, unit), rsd(machine_loads(graph, place, machines, load)))


def by_lot(graph: SendGraph, machines: int, unit: Unit = "rows") -> float:
    """Returns the expected share that crosses machines under a random placement. Messages of a task
    to itself cross nothing.

    >>> graph = SendGraph(("r", "a"), *np.array([[0, 1], [1, 1]], np.int32), np.array([3, 1]))
    >>> by_lot(graph, 4)
    0.5625
    """
    sent = graph.sent(unit)
    away, total = int(sent[graph.source != graph.target].sum()), int(sent.sum())
    return (1 - 1 / machines) * away / total if total else 0.0


def in_vain(graph: SendGraph, machines: int, least: float, unit: Unit = "rows") -> bool:
    """Returns whether a placement with the share ``least`` is hardly better than a random one."""
    many = len(graph.tasks) >= MIN_TASKS_PER_MACHINE * machines
    return many and least > VAIN * by_lot(graph, machines, unit)


def distant(graph: SendGraph, place: Ints, distance: Doubles, unit: Unit = "rows") -> float:
    """Returns the mean distance of messages: each times the distance of its machines, by all."""
    sent = graph.sent(unit)
    return float(sent @ distance[place[graph.source], place[graph.target]]) / int(sent.sum())


def floor_rsd(loads: Longs | Doubles, machines: int) -> float:
    """Returns a lower bound on the RSD of all placements. A machine has at least the heaviest task,
    and the rest is divided evenly among the others; and so on with the next heaviest.

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
