"""What picks want of the relaxed joins below them, in one sealed version of the plan.

It is no parameter of these joins, so a query that comes or goes changes no member of them: which
terms a pattern stands for, how long rows can count and which rows of an input some pick wants
follow from the picks that live.

Windows of a relaxed join are *loose* as members have them. In a sealed plan they are that of all
picks above, if these agree, else one that has the rows of all: an element leaves it when it has
left each of theirs (CQELS Cloud, shared joins), and each row when it has left those of the picks
that want it (``operators/rows/sift``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from levada.model.term import Term
from levada.model.time import MAX, Window, WindowKind
from levada.plan.sealed import steps as s
from levada.plan.sealed.plan import Plan, PlanNode

At = tuple[int, int]
"""A node and a member of it."""
Terms = dict[At, tuple[tuple[Term, ...], ...]]
"""What patterns stand for: the terms at their lifted positions, once for each triple of these."""

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


def loosened(windows: tuple[Window, ...]) -> tuple[Window, ...]:
    """The windows of a relaxed join in place of these: equal for all that may share it."""
    return tuple([Window(WindowKind.ALL) if w.kind in LOOSE else w for w in windows])


@dataclass(eq=False)
class Shares:
    """The living picks above each relaxed join, and what they want of patterns."""

    plan: Plan

    @cached_property
    def above(self) -> Mapping[At, tuple[At, ...]]:
        """The picks above each member of a relaxed join."""
        found: dict[At, dict[At, None]] = {}
        for pick in _picks(self.plan):
            for at in _joins_below(self.plan, pick):
                found.setdefault(at, {})[pick] = None
        return {at: tuple(picks) for at, picks in found.items()}

    @cached_property
    def wanted(self) -> Terms:
        """The terms that relaxed patterns stand for: those that some living pick wants."""
        found: dict[At, dict[tuple[Term, ...], None]] = {}
        for pick in _picks(self.plan):
            for at, terms in picked(self.plan, *pick).items():
                found.setdefault(at, {}).update(dict.fromkeys(terms))
        return {at: tuple(terms) for at, terms in found.items()}

    def mixed(self, pick: int) -> bool:
        """Whether a node's picks are of joins whose picks have several windows."""
        node = self.plan.nodes[pick]
        (below,) = node.inputs
        joins = {*node.members.inputs[0][node.alive].tolist()}
        step = self.plan.nodes[below].step
        if not isinstance(step, s.Join):  # the GROUP BYs above ask when rows count
            return False
        return any(
            len(self.windows(below, join, j)) > 1 for join in joins for j in range(len(step.places))
        )

    def windows(self, node: int, member: int, window: int) -> dict[Window, None]:
        """What the picks above a relaxed join have in the place of one of its windows."""
        found: dict[Window, None] = {}
        join = self.plan.nodes[node].step
        assert isinstance(join, s.Join), "a join"
        for at, own in self.above.get((node, member), ()):
            found[self.plan.nodes[at].members.windows_at(own)[join.places[window]]] = None
        return found


def shares_of(plan: Plan) -> Shares:
    """The shares of a plan, found once."""
    found: Shares = plan.facts.setdefault(Shares, Shares(plan))
    return found


def widened(plan: Plan) -> Plan:
    """The plan with windows in which the rows of its relaxed joins count long enough, and those of
    its sets for windows of any length.
    """
    shares = Shares(plan)
    loose = [join for node in plan.nodes.values() if (join := node.of(s.Join)) and join.step.sides]
    wide: dict[int, PlanNode] = {node.id: _widened(node, shares) for node in loose}
    sets = {n for n, node in plan.nodes.items() if (own := node.of(s.Occur)) and own.step.wide}
    wide |= _wide_sets(plan, sets)
    return replace(plan, nodes={**plan.nodes, **wide}) if wide else plan


def _widened(node: PlanNode[s.Join], shares: Shares) -> PlanNode[s.Join]:
    table = node.windows.copied()
    for member in np.flatnonzero(node.alive).tolist():
        for j, window in enumerate(node.members.windows_at(member)[: len(node.step.places)]):
            found = shares.windows(node.id, member, j)
            if window == Window(WindowKind.ALL) and found:
                table.put(j, member, longest(found))
    return replace(node, windows=table)


def _wide_sets(plan: Plan, sets: Collection[int]) -> dict[int, PlanNode]:
    """Sets for windows of any length with the longest of those of the GROUP BYs above, and of those
    of picks.
    """
    found: dict[int, dict[int, dict[Window, None]]] = {number: {} for number in sets}
    for node in plan.nodes.values() if sets else ():
        if node.inputs and node.inputs[0] in sets and isinstance(node.step, s.Panes | s.Pick):
            row = node.step.rows[0] if isinstance(node.step, s.Panes) else 0
            for member in np.flatnonzero(node.alive).tolist():
                below = int(node.members.inputs[0, member])
                windows = node.members.windows_at(member)
                found[node.inputs[0]].setdefault(below, {})[windows[row]] = None
    wide: dict[int, PlanNode] = {}
    for number, by_member in found.items():
        table = plan.nodes[number].windows.copied()
        for member, own_windows in by_member.items():
            table.put(0, member, longest(own_windows))
        wide[number] = replace(plan.nodes[number], windows=table)
    return wide


def longest(windows: Collection[Window]) -> Window:
    """A window from which rows leave when they have left all of these: it, if there is one."""
    if len(windows) == 1:
        return next(iter(windows))
    most = max(window.stays for window in windows)
    return Window(WindowKind.ALL) if most >= MAX else Window(WindowKind.RANGE, range=most)


def _picks(plan: Plan) -> Iterator[At]:
    for number, node in plan.nodes.items():
        if isinstance(node.step, s.Pick):
            for member in np.flatnonzero(node.alive).tolist():
                yield number, member


def _joins_below(plan: Plan, pick: At) -> Iterator[At]:
    """The relaxed joins of the block below a pick, or its set."""
    waiting = list(_below(plan, pick))
    while waiting:
        at = waiting.pop()
        step = plan.nodes[at[0]].step
        if isinstance(step, s.Join) and step.sides:
            yield at
            waiting += _below(plan, at)
        elif isinstance(step, s.Occur) and step.sides:
            yield at
        elif isinstance(step, s.Filter | s.Extend):
            waiting += _below(plan, at)


def _below(plan: Plan, at: At) -> Iterator[At]:
    node = plan.nodes[at[0]]
    yield from zip(node.inputs, node.members.inputs_at(at[1]), strict=True)


def picked(plan: Plan, number: int, member: int) -> Terms:
    """What a pick wants of the patterns below it, of which one may stand at several places."""
    node = plan.nodes[number]
    assert isinstance(node.step, s.Pick), "a pick"
    constants = node.members.constants_at(member)
    of: dict[tuple[int, ...], list[Term]] = {}
    for key in node.step.keys:
        if key.source:
            (param,) = key.params
            term = constants[param]
            assert term is not None, "a pick names terms"
            of.setdefault(key.source[:-1], []).append(term)  # positions ascend
    found: Terms = {}
    for way, terms in of.items():
        at, own = number, member
        for i in way:
            at, own = plan.nodes[at].inputs[i], int(plan.nodes[at].members.inputs[i, own])
        found[at, own] = (*found.get((at, own), ()), tuple(terms))
    return found
