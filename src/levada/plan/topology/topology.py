"""The topology: one shared dataflow for all queries, as nodes (shapes) with members (queries'
operators).

A node is one vectorised operator; a member is a row of its parameter tables. Equal operators over
equal inputs are one member, whichever query asks for them (hash-consing); members are counted and
removed with the last query that uses them, nodes with their last member. Numbers of nodes and
members never change and are never used again, because state refers to them
(``plan/topology/members``).

``Topology`` is the mutable catalog of the driver. ``seal`` yields a ``Plan``: what workers need,
with arrays instead of dictionaries; it is pickled once per version.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from levada.algebra.nodes import Form, Output, Query, TriplePattern, WindowOn
from levada.model.names import made_by
from levada.model.time import MIN, Window, WindowKind
from levada.plan.install.install import Installer
from levada.plan.lowering.lower import lower
from levada.plan.lowering.scans import StreamFacts, graphs_read
from levada.plan.sealed import shapes as s
from levada.plan.sealed.families import Families
from levada.plan.sealed.layout import Layout
from levada.plan.topology.members import Members

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """What emission, sinks and status must know of a query; ``clock``: what says in place of its
    windows when it reports.
    """

    name: str
    form: Form
    output: Output
    variables: tuple[str, ...]
    template: tuple[TriplePattern, ...]
    streams: tuple[str, ...]
    node: int
    member: int
    start: int
    empty_reports: bool
    windows: tuple[WindowOn, ...] = ()
    clock: Window | None = None
    since: int = 0  # the first plan version that has it


@dataclass
class _Node:
    """A node of the catalog: its shape, the nodes of its inputs, its members."""

    shape: s.Shape
    inputs: tuple[int, ...]
    members: Members = field(default_factory=Members)


@dataclass(frozen=True)
class WindowTable:
    """Windows of members as parameter arrays, shape (windows, members): a row of an array is one
    window's column.
    """

    kind: npt.NDArray[np.uint8]
    range: I64
    step: I64
    t0: I64
    given: npt.NDArray[np.bool_]
    to: I64
    stream: I32
    start: I64  # per window and member: elements before it do not count

    @staticmethod
    def of(members: Sequence[s.Member], streams: Mapping[str, int]) -> WindowTable:
        """The table of these members."""
        width = max((len(m.windows) for m in members), default=0)
        shape = (width, len(members))
        kind, given = np.zeros(shape, np.uint8), np.zeros(shape, np.bool_)
        range_, t0, to, start = (np.zeros(shape, np.int64) for _ in range(4))
        step = np.ones(shape, np.int64)
        stream = np.full(shape, -1, np.int32)
        for i, m in enumerate(members):
            for j, (w, name) in enumerate(zip(m.windows, m.streams, strict=False)):
                kind[j, i], range_[j, i], step[j, i], t0[j, i] = w.kind, w.range, w.step, w.t0
                given[j, i], to[j, i] = w.t0_given, w.to
                stream[j, i] = streams.get(name, -1)
                start[j, i] = MIN if w.kind is WindowKind.STATIC else max(m.start, w.start)
        return WindowTable(kind, range_, step, t0, given, to, stream, start)

    def params(
        self, j: int
    ) -> tuple[npt.NDArray[np.uint8], I64, I64, I64, npt.NDArray[np.bool_], I64]:
        """Window j of all members as the leading arguments of the kernels that say where rows
        count.
        """
        return self.kind[j], self.range[j], self.step[j], self.t0[j], self.given[j], self.to[j]

    def pick(self, rows: Sequence[int]) -> WindowTable:
        """These windows only, in this order."""
        at = list(rows)
        return WindowTable(*(column[at] for column in self._columns))

    def at(self, members: I64) -> WindowTable:
        """The table of these members, in this order."""
        return WindowTable(*(column.take(members, axis=1) for column in self._columns))

    @property
    def _columns(self) -> tuple[Any, ...]:
        return (
            self.kind,
            self.range,
            self.step,
            self.t0,
            self.given,
            self.to,
            self.stream,
            self.start,
        )


class Schedule(NamedTuple):
    """What decides a query's reports: its windows with their streams' numbers (-1: a clock), its
    start.

    ``every``: also reports without content. ``nonempty``: these do not exist, so that the one after
    a report is the next with content.
    """

    windows: tuple[Window, ...]
    streams: tuple[int, ...]
    start: int
    every: bool = False
    nonempty: bool = False


@dataclass(frozen=True)
class Schedules:
    """The distinct schedules of members, and which one each member has."""

    distinct: tuple[Schedule, ...]
    of_member: I32

    @staticmethod
    def of(members: Sequence[s.Member], places: I64, streams: Mapping[str, int]) -> Schedules:
        """The schedules of these members, each at its place; an empty place has that of the
        first.
        """
        index: dict[Schedule, int] = {}
        keys = [_schedule(m, streams) for m in members]
        of_member = [index.setdefault(key, len(index)) for key in keys]
        return Schedules(tuple(index), np.array(of_member, np.int32)[places])

    @cached_property
    def families(self) -> Families:
        """The distinct schedules by what they differ in."""
        return Families.of(self.distinct)


def _schedule(m: s.Member, streams: Mapping[str, int]) -> Schedule:
    """A member's windows but for static graphs, which decide no report."""
    on = [
        (w, streams.get(n, -1))
        for w, n in zip(m.windows, m.streams, strict=False)
        if w.kind is not WindowKind.STATIC
    ]
    return Schedule(tuple(w for w, _ in on), tuple(n for _, n in on), m.start, m.every, m.nonempty)


