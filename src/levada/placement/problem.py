"""The problem for a placer: a graph, a number of machines, an objective and a bound on
imbalance.
"""

from __future__ import annotations

import numpy as np

from levada.core.array_types import Doubles, Ints
from levada.core.frozen import frozen
from levada.errors import UsageError
from levada.placement.annealing import Net
from levada.placement.cost import floor_rsd
from levada.placement.send_graph import Load, SendGraph, Unit

BOUND = 0.05
"""The default bound on RSD."""
MAX_MACHINES = 4_096
"""The most machines of a placement, whose distances are a table."""


@frozen
class Problem:
    """``unit``: the unit of messages. ``load``: the unit of machines' loads. ``bound``: the
    greatest RSD. ``distance``: of machines, a square table (None: 1 between any two). ``before``:
    the present machine of each task (-1: new), of which at most ``moves`` change.

    Raises ``UsageError`` if the graph has no messages, or the fields contradict each other.
    """

    graph: SendGraph
    machines: int
    unit: Unit = "rows"
    load: Load = "rows"
    bound: float = BOUND
    distance: Doubles | None = None
    seed: int = 0
    before: Ints | None = None
    moves: int = 0

    def __post_init__(self) -> None:
        if self.machines < 1:
            raise UsageError(f"There are {self.machines} machines.", hint="Say one or more.")
        if self.machines > MAX_MACHINES:
            raise UsageError(
                f"A placement cannot be on {self.machines:,} machines.",
                hint=f"Say {MAX_MACHINES:,} or less.",
            )
        if not 0 <= self.bound < np.inf:
            raise UsageError(f"An RSD cannot be kept below {self.bound}.", hint="Say such as 2.4%.")
        if self.moves < 0:
            raise UsageError(f"{self.moves} tasks cannot be moved.", hint="Say 0 or more.")
        for wanted in (self.unit, self.load):
            if not self.graph.has(wanted):
                raise UsageError(
                    f"The send graph tells nothing of {wanted}.",
                    hint="Measure it with them, or place by rows.",
                )
        if not self.graph.sent(self.unit).sum():
            raise UsageError(
                "The send graph has no messages, so there is nothing to place by.",
                hint="Give one of a run or a slice in which something was sent.",
            )
        if self.distance is not None:
            self._check(self.distance)

    def _check(self, distance: Doubles) -> None:
        square = (self.machines, self.machines)
        if distance.shape != square:
            raise UsageError(
                f"The distances are {' x '.join(map(str, distance.shape))} numbers, and there are "
                f"{self.machines} machines.",
                hint="Give a row a machine, with a number for each machine.",
            )
        if not np.isfinite(distance).all() or (distance < 0).any() or distance.diagonal().any():
            raise UsageError(
                "A distance is negative, infinite or no number, or a machine is far from itself.",
                hint="Give numbers from 0 on, and 0 from a machine to itself.",
            )

    def heaviest(self) -> tuple[str, float]:
        """Returns the task with the greatest load, and its fraction of all load."""
        loads = self.graph.loads(self.load)
        at = int(loads.argmax())
        return self.graph.tasks[at], float(loads[at] / max(float(loads.sum()), 1e-300))

    def floor(self) -> float:
        """Returns a lower bound on the RSD of all placements."""
        return floor_rsd(self.graph.loads(self.load), self.machines)


def net(problem: Problem) -> Net:
    """Returns the graph by neighbours, as fractions of all messages and of all load. Messages of a
    task to itself cross nothing and are left out.
    """
    graph, n = problem.graph, len(problem.graph.tasks)
    sent = graph.sent(problem.unit)
    real = (graph.source != graph.target) & (sent > 0)
    source, target = graph.source[real].astype(np.int64), graph.target[real].astype(np.int64)
    part = sent[real] / float(sent.sum())
    pairs, at = np.unique(
        np.concatenate([source * n + target, target * n + source]), return_inverse=True
    )
    none = np.zeros(part.size)
    loads = np.asarray(graph.loads(problem.load), np.float64)
    apart = 1.0 - np.eye(problem.machines) if problem.distance is None else problem.distance
    return Net(
        np.searchsorted(pairs // n, np.arange(n + 1)).astype(np.int64),
        (pairs % n).astype(np.int32),
        np.bincount(at, np.concatenate([part, none]), pairs.size).astype(np.float64),
        np.bincount(at, np.concatenate([none, part]), pairs.size).astype(np.float64),
        loads / (loads.sum() or 1.0),
        np.ascontiguousarray(apart, np.float64),
    )
