"""What picks want of the relaxed joins below them, in one sealed version of the plan.

It is no parameter of these joins, so a query that comes or goes changes no member of them: which
terms a pattern stands for, how long rows can count and which rows of an input some pick wants
follow from the picks that live.

Windows of a relaxed join are *loose* as members have them. In a sealed plan they are that of all
picks above, if these agree, else one that has the rows of all: an element leaves it when it has
left each of theirs (CQELS Cloud, shared joins), and each row when it has left those of the picks
that want it (``operators/rows/sift``).

By which slots of a join's inputs a pick's conditions can be told follows from where the pick's
slots come from, down to there: one that is a key of a join comes from both sides. What a join fills
in where a side lacks it is told above alone.

What keeps a side for several relaxed joins (``RelaxedStream``, ``RelaxedStatic``) stands below the
picks of all of them, and keeps what any of these wants. It is no step of a way. Static rows that a
newcomer wants come in its first epoch: their patterns are read again then, as if they were new.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from levada.model.arrays import Longs
from levada.model.expression import variables
from levada.model.term import Term
from levada.model.time import MAX, Window, WindowKind
from levada.plan.sealed import steps as s
from levada.plan.sealed.joins import is_arranged
from levada.plan.sealed.plan import Plan, PlanNode
from levada.plan.sealed.window_table import WindowTable

At = tuple[int, int]
"""A node and a member of it."""
Terms = dict[At, tuple[tuple[Term, ...], ...]]
"""What patterns stand for: the terms at their lifted positions, once for each triple of these."""

Slots = Mapping[int, int]
"""Where slots of a pick's input stand further down."""


class Side(NamedTuple):
    """An input of what stands below picks: the slots by which these tell its rows there; the inputs
    that lead to it from the pick; where its windows are among the pick's. ``alone``: its rows are
    nobody else's.
    """

    slots: Slots
    way: tuple[int, ...]
    places: tuple[int, ...] = ()
    alone: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class Standing:
    """A relaxed join or set, or what keeps a side of several (``node``), as it stands below the
    picks of a node: which ``members`` of the pick are above which of it (``own``). ``places``: of
    its windows among the pick's. Behind what comes to such a side stands what is kept of it.
    """

    pick: PlanNode[s.Pick]
    node: int
    members: Longs
    own: Longs
    sides: tuple[Side, ...]
    places: tuple[int, ...]

    def kinds(self) -> tuple[list[tuple[Window, ...]], Longs]:
        """The windows that its picks have, each kind once for each of its own members; and these."""
        kinds, of_member = self.pick.known(window_kinds)
        codes = np.unique(self.own * len(kinds) + of_member[self.members])
        own, kind = np.divmod(codes, len(kinds))
        return [kinds[each] for each in kind.tolist()], own


def window_kinds(node: PlanNode) -> tuple[list[tuple[Window, ...]], Longs]:
    """The windows that members of a node have, each kind once, and the number of each one's."""
    numbers: dict[tuple[Window, ...], int] = {}
    of = [numbers.setdefault(own, len(numbers)) for own in node.members.windows]
    return list(numbers), np.broadcast_to(np.array(of, np.int64), (len(node.members),))


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
    by_number = any(w.kind is WindowKind.NUMBERS for w in windows)
    return tuple([_loose(w, by_number=by_number) for w in windows])


def _loose(window: Window, *, by_number: bool) -> Window:
    if window.kind in LOOSE:
        return _ALL
    return Window(window.kind) if by_number else window


_ALL, _NUMBERS = Window(WindowKind.ALL), Window(WindowKind.NUMBERS)


@dataclass(eq=False)
class Shares:
    """The living picks above each relaxed join, and what they want of patterns."""

    plan: Plan

    @cached_property
    def standing(self) -> Mapping[int, tuple[Standing, ...]]:
        """Below which picks each relaxed join or set stands, and where."""
        found: dict[int, list[Standing]] = {}
        for node in self.plan.nodes.values():
            if (pick := node.of(s.Pick)) is not None:
                for one in _standing(self.plan, pick):
                    found.setdefault(one.node, []).append(one)
        return {number: tuple(each) for number, each in found.items()}

    @cached_property
    def above(self) -> Mapping[At, tuple[tuple[Window, ...], ...]]:
        """The windows that picks above each member of a relaxed join have in the place of its own:
        each kind once.
        """
        found: dict[At, dict[tuple[Window, ...], None]] = {}
        every = [one for each in self.standing.values() for one in each if one.places]
        for one in every:
            kinds, own = one.kinds()
            shown = [tuple([kind[place] for place in one.places]) for kind in kinds]
            for member, kind in zip(own.tolist(), shown, strict=True):
                found.setdefault((one.node, member), {})[kind] = None
        return {at: tuple(kinds) for at, kinds in found.items()}

    @cached_property
    def wanted(self) -> Terms:
        """The terms that relaxed patterns stand for: those that some living pick wants."""
        return self._terms(_picks(self.plan))

    @cached_property
    def coming(self) -> Terms:
        """The same of picks that no epoch had before this version."""
        nodes = self.plan.nodes
        return self._terms((n, m) for n, m in _picks(self.plan) if nodes[n].fresh[m])

    def _terms(self, picks: Iterable[At]) -> Terms:
        found: dict[At, dict[tuple[Term, ...], None]] = {}
        for pick in picks:
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
        return dict.fromkeys([kind[window] for kind in self.above.get((node, member), ())])