@dataclass(frozen=True)
class FanOut:
    """From a producer's members to a consumer's: consumers of member i are
    ``members[offsets[i]:offsets[i + 1]]``.
    """

    offsets: I32
    members: I32
    identity: bool


@dataclass(frozen=True)
class Consumer:
    """An edge as the producer sees it."""

    node: int
    input: int
    edge: s.Edge
    fan: FanOut
    stage: int


@dataclass(frozen=True)
class PlanNode:
    """A node as workers see it. ``fresh``: the members that no epoch has had before this plan
    version.
    """

    id: int
    step: s.Step
    stage: int
    layout: Layout
    inputs: tuple[int, ...]
    input_layouts: tuple[Layout, ...]
    consumers: tuple[Consumer, ...]
    members: tuple[s.Member, ...]
    alive: npt.NDArray[np.bool_]
    windows: WindowTable
    schedules: Schedules
    fresh: npt.NDArray[np.bool_]
    home: I64  # of each member, the number that decides its partition where all its rows are together; -1 elsewhere

    def read_whole(self, first: bool, replaced: Collection[str | None]) -> npt.NDArray[np.bool_]:
        """The members that an epoch gives all their static rows and constants, and so the answer of
        a query without windows.

        ``first``: it is the first of its plan, so of those that are new in it. ``replaced``: the
        static graphs that it replaces.
        """
        new = self.fresh if first else np.zeros(len(self.members), np.bool_)
        if replaced:
            new = new | np.array(
                [not frozenset(m.again).isdisjoint(replaced) for m in self.members], np.bool_
            )
        return new & self.alive


@dataclass(frozen=True)
class Plan:
    """A sealed version of the topology."""

    version: int
    nodes: Mapping[int, PlanNode]
    order: tuple[int, ...]  # node numbers, inputs before consumers
    streams: tuple[str, ...]
    queries: Mapping[str, QueryPlan]
    stages: int  # the greatest stage
    made: Mapping[str, str] = field(
        default_factory=dict
    )  # the streams that queries make, and which one

    @property
    def read(self) -> frozenset[str]:
        """The streams that queries read."""
        return frozenset(stream for query in self.queries.values() for stream in query.streams)


def home_number(node: int, op: I64) -> I64:
    """A number per (node, member) that decides the home of the member; fits an int32."""
    number: I64 = (op * 1_000_003 + node * 7_919) & 0x7FFFFFFF
    return number


