"""Prints the stable text form of a topology, for ``explain --stage topology`` and for snapshots in
tests: the shared operators, and the queries that use them.

    2 queries: 4 nodes with 5 members; apart they would be 8 nodes with 8 members
    0 Match [ID+TEXT ID+TEXT] lo
      0 of http://e/s, (- <http://e/p> -): hot, storms
    1 Occur [ID+TEXT ID+TEXT] lo/prev <- Match by 0,1
      0 of http://e/s, [RANGE PT4S STEP PT2S close [)]: hot, storms

    edges
      Match -> Occur field(0,1): rows with equal terms there must meet, and every reader has some
    tasks: one for each source partition of http://e/s, 2 in stage 1, the output

Each node is a line: its stage, its step with the flags that are set, the columns of its rows, and
its inputs. An exchange is shown with the slots that route rows (``home``: all rows of a member go
to one place). Each member is a line below: its number, its own fields, and the queries that use it.
A change of a node's line is a change of the data between machines. Each edge is a line at the end:
its grouping and the reason (``print_topology``). Cost: linear in the members that each query
uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Literal

from levada.core.count_text import count_text
from levada.core.event_time import WindowKind
from levada.core.frozen import frozen
from levada.core.names import display_name
from levada.core.shorten_outline import SHOWN_NAMES, name_list, shorten_outline
from levada.plan.execution.joins import JoinKind
from levada.plan.execution.local_reduction import find_reduction
from levada.plan.execution.shapes import TO_ALL, Edge, Member
from levada.plan.execution.sharing_demand import is_loose
from levada.plan.execution.steps import Step
from levada.plan.topology.catalog_members import CatalogNode
from levada.plan.topology.topology import Topology

# Lists the channels of a topology: the edges, the grouping of their rows, and the reason for an
# exchange or for its absence.
#
#     local          rows stay in their task
#     field (slots)  rows go to the partition of these slots' terms: equal keys meet
#     home           all rows of a member go to one partition
#     all            all rows go to all partitions
#
# Rows that an exchange has grouped by some keys stay grouped until the next exchange (KATTS'
# compatible fields: Fischer, Scharrenbach, Bernstein 2013, 3.2). So an operator that needs equal
# keys together, and reads grouped rows, needs no exchange. This module makes no decisions. It shows
# those of ``plan/physical/partitioning``, and the rows that a task sends home (``plan/execution``).
# Cost: linear in the edges.


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


@frozen
class SharedMember:
    """A member of a node: its number, its own fields as a text, and the queries that use it."""

    number: int
    detail: str
    queries: tuple[str, ...]

    def line(self, limit: int | None = None) -> str:
        """Returns the line of the member. ``limit``: of the names of queries (None: all)."""
        return f"{self.number}{self.detail and ' '}{self.detail}: {name_list(self.queries, limit)}"


@frozen
class SharedNode:
    """A node: ``name`` is its step with a number if there are several.

    ``inputs``: the names of its inputs with the slots of exchanges.
    """

    stage: int
    name: str
    flags: tuple[str, ...]
    layout: str
    inputs: tuple[str, ...]
    members: tuple[SharedMember, ...]

    def line(self) -> str:
        """Returns the line of the node, without its members."""
        arrow = f" <- {'; '.join(self.inputs)}" if self.inputs else ""
        return " ".join([str(self.stage), self.name, *self.flags, self.layout]) + arrow


@frozen
class SharedEdge:
    """An edge: the names of its nodes, the grouping of its rows, and the reason."""

    producer: str
    consumer: str
    grouping: str
    reason: str

    def line(self) -> str:
        """Returns the line of the edge."""
        return f"{self.producer} -> {self.consumer} {self.grouping}: {self.reason}"


def show(topology: Topology, partitions: int, *, whole: bool = True) -> str:
    """Returns the text form for a checkpoint of so many partitions. Not ``whole``: in 20 lines."""
    tasks, queries = parallelism(topology, partitions), len(topology.queries)
    return show_parts(describe(topology), describe_edges(topology), tasks, queries, whole=whole)


def show_parts(
    nodes: tuple[SharedNode, ...],
    edges: tuple[SharedEdge, ...],
    tasks: Mapping[str, int | None],
    queries: int,
    *,
    whole: bool = True,
) -> str:
    """Returns the text form of a topology from its parts. Not ``whole``: in 20 lines."""
    limit = None if whole else SHOWN_NAMES
    lines = [_summary(nodes, queries)]
    for node in nodes:
        lines += [node.line(), *(f"  {member.line(limit)}" for member in node.members)]
    lines += ["edges", *(f"  {edge.line()}" for edge in edges), f"tasks: {_tasks(tasks)}"]
    return "\n".join(lines if whole else shorten_outline(lines))


def describe_edges(topology: Topology) -> tuple[SharedEdge, ...]:
    """Returns the edges in the order of the nodes that read them."""
    topology.install()
    names = _names(topology)
    return tuple(
        SharedEdge(names[c.producer], names[c.consumer], c.grouping, c.why)
        for c in channels(topology)
    )


def parallelism(topology: Topology, partitions: int) -> dict[str, int | None]:
    """Returns the number of tasks of each task graph operator; None: one for each
    source partition.
    """
    topology.install()
    streams = {
        display_name(s)
        for n in topology.graph.nodes.values()
        for m in n.members.index
        for s in m.streams
        if s
    }
    stages = max((node.shape.stage for node in topology.graph.nodes.values()), default=0)
    return {
        **dict.fromkeys(sorted(streams)),
        **{f"stage {i}": partitions for i in range(1, stages + 1)},
        "output": 1,
    }


def streams_read(topology: Topology) -> tuple[tuple[str, ...], ...]:
    """Returns the streams that each node reads itself, in the order of ``describe``."""
    topology.install()
    nodes = [topology.graph.nodes[number] for number in topology.graph.order()]
    return tuple(
        tuple({display_name(s): None for m in node.members.index for s in m.streams if s})
        if not node.inputs
        else ()
        for node in nodes
    )


def _tasks(many: Mapping[str, int | None]) -> str:
    read = [f"one for each source partition of {name}" for name, n in many.items() if n is None]
    stages = [f"{n} in {name}" for name, n in many.items() if n is not None and name != "output"]
    return ", ".join([*read, *stages, "the output"])


def _names(topology: Topology) -> dict[int, str]:
    """Returns the names of nodes by number: their steps, numbered if there are several
    of a kind.
    """
    names: dict[int, str] = {}
    counts: dict[str, int] = {}
    for number in topology.graph.order():
        step = type(topology.graph.nodes[number].shape.step).__name__
        counts[step] = counts.get(step, 0) + 1
        names[number] = step + (str(counts[step]) if counts[step] > 1 else "")
    return names


def describe(topology: Topology) -> tuple[SharedNode, ...]:
    """Returns the nodes, inputs before their readers, with their members and the
    queries of these.
    """
    topology.install()
    users = _users(topology)
    names = _names(topology)
    shared_nodes = []
    for number in topology.graph.order():
        node = topology.graph.nodes[number]
        edges = zip(node.inputs, node.shape.inputs, strict=True)
        shared_nodes.append(
            SharedNode(
                node.shape.stage,
                names[number],
                _flags(node.shape.step),
                node.shape.layout.show(),
                tuple(names[i] + _exchange(edge) for i, (_, edge) in edges),
                tuple(
                    SharedMember(
                        at,
                        _detail(_without_shared_windows(member, node.shape.step)),
                        tuple(users[number, at]),
                    )
                    for member, at in node.members.index.items()
                ),
            )
        )
    return tuple(shared_nodes)


def _users(topology: Topology) -> dict[tuple[int, int], list[str]]:
    """Returns the queries that use each (node, member), also those that migrate to it."""
    users: dict[tuple[int, int], list[str]] = {}
    for name, query in topology.queries.items():
        seen: set[tuple[int, int]] = set()
        waiting = [(query.node, query.member)]
        if (switch := topology.switches.get(name)) is not None:
            waiting.append((switch.node, switch.member))
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            users.setdefault(at, []).append(name)
            node = topology.graph.nodes[at[0]]
            waiting += zip(node.inputs, node.members[at[1]].inputs, strict=True)
    return users


def _summary(nodes: tuple[SharedNode, ...], queries: int) -> str:
    members = sum(len(node.members) for node in nodes)
    size_text = f"{count_text(len(nodes), 'node')} with {count_text(members, 'member')}"
    if queries == 1:
        return f"1 query: {size_text}"
    apart = sum(len({q for m in node.members for q in m.queries}) for node in nodes)
    uses = sum(len(member.queries) for node in nodes for member in node.members)
    apart_text = f"{count_text(apart, 'node')} with {count_text(uses, 'member')}"
    return f"{queries:,} queries: {size_text}; apart they would be {apart_text}"


def _flags(step: Step) -> tuple[str, ...]:
    """Returns the names of a step's set flags; for a join of report rows its kind."""
    values = ((part.name, getattr(step, part.name)) for part in fields(step))
    return tuple(
        value.value if isinstance(value, JoinKind) else name
        for name, value in values
        if value is True or isinstance(value, JoinKind)
    )


