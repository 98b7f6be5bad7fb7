"""The rows of an input of a relaxed join that some pick above it wants, and how long one does.

A row that no pick wants goes no further than to where its join is known: it is neither moved nor
kept. One that is wanted is kept until it has left the windows of all that want *it*, and not those
of others: rows of one constant over a month beside all others over seconds are kept no longer for
that (STREAMREUSE, minimal relaxation; CQELS Cloud keeps the longest window for all).

Who tells rows by the same slots has one index (``Told``). Of several ranges below one input each is
looked at by itself, so a row may stay that satisfies another query's condition in each, and no
query's in all. Who has conditions that no index tells is asked, but only of rows that nobody else
wants as long (``asking``). Of more than ``CLASSES`` different windows those that are about as long
count as the longest of them.

Cost: a look-up and a search for each row, range and set of slots; for ends a step more for each
class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from levada.errors import ExcessError
from levada.kernels.time.interval import Params, leave
from levada.model import columns as col
from levada.model.arrays import Bools, Longs
from levada.model.expression import Expression, both, variables
from levada.model.frame import Frame
from levada.model.limits import QueryLimits
from levada.model.time import MAX, MIN, Times, Window, WindowKind
from levada.operators.excess import most_of
from levada.operators.rows.asking import Asking, by_other_slots
from levada.operators.rows.told import lists
from levada.operators.rows.told.bounds import Axis
from levada.operators.rows.wanting import Asked, Entries, Finder, entries
from levada.plan.sealed import steps as s
from levada.plan.sealed.plan import At, PlanNode
from levada.plan.sealed.relaxed.standing import Standing
from levada.plan.sealed.shares import Shares, longest
from levada.terms.term_pool import Pool
from levada.windows import numbers

CLASSES = 48
Relaxed = s.Join | s.Occur | s.RelaxedStream | s.RelaxedStatic


class Told(NamedTuple):
    """Those who tell rows by the same slots: the finders of their ranges, and of each leaf the
    classes of windows that its owners have.
    """

    finders: tuple[Finder, ...]
    masks: tuple[tuple[Longs, Longs], ...]

    def bits(self, rows: Frame, pool: Pool) -> Longs:
        """The classes of those that want each row; 0: nobody does."""
        found = np.full(rows.n, -1, np.int64)
        for finder, masks in zip(self.finders, self.masks, strict=True):
            own = np.zeros(rows.n, np.int64)
            for leaves, of in zip(finder.leaves(rows, pool), masks, strict=True):
                there = leaves >= 0
                if there.any():
                    own[there] |= of[leaves[there]]
            found &= own
        return found


class Wanted(NamedTuple):
    """Who wants what of an input: by indexes, by conditions that are asked. ``sift``: rows come
    that nobody wants. ``mixed``: members whose picks have several classes of windows.
    """

    told: tuple[Told, ...]
    asked: tuple[Asking, ...]
    sift: bool
    classes: tuple[Params, ...]
    mixed: Bools
    owners: tuple[At, ...]

    def bits(self, rows: Frame, pool: Pool, *, all_of: bool) -> Longs:
        """The classes of those that want each row; not ``all_of``: 0 if nobody does, else some."""
        found = np.zeros(rows.n, np.int64)
        for told in self.told:
            found |= told.bits(rows, pool)
        for asking in self.asked:
            asking.add(found, rows, pool, all_of=all_of)
        return found

    def counts(self, rows: Frame, pool: Pool) -> Longs:
        """How many of these rows each owner wants, as far as indexes tell."""
        found = np.zeros(len(self.owners), np.int64)
        for finder in (*(told.finders[0] for told in self.told), *(a.finder for a in self.asked)):
            _, owner, _ = finder.found(rows, pool)
            found += np.bincount(owner, minlength=len(found))
        return found


def sifted(node: PlanNode[Relaxed], i: int, rows: Frame, shares: Shares, pool: Pool) -> Frame:
    """The rows of input ``i`` that some pick wants; static ones all, unless they come again for a
    newcomer. Raises ``ExcessError``.
    """
    comes_again = isinstance(node.step, s.RelaxedStatic)
    if not rows.n or not (node.input_layouts[i].windows or comes_again):
        return rows
    found = wanted(node, i, rows, shares, pool)
    return rows if found is None else rows.where(found)


def wanted(
    node: PlanNode[Relaxed], i: int, rows: Frame, shares: Shares, pool: Pool
) -> Bools | None:  # fmt: skip
    """Which rows of input ``i`` some pick wants, static ones, too; None: all. Of static rows that
    are kept for several joins (``i`` is 1) as far as what is kept tells. Raises ``ExcessError``.
    """
    told = node.known(_wanted, i, shares, pool.seed)
    return told.bits(rows, pool, all_of=False) != 0 if told.sift else None


def ends(
    node: PlanNode[Relaxed], i: int, rows: Frame, end: Times, *, shares: Shares, pool: Pool
) -> Times:  # fmt: skip
    """When rows of input ``i``, which end by then, have left the windows of all that want them.
    Raises ``ExcessError``.
    """
    if not node.input_layouts[i].windows:
        return end
    wanted = node.known(_wanted, i, shares, pool.seed)
    several = np.flatnonzero(wanted.mixed[rows["op"]])
    if not len(several):
        return end
    some = rows.take(several)
    bits, left = wanted.bits(some, pool, all_of=True), np.full(some.n, MIN, np.int64)
    for number, params in enumerate(wanted.classes):
        at = np.flatnonzero(bits >> number & 1)
        if len(at):
            left[at] = np.maximum(left[at], _left(params, some, at))
    out = end.copy()
    out[several] = np.minimum(end[several], left)
    return out


def left(
    node: PlanNode[Relaxed], i: int, rows: Frame, end: Times, *, shares: Shares, pool: Pool
) -> Times:  # fmt: skip
    """The same of rows that are kept for others, too: what nobody wants here has always left.
    Raises ``ExcessError``.
    """
    wanted = node.known(_wanted, i, shares, pool.seed)
    if wanted.sift and rows.n:
        end = np.where(wanted.bits(rows, pool, all_of=False) != 0, end, MIN)
    return ends(node, i, rows, end, shares=shares, pool=pool)


def wants_less(node: PlanNode[Relaxed], i: int, shares: Shares, seed: int) -> bool:
    """Whether not all rows of input ``i`` are wanted, or not all as long."""
    wanted = node.known(_wanted, i, shares, seed)
    return wanted.sift or bool(wanted.mixed.any())


def blame(
    node: PlanNode[Relaxed], i: int, rows: Frame, limits: QueryLimits, *, shares: Shares, pool: Pool
) -> ExcessError:  # fmt: skip
    """The error of the pick that wants most of these rows of input ``i``, which are too many."""
    wanted = node.known(_wanted, i, shares, pool.seed)
    number, member = wanted.owners[int(wanted.counts(rows, pool).argmax())]
    error = most_of(node, np.bincount(rows["op"]), limits)
    error.node, error.member = number, member
    return error


def _left(params: Params, rows: Frame, at: Longs) -> Times:
    """When these rows leave the windows of one class."""
    found = np.full(len(at), MAX, np.int64)
    for j in range(len(params.kind)):
        lo = rows[col.least(j)][at]
        of = np.full(len(at), j, np.int32)
        of_number = params.kind[j] == WindowKind.NUMBERS
        own = numbers.left(int(params.range[j]), lo) if of_number else leave(*params, of, lo)
        np.minimum(found, own, out=found)
    return found


def _wanted(node: PlanNode[Relaxed], i: int, shares: Shares, seed: int) -> Wanted:
    """What the living picks want of input ``i``."""
    forms = [Form.of_side(one, i, k) for k, one in _numbered(node, shares)]
    owners = [
        (f.of.pick.id, m) for f in forms for m in f.of.members.tolist()
    ]  # in the order of their numbers
    windows = [
        tuple([own[place] for place in f.of.sides[i].places])
        for f in forms
        for own in map(f.of.pick.members.windows_at, f.of.members.tolist())
    ]
    of_class, classes = _classes(windows)
    bits = np.left_shift(1, of_class)
    return Wanted(
        tuple(told_by([form for form in forms if form.condition is None], seed, bits)),
        tuple([form.asking(seed, bits) for form in forms if form.condition is not None]),
        any(form.sifts for form in forms) and not _whole(node, forms),
        tuple(map(Params.of, classes)),
        _mixed(node, forms, of_class, windows),
        tuple(owners),
    )


def _numbered(node: PlanNode[Relaxed], shares: Shares) -> Iterator[tuple[int, Standing]]:
    """Where a node stands, each with the number of its first owner."""
    first = 0
    for one in shares.standing.get(node.id, ()):
        yield first, one
        first += len(one.members)


def _whole(node: PlanNode[Relaxed], forms: Sequence[Form]) -> bool:
    """Whether of each member somebody wants all rows."""
    all_ = [form.of.own for form in forms if not (form.keys or form.ranges or form.condition)]
    return bool(np.isin(np.flatnonzero(node.alive), np.concatenate([[], *all_])).all())


def _mixed(
    node: PlanNode[Relaxed], forms: Sequence[Form], of_class: Longs,
    windows: Sequence[tuple[Window, ...]],
) -> Bools:  # fmt: skip
    """Members of a join whose picks have several classes, but for those of which somebody wants all
    rows, as long as anybody.
    """
    found = np.zeros(len(node.members), np.bool_)
    own = np.concatenate([np.empty(0, np.int64), *(form.of.own for form in forms)])
    pairs = np.unique(np.stack([own, of_class]), axis=1)
    found[np.flatnonzero(np.bincount(pairs[0], minlength=len(found)) > 1)] = True
    if not found.any() or not windows[0]:
        return found
    stays = np.array([[window.stays for window in each] for each in windows], np.int64)
    most = np.full((len(found), stays.shape[1]), MIN, np.int64)
    np.maximum.at(most, own.astype(np.int64), stays)
    whole = [not (f.keys or f.ranges or f.condition) for f in forms for _ in f.of.members]
    lasting = np.array(whole, np.bool_) & (stays >= most[own.astype(np.int64)]).all(axis=1)
    found[own[lasting].astype(np.int64)] = False
    return found


def told_by(forms: Sequence[Form], seed: int, bits: Longs) -> Iterator[Told]:
    """Those whom indexes tell, by the slots by which they are told; ``bits``: of their classes."""
    alike: dict[tuple[tuple[int, ...], tuple[Axis, ...]], list[Form]] = {}
    for form in forms:
        alike.setdefault((tuple(form.keys), tuple(form.ranges)), []).append(form)
    for (keys, ranges), own in alike.items():
        finders = [
            Finder.of(Entries.together([form.entries(axis, seed) for form in own]), keys, axis)
            for axis in ranges or (None,)
        ]
        yield Told(tuple(finders), tuple([finder.spread(bits) for finder in finders]))


@dataclass(frozen=True, eq=False, slots=True)
class Form:
    """By which slots of an input what picks want can be told there: the keys and ranges of the
    picks by slots and axes, in their order; a condition that must be asked, if there is one.
    ``first``: the number of the first owner. ``sifts``: what comes is not all wanted. ``tells``:
    the condition is a list, of which an index is sure.
    """

    of: Standing
    first: int
    keys: dict[int, int]
    ranges: dict[Axis, int]
    condition: Expression | None
    sifts: bool
    tells: bool

    @staticmethod
    def of_side(one: Standing, i: int, first: int) -> Form:
        """That of a join as it stands below picks."""
        step, (slots, way, _, alone) = one.pick.step, one.sides[i]
        keys = [(slots[key.slot], n, key) for n, key in enumerate(step.keys) if key.slot in slots]
        tests = [test for test in step.tests if test.slot in slots]
        ranges = {Axis(slots[test.slot], test.order): test.range for test in tests}
        parts = [i for i, each in enumerate(step.rest) if {*map(int, variables(each))} <= {*slots}]
        rest = [step.rest[i] for i in parts]
        patterns = {key.source[:-1] for _, _, key in keys if _within(key.source, way)}
        told = {slot for slot, _, key in keys}
        sifts = bool(ranges or rest) or (len(patterns) > 1 and len(told) > 1)
        sifts = sifts or any(not key.source for _, _, key in keys) or bool(patterns and not alone)
        condition, tells = None, False
        if rest:
            number = lists.list_of(one.pick, parts)
            if number is not None:
                axis = lists.axis_of(one.pick, number)
                ranges = {axis._replace(slot=slots[axis.slot]): number}
            tells = number is not None and len(rest) == 1 and not tests
            every = cast(Expression, both((*(test.condition for test in tests), *rest)))
            condition = by_other_slots(every, slots)
        by_slot = {slot: n for slot, n, _ in sorted(keys, key=lambda each: each[0])}
        return Form(one, first, by_slot, dict(sorted(ranges.items())), condition, sifts, tells)

    def entries(self, axis: Axis | None, seed: int) -> Entries:
        """What is wanted, by keys and the range on this axis."""
        own = self.of
        owner = np.arange(self.first, self.first + len(own.members))
        asked = Asked(own.members.astype(np.int32), own.own.astype(np.int32), owner)
        number = 0 if axis is None else self.ranges[axis]
        return entries(own.pick, asked, list(self.keys.values()), number, seed)

    def asking(self, seed: int, bits: Longs) -> Asking:
        """Those who must be asked."""
        assert self.condition is not None, "a condition"
        axis = next(iter(self.ranges), None)
        finder = Finder.of(self.entries(axis, seed), list(self.keys), axis)
        members = self.of.members
        own = bits[self.first : self.first + len(members)]
        every = int(np.bitwise_or.reduce(own, initial=0))
        return Asking(
            self.of.pick, finder, self.condition, self.first, members, own, every, self.tells
        )


def _within(source: tuple[int, ...], way: tuple[int, ...]) -> bool:
    """Whether a pattern of which a key was lifted is at the end of a way or below."""
    return bool(source) and source[: len(way)] == way


def _classes(
    windows: Sequence[tuple[Window, ...]],
) -> tuple[Longs, list[tuple[Window, ...]]]:
    """The class of each, and the windows of each class, which rows leave last."""
    distinct = sorted(set(windows), key=lambda of: [(w.stays, str(w)) for w in of])
    chunks = np.array_split(np.arange(len(distinct)), min(CLASSES, max(len(distinct), 1)))
    number = {distinct[i]: k for k, chunk in enumerate(chunks) for i in chunk}
    classes = [
        tuple([longest(set(column)) for column in zip(*(distinct[i] for i in chunk), strict=True)])
        for chunk in chunks
    ]
    return np.array([number[of] for of in windows], np.int64), classes
