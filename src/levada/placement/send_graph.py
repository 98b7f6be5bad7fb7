"""The send graph: tasks as vertices, and the traffic between each two as edges.

A run measures it and a placer reads it (KATTS, Fischer and Bernstein 2013). It is columnar, a row
an edge. Edges are directed, at most one from a task to another; counts are whole and not negative.
The edges determine the rows that a task *received*, unless the format has no directions: then they
are a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from levada.core.array_types import Doubles, Ints, Longs
from levada.core.frozen import frozen

Unit = Literal["rows", "bytes"]
Load = Literal["rows", "bytes", "cpu"]


@frozen
class SendGraph:
    """``tasks``: their names. ``source``, ``target``: positions in ``tasks``, for each edge.
    ``rows`` and ``bytes``: for each edge. ``cpu``: seconds of each task. ``received``: rows of each
    task if edges do not determine them.

    >>> graph = SendGraph(("r", "a"), *np.array([[0], [1]], np.int32), np.array([7]))
    >>> graph.loads("rows").tolist()
    [0, 7]
    """

    tasks: tuple[str, ...]
    source: Ints
    target: Ints
    rows: Longs
    bytes: Longs | None = None
    cpu: Doubles | None = None
    received: Longs | None = None

    def __post_init__(self) -> None:
        edges, tasks = len(self.source), len(self.tasks)
        assert len(self.target) == len(self.rows) == edges, "columns of edges are equally long"
        assert self.bytes is None or len(self.bytes) == edges, "an edge has its bytes"
        assert self.cpu is None or len(self.cpu) == tasks, "a task has its CPU time"
        assert self.received is None or len(self.received) == tasks, "a task has what it received"

    def sent(self, unit: Unit) -> Longs:
        """Returns the rows or bytes of each edge."""
        if unit == "rows":
            return self.rows
        assert self.bytes is not None, "who asks for bytes has looked whether they are there"
        return self.bytes

    def loads(self, load: Load) -> Longs | Doubles:
        """Returns the rows or bytes that each task received, or its CPU seconds."""
        if load == "cpu":
            assert self.cpu is not None, "who asks for CPU times has looked whether they are there"
            return self.cpu
        if load == "rows" and self.received is not None:
            return self.received
        into = np.zeros(len(self.tasks), np.int64)
        np.add.at(into, self.target, self.sent(load))
        return into

    def has(self, load: Load) -> bool:
        """Returns whether the unit was measured."""
        return load == "rows" or getattr(self, load) is not None


def add(graphs: Sequence[SendGraph]) -> SendGraph:
    """Adds up several slices to one graph. ``bytes`` or ``cpu`` that a slice lacks are left out.

    >>> one = SendGraph(("r", "a"), *np.array([[0], [1]], np.int32), np.array([7]))
    >>> two = SendGraph(("a", "r", "b"), *np.array([[1, 1], [0, 2]], np.int32), np.array([1, 2]))
    >>> both = add([one, two])
    >>> both.tasks, both.rows.tolist()
    (('r', 'a', 'b'), [8, 2])
    """
    assert graphs, "there is something to add up"
    tasks = tuple(dict.fromkeys(task for graph in graphs for task in graph.tasks))
    place = {task: i for i, task in enumerate(tasks)}
    numbers = [np.array([place[t] for t in graph.tasks], np.int64) for graph in graphs]
    keys = np.concatenate(
        [
            positions[g.source] * len(tasks) + positions[g.target]
            for positions, g in zip(numbers, graphs, strict=True)
        ]
    )
    edges, at = np.unique(keys, return_inverse=True)

    def total(columns: Sequence[Longs]) -> Longs:
        out = np.zeros(len(edges), np.int64)
        np.add.at(out, at, np.concatenate(columns))
        return out

    def vertices(columns: Sequence[Longs | Doubles]) -> Doubles:
        out = np.zeros(len(tasks))
        for positions, column in zip(numbers, columns, strict=True):
            out[positions] += column
        return out

    sizes = [g.bytes for g in graphs if g.bytes is not None]
    cpu = [g.cpu for g in graphs if g.cpu is not None]
    has_received = any(g.received is not None for g in graphs)
    return SendGraph(
        tasks,
        (edges // len(tasks)).astype(np.int32),
        (edges % len(tasks)).astype(np.int32),
        total([g.rows for g in graphs]),
        total(sizes) if len(sizes) == len(graphs) else None,
        vertices(cpu) if len(cpu) == len(graphs) else None,
        vertices([g.loads("rows") for g in graphs]).astype(np.int64) if has_received else None,
    )
