"""Seals a topology: turns nodes of the catalog into nodes of the execution plan, with arrays
instead of dictionaries.

A node with the same members as in the previous version stays the same object, with its facts. If
only its readers or its new members differ, it is revised. So the cost of a version is proportional
to its changes (``plan/execution``), plus some passes over arrays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace

import numpy as np

from levada.core.array_types import Bools, Longs
from levada.core.event_time import MIN
from levada.core.frozen import frozen
from levada.plan.execution.plan import Consumer, FanOut, Plan, PlanNode, QueryPlan, home_number
from levada.plan.execution.plan_delta import PlanChange, change_of
from levada.plan.execution.report_schedules import Schedules
from levada.plan.execution.window_table import WindowTable
from levada.plan.topology.catalog_members import CatalogNode

Nodes = Mapping[int, CatalogNode]
_TIMED = ("windows", "streams", "start", "show_empty", "nonempty")


@frozen
class _Columns:
    """The members of a node as columns: starts, input members, and the plan versions that added
    them.

    Empty places have the values of the first living member.
    """

    starts: Longs
    below: tuple[Longs, ...]
    born: Longs

    @staticmethod
    def from_node(node: CatalogNode) -> _Columns:
        """Returns the columns of a node."""
        table = node.members.table()
        windows = np.array([bool(member_windows) for member_windows in table.windows], np.bool_)
        starts = np.where(windows, np.array(table.start, np.int64), MIN)
        below = tuple(table.inputs.astype(np.int64))
        whole = np.broadcast_to(starts, len(table)).copy()
        return _Columns(whole, below, np.array(node.members.born, np.int64))


class ExecutionPlanBuilder:
    """Seals the versions of one topology in order; ``came``: the queries since the last version."""

    def __init__(self) -> None:
        self.came: dict[str, None] = {}
        self._left: dict[str, None] = {}
        self._sealed: dict[int, PlanNode] = {}  # nodes of the last version, before widening
        self._columns: dict[int, _Columns] = {}
        self._edges: dict[tuple[int, int], Consumer] = {}
        self._last: Plan | None = None

    def nodes(
        self, nodes: Nodes, order: Sequence[int], streams: Sequence[str], had: int
    ) -> dict[int, PlanNode]:
        """Returns all sealed nodes; ``had``: the last plan version that an epoch has used."""
        changed = {n for n, node in nodes.items() if node.members.changed or n not in self._sealed}
        self._columns = {n: self._columns[n] for n in nodes if n not in changed} | {
            n: _Columns.from_node(nodes[n]) for n in changed
        }
        consumers = self._consumers(nodes, changed)
        newest = self._newest(nodes, order)
        numbers = {name: i for i, name in enumerate(streams)}
        plan_nodes: dict[int, PlanNode] = {}
        for n in order:
            fresh = self._columns[n].born > had
            if n in changed:
                home = self._home(n, nodes[n], plan_nodes)
                plan_nodes[n] = _build_node(n, nodes[n], numbers, home)
                plan_nodes[n] = plan_nodes[n].revise(consumers[n], fresh, newest[n])
            else:
                plan_nodes[n] = _reuse_node(self._sealed[n], consumers[n], fresh, newest[n])
        for n in changed:
            nodes[n].members.changed = False
        self._sealed = {n: plan_nodes[n] for n in nodes}
        return dict(self._sealed)

    def queries(self, there: Mapping[str, QueryPlan]) -> Mapping[str, QueryPlan]:
        """Returns all current queries; the last version had all of them except those that were
        added.
        """
        if self._last is None:
            return dict(there)
        return self._last.queries_after({name: there[name] for name in self.came}, self._left)

    def settle(self, plan: Plan) -> Plan:
        """Widens the relaxed joins of a plan; reuses those of the last version that are wide
        enough.
        """
        if self._last is None:
            return plan
        kept: dict[int, PlanNode] = {}
        for n, node in plan.nodes.items():
            old = self._last.nodes.get(n)
            if node is not self._sealed[n] and old is not None and _same(node, old):
                kept[n] = _reuse_node(old, node.consumers, node.fresh, node.newest)
        return replace(plan, nodes={**plan.nodes, **kept}) if kept else plan

    def remove_query(self, name: str) -> None:
        """Records the removal of a query."""
        before = self._last is not None and name in self._last.queries
        if self.came.pop(name, name) is not None or before:  # otherwise no version has had it
            self._left[name] = None

    def change(self, plan: Plan) -> PlanChange | None:
        """Returns the difference of a version from the previous one; None for the first."""
        last, self._last = self._last, plan
        difference = None if last is None else change_of(last, plan, self.came, self._left)
        self.came, self._left = {}, {}
        return difference

    def _consumers(self, nodes: Nodes, changed: Collection[int]) -> dict[int, tuple[Consumer, ...]]:
        """Returns the edges to each node's readers."""
        consumers: dict[int, list[Consumer]] = {n: [] for n in nodes}
        edges: dict[tuple[int, int], Consumer] = {}
        for n, node in nodes.items():
            for i, (producer, (_, edge)) in enumerate(
                zip(node.inputs, node.shape.inputs, strict=True)
            ):
                if n in changed or producer in changed:
                    fan = self._fan(n, node, i, nodes[producer].members.places)
                    edges[n, i] = Consumer(n, i, edge, fan, node.shape.stage)
                else:
                    edges[n, i] = self._edges[n, i]
                consumers[producer].append(edges[n, i])
        self._edges = edges
        return {n: tuple(node_consumers) for n, node_consumers in consumers.items()}

    def _fan(self, number: int, node: CatalogNode, i: int, producers: int) -> FanOut:
        """Returns the CSR map from the producer's living members to this node's members."""
        living = np.array(node.members.living_numbers(), np.int64)
        sources = self._columns[number].below[i][living]
        order = np.argsort(sources, kind="stable")
        offsets = np.zeros(producers + 1, np.int32)
        np.cumsum(np.bincount(sources, minlength=producers), out=offsets[1:])
        members = living.astype(np.int32)[order]
        identity = producers == len(living) and bool((members == np.arange(producers)).all())
        return FanOut(offsets, members, identity and bool((sources[order] == members).all()))

    def _newest(self, nodes: Nodes, order: Sequence[int]) -> dict[int, Longs]:
        """Returns for each member the latest start of itself and of the members that read it."""
        starts = {n: self._columns[n].starts.copy() for n in nodes}
        for number in reversed(order):
            if int(starts[number].max()) > MIN:
                for i, below in enumerate(nodes[number].inputs):
                    at = self._columns[number].below[i]
                    np.maximum.at(starts[below], at, starts[number])
        return starts

    def _home(self, number: int, node: CatalogNode, plan_nodes: Mapping[int, PlanNode]) -> Longs:
        """Returns the home number of each member.

        A member with a home exchange has its own home; a member without an exchange has its
        input's.
        """
        members = np.arange(node.members.places, dtype=np.int64)
        for i, (producer, (_, edge)) in enumerate(zip(node.inputs, node.shape.inputs, strict=True)):
            if edge.exchange == ():
                return home_number(number, members)
            if edge.exchange is None:
                return plan_nodes[producer].home[self._columns[number].below[i]]
        return np.full(len(members), -1, np.int64)


