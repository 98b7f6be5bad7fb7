"""Lists the channels of a topology: the edges, the grouping of their rows, and the reason for an
exchange or for its absence.

    local          rows stay in their task
    field (slots)  rows go to the partition of these slots' terms: equal keys meet
    home           all rows of a member go to one partition
    all            all rows go to all partitions

Rows that an exchange has grouped by some keys stay grouped until the next exchange (KATTS'
compatible fields: Fischer, Scharrenbach, Bernstein 2013, 3.2). So an operator that needs equal keys
together, and reads grouped rows, needs no exchange. This module makes no decisions. It shows those
of ``plan/physical/partitioning``, and the rows that a task sends home (``plan/execution``). Cost:
linear in the edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from levada.core.frozen import frozen
from levada.plan.execution.local_reduction import find_reduction
from levada.plan.execution.shapes import TO_ALL, Edge
from levada.plan.topology.catalog_members import CatalogNode
from levada.plan.topology.topology import Topology

Kind = Literal["local", "field", "home", "all"]


@frozen
class Channel:
    """An edge between the nodes ``producer`` and ``consumer`` (numbers).

    ``slots``: the slots of the consumer's input that group rows (field). ``why``: a sentence
    without its final dot.
    """

    producer: int
    consumer: int
    input: int
    kind: Kind
    slots: tuple[int, ...]
    why: str

    @property
    def grouping(self) -> str:
        """The grouping as a word.

        >>> Channel(0, 1, 0, "field", (0, 1), "").grouping
        'field(0,1)'
        """
        return f"field({','.join(map(str, self.slots))})" if self.kind == "field" else self.kind


def channels(topology: Topology) -> Iterator[Channel]:
    """Yields all edges of a topology, by consumer."""
    for number in topology.graph.order():
        node = topology.graph.nodes[number]
        edges = zip(node.inputs, node.shape.inputs, strict=True)
        for at, (producer, (_, edge)) in enumerate(edges):
            kind = kind_of(edge)
            slots = (edge.exchange or ()) if kind == "field" else ()
            why = _why(topology, node, producer, edge)
            reduction = find_reduction(node.shape.step, at) if kind == "home" else None
            why = why if reduction is None else f"{why}; {reduction.why}"
            yield Channel(producer, number, at, kind, slots, why)


def kind_of(edge: Edge) -> Kind:
    """Returns the grouping of the rows of an edge."""
    if edge.exchange is None:
        return "local"
    if edge.exchange == TO_ALL:
        return "all"
    return "field" if edge.exchange else "home"


def _why(topology: Topology, node: CatalogNode, producer: int, edge: Edge) -> str:
    below = topology.graph.nodes[producer]
    kind = kind_of(edge)
    if kind == "local":
        if node.shape.stage == 0:
            return "each row by itself, where it is read"
        brought = _explain_placement(topology, producer)
        return f"no exchange: its rows are together {brought} already"
    if kind == "all":
        return "asked for: they meet rows wherever these are"
    together = "all rows of a member" if kind == "home" else "rows with equal terms there"
    if below.shape.stage == 0:
        return f"{together} must meet, and every reader has some"
    return f"{together} must meet, and they are together {_explain_placement(topology, producer)}"


def _explain_placement(topology: Topology, number: int) -> str:
    """Returns how the last exchange below a node, or into it, has grouped its rows."""
    node = topology.graph.nodes[number]
    for producer, (_, edge) in zip(node.inputs, node.shape.inputs, strict=True):
        kind = kind_of(edge)
        if kind == "all":
            continue  # the other inputs decide the place of its rows
        if kind == "home":
            return "at their member's home"
        if kind == "field":
            step = type(node.shape.step).__name__
            return f"by {','.join(map(str, edge.exchange or ()))} of {step}'s input"
        if node.shape.stage:
            return _explain_placement(topology, producer)
    return "where they are read"
