"""The explanation of arrangements for ``explain --sharing`` and ``--shared``: rows that are kept
once, and the joins that read them. They are static data, and sides of joins of streams.

    kept once
      Arrange of (- <http://e/kind> -), graphs default
        ArrangedJoin: a, b
        ArrangedJoin2: c
      ArrangeStream of http://e/s, (- <http://e/p> -)
        StreamJoin: a, d

The kept rows are described by their patterns. Cost: linear in the members.
"""

from __future__ import annotations

from collections.abc import Iterator

from levada.core.frozen import frozen
from levada.core.shorten_outline import name_list
from levada.plan.execution.joins import Arrange
from levada.plan.execution.plan import At
from levada.plan.topology.print_topology import describe
from levada.plan.topology.topology import Topology


@frozen
class SharedRows:
    """Rows that are kept once: the operator that keeps them, and the patterns that they are ``of``.

    ``readers``: the joins that read them, each with its queries.
    """

    operator: str
    of: tuple[str, ...]
    readers: tuple[tuple[str, tuple[str, ...]], ...]


def list_arrangements(topology: Topology) -> Iterator[SharedRows]:
    """Yields the arrangements with their readers."""
    nodes = dict(zip(topology.graph.order(), describe(topology), strict=True))
    members = {(n, m.number): m for n, node in nodes.items() for m in node.members}
    readers: dict[At, dict[str, dict[str, None]]] = {}
    for (number, at), member in members.items():
        node = topology.graph.nodes[number]
        for below in zip(node.inputs, node.members[at].inputs, strict=True):
            who = readers.setdefault(below, {}).setdefault(nodes[number].name, {})
            who.update(dict.fromkeys(member.queries))
    for number, described in nodes.items():
        if isinstance(topology.graph.nodes[number].shape.step, Arrange):
            for each in described.members:
                arrangement = number, each.number
                of = tuple(
                    [
                        members[at].detail.removeprefix("of ")
                        for at in _leaves(topology, arrangement)
                    ]
                )
                by = tuple(
                    [(name, tuple(who)) for name, who in readers.get(arrangement, {}).items()]
                )
                yield SharedRows(described.name, of, by)


def _leaves(topology: Topology, at: At) -> Iterator[At]:
    """Returns the leaves below a member."""
    node = topology.graph.nodes[at[0]]
    if not node.inputs:
        yield at
    for below in zip(node.inputs, node.members[at[1]].inputs, strict=True):
        yield from _leaves(topology, below)


def show_arrangements(
    arrangements: tuple[SharedRows, ...], limit: int | None = None
) -> Iterator[str]:
    """Yields the lines of the text form. ``limit``: of the names of queries."""
    yield from ("kept once",) if arrangements else ()
    for one in arrangements:
        yield f"  {one.operator} of {' with '.join(one.of)}"
        for name, queries in one.readers:
            yield f"    {name}: {name_list(queries, limit)}"
