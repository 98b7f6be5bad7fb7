"""Computes the demand of picks on the relaxed joins below them, in one sealed version of the plan.

The demand is not a parameter of these joins, so adding or removing a query changes no member of
them. The terms of a pattern, the time for which rows count, and the input rows that some pick wants
follow from the living picks.

The windows of a relaxed join are *loose* in its members. In a sealed plan they are the window of
all picks above, if these agree. Otherwise they are one that contains the rows of all: an element
leaves it when it has left each of theirs (CQELS Cloud, shared joins), and a row when it has left
those of the picks that want it (``operators/rows``).

An arrangement for several relaxed joins (``RelaxedStream``, ``RelaxedStatic``) is below the picks
of all of them, and keeps the rows that any of these wants. It is not a step of a way. Static rows
that a new query wants arrive in its first epoch: their patterns are then read again, as if they
were new.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from levada.core.event_time import MAX, Window, WindowKind
from levada.plan.execution import steps as s
from levada.plan.execution.demanded_terms import (
    DemandedTerms,
    collect_new_terms,
    collect_wanted_terms,
)
from levada.plan.execution.plan import At, Plan, PlanNode
from levada.plan.execution.shared_join_nodes import SharedJoinNode, find_shared_joins
from levada.plan.execution.window_table import WindowTable

LOOSE = frozenset(
    (
        WindowKind.CLOSE_OPEN,
        WindowKind.CLOSE_CLOSED,
        WindowKind.CHANGE,
        WindowKind.RANGE,
        WindowKind.NOW,
        WindowKind.ALL,
    )
)
"""The kinds of windows in which rows count by their times alone."""


def with_widest_windows(windows: tuple[Window, ...]) -> tuple[Window, ...]:
    """Returns the windows of a relaxed join in place of these: equal for all that may share it."""
    by_number = any(w.kind is WindowKind.NUMBERS for w in windows)
    return tuple([_loose(w, by_number=by_number) for w in windows])


def _loose(window: Window, *, by_number: bool) -> Window:
    if window.kind in LOOSE:
        return _ALL
    return Window(window.kind) if by_number else window


_ALL, _NUMBERS = Window(WindowKind.ALL), Window(WindowKind.NUMBERS)


@dataclass(eq=False)
class SharingDemand:
    """The living picks above each relaxed join, and the terms that they want of patterns."""

    plan: Plan

    @cached_property
    def shared_joins(self) -> Mapping[int, tuple[SharedJoinNode, ...]]:
        """The shared nodes below picks, by the number of each relaxed join, set or arrangement."""
        nodes_by_join: dict[int, list[SharedJoinNode]] = {}
        for node in self.plan.nodes.values():
            if (pick := node.as_step(s.Pick)) is not None:
                for one in find_shared_joins(self.plan, pick):
                    nodes_by_join.setdefault(one.node, []).append(one)
        return {number: tuple(each) for number, each in nodes_by_join.items()}

    @cached_property
    def windows_above(self) -> Mapping[At, tuple[tuple[Window, ...], ...]]:
        """The distinct windows that picks have for those of each member of a relaxed join."""
        kinds_by_member: dict[At, dict[tuple[Window, ...], None]] = {}
        every = [one for each in self.shared_joins.values() for one in each if one.places]
        for one in every:
            kinds, members = one.kinds()
            shown = [tuple([kind[place] for place in one.places]) for kind in kinds]
            for member, kind in zip(members.tolist(), shown, strict=True):
                kinds_by_member.setdefault((one.node, member), {})[kind] = None
        return {at: tuple(kinds) for at, kinds in kinds_by_member.items()}

    @cached_property
    def wanted_terms(self) -> DemandedTerms:
        """The terms of relaxed patterns that some living pick wants."""
        return collect_wanted_terms(self.plan)

    @cached_property
    def new_terms(self) -> DemandedTerms:
        """The terms that picks want which no epoch had before this version."""
        return collect_new_terms(self.plan)

    def has_mixed_windows(self, pick: int) -> bool:
        """Whether the joins below a node's picks have picks with several windows."""
        node = self.plan.nodes[pick]
        (below,) = node.inputs
        joins = {*node.members.inputs[0][node.alive].tolist()}
        rows = self.plan.nodes[below]
        if not isinstance(rows.step, s.Join):  # the GROUP BYs above decide when rows count
            return False
        each = range(len(rows.layout.windows))
        return any(len(self.windows(below, join, j)) > 1 for join in joins for j in each)

    def windows(self, node: int, member: int, window: int) -> dict[Window, None]:
        """Returns the windows that the picks above a relaxed join have for one of its windows."""
        return dict.fromkeys([kind[window] for kind in self.windows_above.get((node, member), ())])