class Topology:
    """The catalog of nodes and members; the driver's. ``replaceable``: the static graphs that may
    be replaced.
    """

    def __init__(
        self, streams: Mapping[str, StreamFacts], replaceable: Collection[str | None] = ()
    ) -> None:
        self.facts = dict(streams)
        self.streams = tuple(self.facts)
        self.nodes: dict[int, _Node] = {}
        self.index: dict[s.Shape, int] = {}  # the nodes by their shapes
        self.alike: dict[
            s.Shape, list[int]
        ] = {}  # and by the shape of their generation 0, oldest first
        self.numbers = 0  # nodes so far, also those that are gone
        self.queries: dict[str, QueryPlan] = {}
        self.made: dict[str, str] = {}  # the streams that queries make, and which one
        self.replaceable = frozenset(replaceable)
        self.version = 0
        self._seen: dict[int, int] = {}

    def add(self, name: str, query: Query, start: int, *, empty_reports: bool = False) -> None:
        """Fits a query in: reuses what is there, makes what is not. Takes effect with the next
        ``seal``.
        """
        assert name not in self.queries, "a query's name is free when it is added"
        every = (
            empty_reports or not query.windows
        )  # a query without windows has one answer, also an empty one
        lowered = lower(query, self.facts, every=every, replaceable=self.replaceable)
        again = () if query.windows else self.replaceable & graphs_read(query, query.pattern)
        installer = Installer(
            query, name, start, self._intern, every=every, since=self.version + 1, again=again
        )
        root = installer.root(lowered.root)
        node = self.index[root.shape]
        self._count(node, root.member, 1)
        self.queries[name] = QueryPlan(
            name,
            query.form,
            query.output,
            query.variables,
            query.template,
            tuple(dict.fromkeys(w.stream for w in query.windows)),
            node,
            root.member,
            start,
            empty_reports,
            query.windows,
            query.reports.clock,
            self.version + 1,
        )

    def remove(self, name: str) -> None:
        """Takes a query out; members that no other query uses die with it. The stream that it made
        keeps its number.
        """
        query = self.queries.pop(name)
        self._count(query.node, query.member, -1)
        self.made = {stream: maker for stream, maker in self.made.items() if maker != name}

    def stream_of(self, maker: str) -> str:
        """The stream that a query makes, which begins when it is first asked for.

        A query that goes and comes again makes another one, so that nothing of the old one is taken
        for its own.
        """
        stream = f"{made_by(maker)}{self.queries[maker].since}"
        if stream not in self.made:
            self.made[stream] = maker
            self.facts[stream] = StreamFacts()
            self.streams = (*self.streams, stream)
        return stream

    def graphs(self) -> frozenset[str | None]:
        """The static graphs that some query reads."""
        return frozenset(
            g for node in self.nodes.values() for m in node.members.index for g in m.graphs
        )

    def _intern(self, shape: s.Shape, member: s.Member) -> tuple[s.Shape, int]:
        """The node's own shape and the member's number; made if they are not there."""
        alike = self.alike.get(shape, [])
        for number in alike:
            at = self.nodes[number].members.index.get(member)
            if at is not None:
                return self.nodes[number].shape, at
        node = self.nodes[alike[-1]] if alike else None
        if node is None or node.members.spent:
            node = self._node(shape)
        return node.shape, node.members.add(member, self.version + 1)

    def _node(self, shape: s.Shape) -> _Node:
        """A new node; one beside others of its shape is another generation."""
        alike = self.alike.setdefault(shape, [])
        number = self.numbers
        self.numbers += 1
        own = replace(shape, generation=number) if alike else shape
        alike.append(number)
        self.index[own] = number
        node = self.nodes[number] = _Node(own, tuple(self.index[i] for i, _ in shape.inputs))
        return node

    def _drop(self, number: int) -> None:
        """Takes a node without members out."""
        node = self.nodes.pop(number)
        del self.index[node.shape]
        self._seen.pop(number, None)
        first = replace(node.shape, generation=0)
        self.alike[first].remove(number)
        if not self.alike[first]:
            del self.alike[first]

    def _count(self, node: int, member: int, change: int) -> None:
        """Counts a use; the inputs are used by a member as long as it is used itself."""
        entry = self.nodes[node]
        table = entry.members
        before = table.uses[member]
        table.uses[member] = after = before + change
        if (before == 0) == (after == 0):
            return
        inputs = table[member].inputs
        if after == 0:
            table.drop(member)
            if not table.index:
                self._drop(node)
        for i, m in zip(entry.inputs, inputs, strict=True):
            self._count(i, m, change)

    def seal(self, had: int | None = None) -> Plan:
        """The next version of the plan, for workers. ``had``: the last version that an epoch has
        had; None: that before.
        """
        had = self.version if had is None else had
        self.version += 1
        consumers: dict[int, list[Consumer]] = {n: [] for n in self.nodes}
        for number, node in self.nodes.items():
            for i, (producer, (_, edge)) in enumerate(
                zip(node.inputs, node.shape.inputs, strict=True)
            ):
                fan = self._fan(node, i, len(self.nodes[producer].members.rows))
                consumers[producer].append(Consumer(number, i, edge, fan, node.shape.stage))
        homes: dict[int, I64] = {}
        nodes = {n: self._sealed(n, tuple(consumers[n]), had, homes) for n in self.nodes}
        order = tuple(sorted(nodes, key=lambda n: (self.nodes[n].shape.stage, self._depth(n))))
        stages = max((nodes[n].stage for n in order), default=1)
        return Plan(
            self.version,
            nodes,
            order,
            self.streams,
            dict(self.queries),
            max(stages, 1),
            dict(self.made),
        )

    def _depth(self, number: int) -> int:
        if number not in self._seen:
            self._seen[number] = 1 + max(
                (self._depth(i) for i in self.nodes[number].inputs), default=0
            )
        return self._seen[number]

    def _sealed(
        self, number: int, consumers: tuple[Consumer, ...], had: int, homes: dict[int, I64]
    ) -> PlanNode:
        node = self.nodes[number]
        numbers = {n: i for i, n in enumerate(self.streams)}
        living = tuple(node.members.index)
        places = np.zeros(len(node.members.rows), np.int64)
        places[node.members.living()] = np.arange(len(living))
        layouts = tuple(e.layout for _, e in node.shape.inputs)
        return PlanNode(
            number,
            node.shape.step,
            node.shape.stage,
            node.shape.layout,
            node.inputs,
            layouts,
            consumers,
            node.members.table(),
            node.members.alive(),
            WindowTable.of(living, numbers).at(places),
            Schedules.of(living, places, numbers),
            node.members.born_after(had),
            self._home(number, homes),
        )

    def _home(self, number: int, homes: dict[int, I64]) -> I64:
        """A member that is exchanged by itself is at home there; what follows in place is at the
        same home.
        """
        if number not in homes:
            homes[number] = self._found_home(number, homes)
        return homes[number]

    def _found_home(self, number: int, homes: dict[int, I64]) -> I64:
        node = self.nodes[number]
        members = np.arange(len(node.members.rows), dtype=np.int64)
        for i, (producer, (_, edge)) in enumerate(zip(node.inputs, node.shape.inputs, strict=True)):
            if edge.exchange == ():
                return home_number(number, members)
            if edge.exchange is None:
                below = self._home(producer, homes)
                return below[[m.inputs[i] for m in node.members.table()]]
        return np.full(len(members), -1, np.int64)

    def _fan(self, node: _Node, i: int, producers: int) -> FanOut:
        """CSR from the producer's members to this node's, the living ones only."""
        living = node.members.living()
        sources = np.array([m.inputs[i] for m in node.members.index], np.int64)
        order = np.argsort(sources, kind="stable")
        offsets = np.zeros(producers + 1, np.int32)
        np.cumsum(np.bincount(sources, minlength=producers), out=offsets[1:])
        members = np.array(living, np.int32)[order]
        identity = producers == len(living) and bool((members == np.arange(producers)).all())
        return FanOut(offsets, members, identity and bool((sources[order] == members).all()))
