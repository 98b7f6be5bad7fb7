"""Finds relaxed joins, relaxed sets and arrangements below the picks of a node.

The slots of a join's inputs that decide a pick's conditions follow from the sources of the pick's
slots below. A slot that is a key of a join has a source on both sides. Values that a join fills in
for a side without them are decided above the join alone.

Cost: a gather for each join below picks, regardless of the number of picks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from levada.core.array_types import Longs
from levada.core.event_time import Window
from levada.core.expressions import variables
from levada.plan.execution import steps as s
from levada.plan.execution.joins import is_arranged
from levada.plan.execution.plan import Plan, PlanNode

Slots = Mapping[int, int]
"""Slots of a pick's input to slots of an operator below."""


class Side(NamedTuple):
    """An input of a shared node.

    ``slots``: the input slots that decide the picks' conditions. ``way``: the inputs that lead to
    it from the pick. ``places``: positions of its windows among those of the pick. ``alone``: no
    other node has its rows.
    """

    slots: Slots
    way: tuple[int, ...]
    places: tuple[int, ...] = ()
    alone: bool = True


@dataclass(frozen=True, eq=False, slots=True)
class SharedJoinNode:
    """A node that picks share: a relaxed join, a relaxed set, or an arrangement of a join side.

    ``pick``: the node of the picks. ``members``: members of the pick; ``node_members``: the member
    of ``node`` below each of them. ``places``: positions of the node's windows among the windows of
    the pick. ``sides``: the inputs of the node; an arrangement has the arriving rows first, then
    the kept rows.
    """

    pick: PlanNode[s.Pick]
    node: int
    members: Longs
    node_members: Longs
    sides: tuple[Side, ...]
    places: tuple[int, ...]

    def kinds(self) -> tuple[list[tuple[Window, ...]], Longs]:
        """Returns the distinct windows of the picks above each member, and these members."""
        kinds, of_member = self.pick.compute_once(window_kinds)
        codes = np.unique(self.node_members * len(kinds) + of_member[self.members])
        members, kind = np.divmod(codes, len(kinds))
        return [kinds[each] for each in kind.tolist()], members


def window_kinds(node: PlanNode) -> tuple[list[tuple[Window, ...]], Longs]:
    """Returns the distinct windows of a node's members, and the number of each member's windows."""
    numbers: dict[tuple[Window, ...], int] = {}
    of = [numbers.setdefault(windows, len(numbers)) for windows in node.members.windows]
    return list(numbers), np.broadcast_to(np.array(of, np.int64), (len(node.members),))


def find_shared_joins(plan: Plan, pick: PlanNode[s.Pick]) -> Iterator[SharedJoinNode]:
    """Yields the relaxed joins and sets below picks, and the arrangements of their sides."""
    members = np.flatnonzero(pick.alive)
    every: Slots = {i: i for i in range(len(pick.input_layouts[0].slots))}
    side = Side(every, (0,), tuple(range(len(pick.input_layouts[0].windows))))
    waiting = [(side, *_follow_input(plan, pick, 0, members, every))]
    while waiting:
        (_, way, places, _), node, node_members, slots = waiting.pop()
        if (join := node.as_step(s.Join)) is not None and join.step.relaxed:
            sides = tuple([_side(plan, join, Side(slots, way, places), i) for i in (0, 1)])
            yield SharedJoinNode(pick, node.id, members, node_members, sides, places)
            for i, side in enumerate(sides):
                below, there, known = _follow_input(plan, node, i, node_members, side.slots)
                if isinstance(below.step, s.RelaxedStream | s.RelaxedStatic):
                    here = side._replace(slots=known)
                    known = _arrangement_slots(pick.step, join.step, below.step, slots, known)
                    common = side._replace(slots=known, alone=is_alone(plan, below, 0))
                    yield SharedJoinNode(
                        pick, below.id, members, there, (common, here), side.places
                    )
                    below, there, known = _follow_input(plan, below, 0, there, known)
                waiting.append((side, below, there, known))
        elif (made := node.as_step(s.Occur)) is not None and made.step.relaxed:
            side = Side(slots, (*way, 0), places)
            yield SharedJoinNode(pick, node.id, members, node_members, (side,), places)
        elif isinstance(node.step, s.Report):  # picks read its rows
            side = Side(slots, (*way, 0))
            yield SharedJoinNode(pick, node.id, members, node_members, (side,), ())
            side = side._replace(places=tuple(range(len(node.input_layouts[0].windows))))
            waiting.append((side, *_follow_input(plan, node, 0, node_members, slots)))
        elif isinstance(node.step, s.Filter | s.Extend):
            kept = node.step.kept
            shown = {at: kept[slot] for at, slot in slots.items() if slot < len(kept)}
            side = Side(shown, (*way, 0), places)
            waiting.append((side, *_follow_input(plan, node, 0, node_members, shown)))