def sharing_demand_of(plan: Plan) -> SharingDemand:
    """Returns the sharing demand of a plan, computed once."""
    if SharingDemand not in plan.facts:
        plan.facts[SharingDemand] = SharingDemand(plan)
    demand: SharingDemand = plan.facts[SharingDemand]
    return demand


def widen_windows(plan: Plan) -> Plan:
    """Widens the windows of relaxed joins and of sets for windows of any length, as their readers
    need.
    """
    shares = SharingDemand(plan)
    loose = [node for node in plan.nodes.values() if is_loose(node.step)]
    wide: dict[int, PlanNode] = {node.id: _widen_node(node, shares) for node in loose}
    wide |= _widen_numbering(plan)
    sets = {
        n for n, node in plan.nodes.items() if (occur := node.as_step(s.Occur)) and occur.step.wide
    }
    wide |= _widen_sets(plan, sets)
    wide |= _mark_patterns_to_reread(plan, shares)
    return replace(plan, nodes={**plan.nodes, **wide}) if wide else plan


def is_loose(step: object) -> bool:
    """Whether the picks above decide a step's windows."""
    return isinstance(step, s.RelaxedStream) or (isinstance(step, s.Join) and step.relaxed)


def _widen_node(node: PlanNode, shares: SharingDemand) -> PlanNode:
    table = node.windows.copy()
    for member in np.flatnonzero(node.alive).tolist():
        for j, window in enumerate(node.members.windows_at(member)[: len(node.layout.windows)]):
            demanded_windows = shares.windows(node.id, member, j)
            if window in (_ALL, _NUMBERS) and demanded_windows:
                table.put(j, member, longest_window(demanded_windows))
    return replace(node, windows=table)


def _mark_patterns_to_reread(plan: Plan, shares: SharingDemand) -> dict[int, PlanNode]:
    """Marks the static patterns as new whose rows new picks want."""
    renewed: dict[int, PlanNode] = {}
    for number, each in shares.shared_joins.items():
        for one in each if isinstance(plan.nodes[number].step, s.RelaxedStatic) else ():
            node, members = plan.nodes[number], one.node_members[one.pick.fresh[one.members]]
            while node.inputs:
                members = node.members.inputs[0][members].astype(np.int64)
                node = plan.nodes[node.inputs[0]]
            if len(members):
                fresh = renewed.get(node.id, node).fresh.copy()
                fresh[members] = True
                renewed[node.id] = node.revise(node.consumers, fresh, node.newest)
    return renewed


def _widen_numbering(plan: Plan) -> dict[int, PlanNode]:
    """Gives numbered rows the longest of the count windows above, which detects equal rows."""
    tables: dict[int, WindowTable] = {}
    for node in plan.nodes.values():
        if (narrow := node.as_step(s.Narrow)) is not None:
            instants = plan.nodes[node.inputs[1]]
            (below,) = instants.inputs
            if below not in tables:
                tables[below] = plan.nodes[below].windows.copy()
            at = instants.members.inputs[0][node.members.inputs[1][narrow.alive]]
            np.maximum.at(tables[below].range[-1], at, narrow.windows.range[-1][narrow.alive])
    return {number: replace(plan.nodes[number], windows=table) for number, table in tables.items()}


def _widen_sets(plan: Plan, sets: Collection[int]) -> dict[int, PlanNode]:
    """Gives sets for windows of any length the longest window of the GROUP BYs and picks above."""
    windows_by_set: dict[int, dict[int, dict[Window, None]]] = {number: {} for number in sets}
    for node in plan.nodes.values() if sets else ():
        if node.inputs and node.inputs[0] in sets and isinstance(node.step, s.Panes | s.Pick):
            row = node.step.rows[0] if isinstance(node.step, s.Panes) else 0
            for member in np.flatnonzero(node.alive).tolist():
                below = int(node.members.inputs[0, member])
                windows = node.members.windows_at(member)
                windows_by_set[node.inputs[0]].setdefault(below, {})[windows[row]] = None
    wide: dict[int, PlanNode] = {}
    for number, by_member in windows_by_set.items():
        table = plan.nodes[number].windows.copy()
        for member, own_windows in by_member.items():
            table.put(0, member, longest_window(own_windows))
        wide[number] = replace(plan.nodes[number], windows=table)
    return wide


def longest_window(windows: Collection[Window]) -> Window:
    """Returns a window that rows leave when they have left all of these: the only one, if it is
    one.
    """
    if len(windows) == 1:
        return next(iter(windows))
    most = max(window.stays for window in windows)
    if all(window.kind is WindowKind.NUMBERS for window in windows):
        return Window(WindowKind.NUMBERS, range=most)
    return Window(WindowKind.ALL) if most >= MAX else Window(WindowKind.RANGE, range=most)