def shares_of(plan: Plan) -> Shares:
    """The shares of a plan, found once."""
    found: Shares = plan.facts.setdefault(Shares, Shares(plan))
    return found


def widened(plan: Plan) -> Plan:
    """The plan with windows in which the rows of its relaxed joins count long enough, and those of
    its sets for windows of any length.
    """
    shares = Shares(plan)
    loose = [node for node in plan.nodes.values() if is_loose(node.step)]
    wide: dict[int, PlanNode] = {node.id: _widened(node, shares) for node in loose}
    wide |= _far_enough(plan)
    sets = {n for n, node in plan.nodes.items() if (own := node.of(s.Occur)) and own.step.wide}
    wide |= _wide_sets(plan, sets)
    wide |= _read_again(plan, shares)
    return replace(plan, nodes={**plan.nodes, **wide}) if wide else plan


def is_loose(step: object) -> bool:
    """Whether a step's windows are those of the picks above."""
    return isinstance(step, s.RelaxedStream) or (isinstance(step, s.Join) and step.relaxed)


def _widened(node: PlanNode, shares: Shares) -> PlanNode:
    table = node.windows.copied()
    for member in np.flatnonzero(node.alive).tolist():
        for j, window in enumerate(node.members.windows_at(member)[: len(node.layout.windows)]):
            found = shares.windows(node.id, member, j)
            if window in (_ALL, _NUMBERS) and found:
                table.put(j, member, longest(found))
    return replace(node, windows=table)


def _read_again(plan: Plan, shares: Shares) -> dict[int, PlanNode]:
    """The static patterns of which picks that are new want rows, as new ones."""
    found: dict[int, PlanNode] = {}
    for number, each in shares.standing.items():
        for one in each if isinstance(plan.nodes[number].step, s.RelaxedStatic) else ():
            node, own = plan.nodes[number], one.own[one.pick.fresh[one.members]]
            while node.inputs:
                own = node.members.inputs[0][own].astype(np.int64)
                node = plan.nodes[node.inputs[0]]
            if len(own):
                fresh = found.get(node.id, node).fresh.copy()
                fresh[own] = True
                found[node.id] = node.revised(node.consumers, fresh, node.newest)
    return found


def _far_enough(plan: Plan) -> dict[int, PlanNode]:
    """The rows with numbers, of which each is told whether an equal one is in the longest of the
    count windows above.
    """
    tables: dict[int, WindowTable] = {}
    for node in plan.nodes.values():
        if (narrow := node.of(s.Narrow)) is not None:
            instants = plan.nodes[node.inputs[1]]
            (below,) = instants.inputs
            if below not in tables:
                tables[below] = plan.nodes[below].windows.copied()
            at = instants.members.inputs[0][node.members.inputs[1][narrow.alive]]
            np.maximum.at(tables[below].range[-1], at, narrow.windows.range[-1][narrow.alive])
    return {number: replace(plan.nodes[number], windows=own) for number, own in tables.items()}


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
    if all(window.kind is WindowKind.NUMBERS for window in windows):
        return Window(WindowKind.NUMBERS, range=most)
    return Window(WindowKind.ALL) if most >= MAX else Window(WindowKind.RANGE, range=most)


def _picks(plan: Plan) -> Iterator[At]:
    for number, node in plan.nodes.items():
        if isinstance(node.step, s.Pick):
            for member in np.flatnonzero(node.alive).tolist():
                yield number, member