def _follow_input(
    plan: Plan, node: PlanNode, i: int, members: Longs, slots: Slots
) -> tuple[PlanNode, Longs, Slots]:
    """Returns an input of a node, its members that these members read, and the slots of the edge
    there.
    """
    below = plan.nodes[node.inputs[i]]
    edges = (c.edge for c in below.consumers if c.node == node.id and c.input == i)
    edge = next(edges)
    there = {at: edge.slots[slot] for at, slot in slots.items() if edge.slots[slot] >= 0}
    return below, node.members.inputs[i][members].astype(np.int64), there


def _side(plan: Plan, join: PlanNode[s.Join], rows: Side, i: int) -> Side:
    """Returns an input of a join with the slots, the way and the places of its rows."""
    step, width = join.step, len(join.input_layouts[i].windows)
    places = tuple([rows.places[w] for w in step.row_windows(i, width) or ()])
    return Side(_input_slots(step, rows.slots, i), (*rows.way, i), places, is_alone(plan, join, i))


def is_alone(plan: Plan, node: PlanNode, i: int) -> bool:
    """Whether no other node reads or has the rows of an input; static rows stay."""
    below = plan.nodes[node.inputs[i]]
    if isinstance(node.step, s.RelaxedStatic) or isinstance(below.step, s.RelaxedStatic):
        return False
    while len(below.consumers) == 1 and not (np.diff(below.consumers[0].fan.offsets) > 1).any():
        if not isinstance(below.step, s.Filter | s.Extend | s.RelaxedStream):
            return True
        below = plan.nodes[below.inputs[0]]
    return False


def _arrangement_slots(
    pick: s.Pick, join: s.Join, kept: s.Arrange, slots: Slots, there: Slots
) -> Slots:  # fmt: skip
    """Maps slots of a join's rows to the input of the arrangement of its side.

    ``there``: slots of the arrangement's rows. The join has the arrangement's keys from its other
    side; only their identities are known here.
    """
    kept_slots = {at: kept.kept[slot] for at, slot in there.items()}
    read = {test.slot for test in pick.tests} | {
        int(v) for one in pick.rest for v in variables(one)
    }
    keys = join.left or join.right
    for at in {key.slot for key in pick.keys} & slots.keys() - read:
        key_slot = join.out[slots[at]][1]
        if at not in kept_slots and key_slot in keys:
            kept_slots[at] = kept.keys[keys.index(key_slot)]
    return kept_slots


def _input_slots(join: s.Join, slots: Slots, i: int) -> Slots:
    """Maps slots of a join's rows to slots of an input."""
    input_slots: dict[int, int] = {}
    filled = {pair[0] for pair in join.fills}
    for at, slot in slots.items():
        side, side_slot = join.out[slot]
        if side == 0 and side_slot in filled:
            continue
        if side == i:
            input_slots[at] = side_slot
        elif side_slot in (keys := (join.left, join.right)[side]) and not is_arranged(join, i):
            input_slots[at] = (join.left, join.right)[i][keys.index(side_slot)]
    return input_slots