def _build_node(
    number: int, node: CatalogNode, streams: Mapping[str, int], home: Longs
) -> PlanNode:
    """Returns a sealed node from the members of a catalog node."""
    living, kinds = node.members.kinds(*_TIMED)
    rows = node.members.places
    places = np.zeros(rows, np.int64)
    places[node.members.living_numbers()] = kinds
    return PlanNode(
        number,
        node.shape.step,
        node.shape.stage,
        node.shape.layout,
        node.inputs,
        tuple(e.layout for _, e in node.shape.inputs),
        (),
        node.members.table(),
        node.members.alive(),
        WindowTable.from_members(living, streams).select_members(places),
        Schedules.from_members(living, places, streams),
        np.zeros(rows, np.bool_),
        np.full(rows, MIN, np.int64),
        home,
    )


def _reuse_node(
    old: PlanNode, consumers: tuple[Consumer, ...], fresh: Bools, newest: Longs
) -> PlanNode:
    """Returns a sealed node with the same members: the same object if nothing else differs."""
    same = len(consumers) == len(old.consumers) and all(
        one is other for one, other in zip(consumers, old.consumers, strict=True)
    )
    if same and np.array_equal(fresh, old.fresh) and np.array_equal(newest, old.newest):
        return old
    return old.revise(consumers, fresh, newest)


def _same(node: PlanNode, old: PlanNode) -> bool:
    """Whether a widened node equals the previous one, except for its readers and new members."""
    if node.members is not old.members or node.schedules is not old.schedules:
        return False
    return all(
        np.array_equal(getattr(node.windows, f.name), getattr(old.windows, f.name))
        for f in fields(WindowTable)
    )
