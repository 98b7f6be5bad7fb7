"""*Forms*: the slots by which picks select the rows of an input of a relaxed join below them.

The picks of a node select rows by the same slots, and so do those of other nodes with equal slots:
these share one index (``PredicateGroup``). Owners, the picks' members, are numbered one node after
the other, full nodes first (``PlanNode.is_full``): full nodes take no new members, so they have
indexes of their own, which last from version to version of the plan. A new member costs the index
of the others.

Cost: an index for each set of slots, n log n for n owners; for full nodes whenever one more node is
full.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from levada.core.array_types import Longs
from levada.core.expressions import Expression, conjunction, variables
from levada.core.frame import Frame
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.rows import list_keys
from levada.operators.rows.predicate_index import (
    Entries,
    IndexedMembers,
    PredicateIndexReader,
    ResidualPredicates,
    by_other_slots,
    entries,
)
from levada.operators.rows.range_keys import RangeKey
from levada.plan.execution.plan import At, PlanNode
from levada.plan.execution.shared_join_nodes import SharedJoinNode
from levada.plan.execution.sharing_demand import SharingDemand


class PredicateGroup(NamedTuple):
    """Owners that select rows by the same slots: the finders of their ranges, and the window
    classes of the owners of each leaf.
    """

    finders: tuple[PredicateIndexReader, ...]
    masks: tuple[tuple[Longs, Longs], ...]

    def bits(self, rows: Frame, pool: TermLookup) -> Longs:
        """Returns the classes of the owners that want each row; 0: no owner does."""
        classes = np.full(rows.n, -1, np.int64)
        for finder, masks in zip(self.finders, self.masks, strict=True):
            finder_classes = np.zeros(rows.n, np.int64)
            for leaves, of in zip(finder.leaves(rows, pool), masks, strict=True):
                there = leaves >= 0
                if there.any():
                    finder_classes[there] |= of[leaves[there]]
            classes &= finder_classes
        return classes


@dataclass(frozen=True, eq=False, slots=True)
class Form:
    """The slots of an input that decide the wants of picks there: the keys and ranges of the picks
    by slots and axes, in their order, and a residual condition, if there is one. ``side``: the
    number of the input. ``first``: the number of the first owner. ``sifts``: some rows are
    unwanted. ``tells``: the condition is a list that the index decides.
    """

    of: SharedJoinNode
    side: int
    first: int
    keys: dict[int, int]
    ranges: dict[RangeKey, int]
    condition: Expression | None
    sifts: bool
    tells: bool

    @staticmethod
    def from_join_side(node: SharedJoinNode, i: int, first: int) -> Form:
        """Returns the form of a join below picks."""
        step, (slots, way, _, alone) = node.pick.step, node.sides[i]
        keys = [(slots[key.slot], n, key) for n, key in enumerate(step.keys) if key.slot in slots]
        tests = [test for test in step.tests if test.slot in slots]
        ranges = {RangeKey(slots[test.slot], test.order): test.range for test in tests}
        parts = [i for i, each in enumerate(step.rest) if {*map(int, variables(each))} <= {*slots}]
        rest = [step.rest[i] for i in parts]
        patterns = {key.source[:-1] for _, _, key in keys if _is_within(key.source, way)}
        key_slots = {slot for slot, _, key in keys}
        sifts = bool(ranges or rest) or (len(patterns) > 1 and len(key_slots) > 1)
        sifts = sifts or any(not key.source for _, _, key in keys) or bool(patterns and not alone)
        condition, tells = None, False
        if rest:
            number = list_keys.list_of(node.pick, parts)
            if number is not None:
                axis = list_keys.axis_of(node.pick, number)
                ranges = {axis._replace(slot=slots[axis.slot]): number}
            tells = number is not None and len(rest) == 1 and not tests
            every = cast(Expression, conjunction((*(test.condition for test in tests), *rest)))
            condition = by_other_slots(every, slots)
        by_slot = {slot: n for slot, n, _ in sorted(keys, key=lambda each: each[0])}
        return Form(node, i, first, by_slot, dict(sorted(ranges.items())), condition, sifts, tells)

    def entries(self, axis: RangeKey | None, seed: int) -> Entries:
        """Returns the wants, by keys and the range on this axis."""
        joined = self.of
        owner = np.arange(self.first, self.first + len(joined.members))
        indexed = IndexedMembers(
            joined.members.astype(np.int32), joined.node_members.astype(np.int32), owner
        )
        number = 0 if axis is None else self.ranges[axis]
        return entries(joined.pick, indexed, list(self.keys.values()), number, seed)

    def follows(self, axis: RangeKey | None) -> tuple[Any, ...]:
        """All that its entries follow from."""
        number = 0 if axis is None else self.ranges[axis]
        joined = self.of
        return (
            joined.pick.members,
            self.first,
            joined.node_members.tobytes(),
            tuple(self.keys.values()),
            number,
        )

    def residual_predicates(self, seed: int, bits: Longs) -> ResidualPredicates:
        """Returns the owners whose conditions must be evaluated."""
        assert self.condition is not None, "a condition"
        finder = _finder([self], next(iter(self.ranges), None), seed)
        members = self.of.members
        member_bits = bits[self.first : self.first + len(members)]
        every = int(np.bitwise_or.reduce(member_bits, initial=0))
        return ResidualPredicates(
            self.of.pick,
            finder,
            self.condition,
            self.first,
            members,
            member_bits,
            every,
            self.tells,
        )


def _is_within(source: tuple[int, ...], way: tuple[int, ...]) -> bool:
    """Whether a pattern of which a key was lifted is at the end of a way or below."""
    return bool(source) and source[: len(way)] == way


def number_forms(node: PlanNode, shares: SharingDemand) -> Iterator[tuple[int, SharedJoinNode]]:
    """Yields the joins below picks, full nodes of picks first, each with the number of its first
    owner.
    """
    first = 0
    for one in sorted(shares.shared_joins.get(node.id, ()), key=lambda each: not each.pick.is_full):
        yield first, one
        first += len(one.members)


def count_owners(forms: Sequence[Form]) -> int:
    """How many owners there are."""
    return sum(len(form.of.members) for form in forms)


def owner_at(forms: Sequence[Form], number: int) -> At:
    """An owner by his number."""
    form = next(form for form in reversed(forms) if form.first <= number)
    return form.of.pick.id, int(form.of.members[number - form.first])


def group_predicates(forms: Sequence[Form], seed: int, bits: Longs) -> Iterator[PredicateGroup]:
    """Yields the owners that indexes decide, grouped by their slots; ``bits``: of their classes."""
    alike: dict[tuple[tuple[int, ...], tuple[RangeKey, ...], bool], list[Form]] = {}
    for form in forms:
        which = tuple(form.keys), tuple(form.ranges), form.of.pick.is_full
        alike.setdefault(which, []).append(form)
    for (_, ranges, _), group_forms in alike.items():
        finders = [_finder(group_forms, axis, seed) for axis in ranges or (None,)]
        yield PredicateGroup(
            tuple(finders), tuple([_masks(group_forms, finder, bits) for finder in finders])
        )


def _finder(forms: Sequence[Form], axis: RangeKey | None, seed: int) -> PredicateIndexReader:
    """Returns the index of equal forms, by the ranges on an axis. For full nodes the previous index
    is reused, if it has the same owners.
    """

    def build_reader() -> PredicateIndexReader:
        wants = Entries.concat([form.entries(axis, seed) for form in forms])
        return PredicateIndexReader.build(wants, list(forms[0].keys), axis)

    joined = forms[0].of
    if not joined.pick.is_full:
        return build_reader()
    place = f"{joined.node} {forms[0].side} {tuple(forms[0].keys)} {axis} {seed}"
    return joined.pick.compute_once_at(
        place, tuple([form.follows(axis) for form in forms]), build_reader
    )


def _masks(forms: Sequence[Form], finder: PredicateIndexReader, bits: Longs) -> tuple[Longs, Longs]:
    """Returns the bits of the owners of each leaf of a finder; reused for full nodes."""
    joined = forms[0].of
    if not joined.pick.is_full:
        return finder.owner_bits(bits)
    place = f"{joined.node} {forms[0].side} {finder.keys} {finder.axis} masks"
    follows = finder, bits[: forms[-1].first + len(forms[-1].of.members)].tobytes()
    return joined.pick.compute_once_at(place, follows, lambda: finder.owner_bits(bits))
