"""A graph on a machine, as the arrays of models and searches.

Places have one more column than the machine: ``UNPLACED``, for replicas that a search has not
placed yet. It is at distance 0 from everywhere and has unlimited room. So a plan with unplaced
replicas is rated at least as high as any completion of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np

from levada.core.array_types import Bools, Doubles, Longs
from levada.core.frozen import frozen
from levada.core.machine_file import Machine
from levada.errors import UsageError, near
from levada.placement.replication.dataflow import Graph

Distance = Literal["real", "farthest", "none"]
FULL = 1e18
"""An input rate in tuples/s that keeps every spout busy."""


class Arrays(NamedTuple):
    """Operators o, streams e by consumer (those of o: ``first[o]`` to ``first[o + 1]``), places p
    and the column ``UNPLACED``.
    """

    cost: Doubles  # [o] ns a tuple
    memory: Doubles  # [o] bytes a tuple
    flow: Doubles  # [o] tuples for each tuple of the fastest spout
    sink: Bools  # [o]
    first: Longs  # [o + 1]
    source: Longs  # [e] the producer
    selectivity: Doubles  # [e]
    size: Doubles  # [e] bytes
    lines: Doubles  # [e] cache lines of a tuple
    latency: Doubles  # [p + 1, p + 1] ns
    cores: Longs  # [p + 1]
    room: Longs  # [p + 1] the most replicas
    bandwidth: Doubles  # [p + 1, p + 1] bytes/s
    rate: float  # tuples/s of input of the fastest spout
    weight: Doubles  # [o] input of a spout by ``rate``; 0 for others


@frozen
class Problem:
    """A graph, a machine, and the spouts' input in tuples/s."""

    graph: Graph
    machine: Machine
    arrays: Arrays
    turns: int = 1

    @property
    def places(self) -> int:
        """Returns the number of places."""
        return len(self.machine.places)

    @property
    def operators(self) -> int:
        """Returns the number of operators."""
        return len(self.graph.operators)

    @property
    def cores(self) -> int:
        """Returns the number of all cores."""
        return sum(self.machine.cores)

    @property
    def room(self) -> int:
        """Returns the most replicas."""
        return self.cores * self.turns


def problem(
    graph: Graph,
    machine: Machine,
    rate: float | Mapping[str, float] = FULL,
    distance: Distance = "real",
    turns: int = 1,
) -> Problem:
    """Returns the problem of a graph on a machine. Raises ``UsageError``.

    ``rate``: input in tuples/s of each spout, or by spout. ``distance``: ``farthest`` takes each
    replica as far as possible from its producers, ``none`` as next to them, wherever they are (the
    beliefs of RLAS_fix(L) and RLAS_fix(U)). ``turns``: how many replicas may share a core, for the
    model ``epochs``, where stages take turns.

    >>> from levada.placement.replication.example_applications import word_count
    >>> from levada.core.machine_file import shipped_machine
    >>> [round(ns) for ns in problem(word_count(), shipped_machine("server-a")).arrays.cost[2:4]]
    [1613, 612]
    """
    rates = _rates(graph, rate)
    fastest = max(rates.values())
    weights = {name: spout_rate / fastest for name, spout_rate in rates.items()}
    streams = sorted(graph.streams, key=lambda s: graph.place_of[s.consumer])
    into = [graph.place_of[s.consumer] for s in streams]
    arrays = Arrays(
        cost=np.array([op.cycles / machine.clock for op in graph.operators]),
        memory=np.array([op.memory for op in graph.operators], np.float64),
        flow=np.array(graph.flow_of(weights)),
        sink=np.array(graph.sinks),
        first=np.searchsorted(into, np.arange(len(graph.operators) + 1)).astype(np.int64),
        source=np.array([graph.place_of[s.producer] for s in streams], np.int64),
        selectivity=np.array([s.selectivity for s in streams], np.float64),
        size=np.array([s.size for s in streams], np.float64),
        lines=np.array([math.ceil(s.size / machine.line) for s in streams], np.float64),
        latency=_with_unplaced(_believed_latency(machine.latency, distance), 0.0),
        cores=np.array([*machine.cores, 1 << 40], np.int64),
        room=np.array([*(turns * cores for cores in machine.cores), 1 << 40], np.int64),
        bandwidth=_with_unplaced(machine.bandwidth, 1e300),
        rate=fastest,
        weight=np.array([weights.get(op.name, 0.0) for op in graph.operators]),
    )
    return Problem(graph, machine, arrays, turns)


def _rates(graph: Graph, rate: float | Mapping[str, float]) -> dict[str, float]:
    """Returns the input of each spout. Raises ``UsageError``."""
    if not isinstance(rate, Mapping):
        return dict.fromkeys(graph.spouts, float(rate))
    for name, spout_rate in rate.items():
        if name not in graph.spouts:
            raise UsageError(
                f"The graph {graph.name} has no spout {name}.", hint=near(name, graph.spouts)
            )
        if not (math.isfinite(spout_rate) and spout_rate > 0):
            raise UsageError(
                f"To the spout {name} of the graph {graph.name} come {spout_rate} tuples/s; it "
                "must be more than 0."
            )
    if missing := [name for name in graph.spouts if name not in rate]:
        raise UsageError(
            f"Of the graph {graph.name} it is not said how many tuples/s come to the spout "
            f"{missing[0]}.",
            hint="Say it of each spout; FULL keeps one busy.",
        )
    return {name: float(rate[name]) for name in graph.spouts}


def _believed_latency(latency: Doubles, distance: Distance) -> Doubles:
    if distance == "real":
        return latency
    return np.full_like(latency, latency.max() if distance == "farthest" else 0.0)


def _with_unplaced(matrix: Doubles, value: float) -> Doubles:
    wide = np.full((len(matrix) + 1, len(matrix) + 1), value)
    wide[:-1, :-1] = matrix
    return wide