def _exchange(edge: Edge) -> str:
    if edge.exchange is None:
        return ""
    if edge.exchange == TO_ALL:
        return " to all"
    return f" by {','.join(map(str, edge.exchange)) or 'home'}"


def _without_shared_windows(member: Member, step: Step) -> Member:
    """Returns a member without the windows of a relaxed join, which its picks decide."""
    return member._replace(windows=()) if is_loose(step) else member


def _detail(member: Member) -> str:
    """Returns the own fields of a member as a text: streams, constants, graphs, windows."""
    return ", ".join(_details(member))


def describe_windows(member: Member) -> tuple[str, ...]:
    """Returns the texts of a member's distinct windows; numbered count windows show
    their numbers.
    """
    shown_windows = [w for w in member.windows if w.kind is not WindowKind.COUNT or w.count]
    return tuple(dict.fromkeys(window.describe() for window in shown_windows))


def _details(member: Member) -> Iterator[str]:
    if member.streams:
        yield "of " + " ".join(
            dict.fromkeys(display_name(stream) for stream in member.streams if stream)
        )
    if member.constants:
        constants = ("-" if term is None else str(term) for term in member.constants)
        yield f"({' '.join(constants)})"
    if member.rows:
        yield count_text(len(member.rows), "row")
    if member.ways:
        yield count_text(len(member.ways), "alternative")
    if member.graphs:
        graphs = ("default" if graph is None else f"<{graph}>" for graph in member.graphs)
        yield f"graphs {' '.join(graphs)}"
    yield from describe_windows(member)
    yield from ("show empty",) if member.show_empty else ()
    yield from ("nonempty",) if member.nonempty else ()