def _standing(plan: Plan, pick: PlanNode[s.Pick]) -> Iterator[Standing]:
    """The relaxed joins of the block below picks and what keeps sides of these, or their set."""
    members = np.flatnonzero(pick.alive)
    every: Slots = {i: i for i in range(len(pick.input_layouts[0].slots))}
    way: tuple[int, ...] = (0,)
    waiting = [(way, *_below(plan, pick, 0, members, every))]
    while waiting:
        way, node, own, slots = waiting.pop()
        if (join := node.of(s.Join)) is not None and join.step.relaxed:
            sides = tuple([_side(plan, join, slots, i, way) for i in (0, 1)])
            yield Standing(pick, node.id, members, own, sides, join.step.places)
            for i, side in enumerate(sides):
                below, there, known = _below(plan, node, i, own, side.slots)
                if isinstance(below.step, s.RelaxedStream | s.RelaxedStatic):
                    here = side._replace(slots=known)
                    known = _kept(pick.step, join.step, below.step, slots, known)
                    common = side._replace(slots=known, alone=is_alone(plan, below, 0))
                    yield Standing(pick, below.id, members, there, (common, here), side.places)
                    below, there, known = _below(plan, below, 0, there, known)
                waiting.append((side.way, below, there, known))
        elif (made := node.of(s.Occur)) is not None and made.step.relaxed:
            side = Side(slots, (*way, 0), made.step.places)
            yield Standing(pick, node.id, members, own, (side,), side.places)
        elif isinstance(node.step, s.Report):  # of whose rows there are picks
            yield Standing(pick, node.id, members, own, (Side(slots, (*way, 0)),), ())
            waiting.append(((*way, 0), *_below(plan, node, 0, own, slots)))
        elif isinstance(node.step, s.Filter | s.Extend):
            kept = node.step.kept
            shown = {at: kept[slot] for at, slot in slots.items() if slot < len(kept)}
            waiting.append(((*way, 0), *_below(plan, node, 0, own, shown)))


def _below(
    plan: Plan, node: PlanNode, i: int, own: Longs, slots: Slots
) -> tuple[PlanNode, Longs, Slots]:
    """An input of a node, the members of it that these read, and where slots of the edge stand
    there.
    """
    below = plan.nodes[node.inputs[i]]
    edges = (c.edge for c in below.consumers if c.node == node.id and c.input == i)
    edge = next(edges)
    there = {at: edge.slots[slot] for at, slot in slots.items() if edge.slots[slot] >= 0}
    return below, node.members.inputs[i][own].astype(np.int64), there


def _side(
    plan: Plan, join: PlanNode[s.Join], slots: Slots, i: int, way: tuple[int, ...]
) -> Side:  # fmt: skip
    """An input of a join, of whose rows these are slots."""
    step, width = join.step, len(join.input_layouts[i].windows)
    places = tuple([step.places[w] for w in step.row_windows(i, width) or ()])
    return Side(_of_side(step, slots, i), (*way, i), places, is_alone(plan, join, i))


def is_alone(plan: Plan, node: PlanNode, i: int) -> bool:
    """Whether nobody else reads what comes to an input of a node, nor has: static rows stay."""
    below = plan.nodes[node.inputs[i]]
    if isinstance(node.step, s.RelaxedStatic) or isinstance(below.step, s.RelaxedStatic):
        return False
    while len(below.consumers) == 1 and not (np.diff(below.consumers[0].fan.offsets) > 1).any():
        if not isinstance(below.step, s.Filter | s.Extend | s.RelaxedStream):
            return True
        below = plan.nodes[below.inputs[0]]
    return False


def _kept(
    pick: s.Pick, join: s.Join, kept: s.Arrange, slots: Slots, there: Slots
) -> Slots:  # fmt: skip
    """Where slots of a join's rows stand among those of which its side is kept; ``there``: among
    those that are. The terms by which it is kept the join has from its other side; of these nothing
    but identities is known here.
    """
    found = {at: kept.kept[slot] for at, slot in there.items()}
    read = {test.slot for test in pick.tests} | {
        int(v) for one in pick.rest for v in variables(one)
    }
    keys = join.left or join.right
    for at in {key.slot for key in pick.keys} & slots.keys() - read:
        own = join.out[slots[at]][1]
        if at not in found and own in keys:
            found[at] = kept.keys[keys.index(own)]
    return found


def _of_side(join: s.Join, slots: Slots, i: int) -> Slots:
    """Where slots of a join's rows stand among those of an input."""
    found: dict[int, int] = {}
    filled = {pair[0] for pair in join.fills}
    for at, slot in slots.items():
        side, own = join.out[slot]
        if side == 0 and own in filled:
            continue
        if side == i:
            found[at] = own
        elif own in (keys := (join.left, join.right)[side]) and not is_arranged(join, i):
            found[at] = (join.left, join.right)[i][keys.index(own)]
    return found


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
            at, own = _input_of(plan, at, own, i)
            if isinstance(plan.nodes[at].step, s.RelaxedStream | s.RelaxedStatic):
                at, own = _input_of(plan, at, own, 0)
        found[at, own] = (*found.get((at, own), ()), tuple(terms))
    return found


def _input_of(plan: Plan, node: int, member: int, i: int) -> At:
    return plan.nodes[node].inputs[i], int(plan.nodes[node].members.inputs[i, member])
