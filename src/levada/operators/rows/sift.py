"""The rows of an input of a relaxed join that some pick above it wants, and how long one does.

A row that no pick wants goes no further than to where its join is known: it is neither moved nor
kept. One that is wanted is kept until it has left the windows of all that want *it*, and not those
of others: rows of one constant over a month beside all others over seconds are kept no longer for
that (STREAMREUSE, minimal relaxation; CQELS Cloud keeps the longest window for all).

Of several ranges below one input each is looked at by itself, so a row may stay that satisfies
another query's condition in each, and no query's in all. Of more than ``CLASSES`` different windows
those that are about as long count as the longest of them.

Cost: a look-up and a search for each row and range; for ends a step more for each class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from levada.errors import ExcessError
from levada.kernels.time.interval import Params, leave
from levada.model import columns as col
from levada.model.arrays import Bools, Longs
from levada.model.frame import Frame
from levada.model.limits import QueryLimits
from levada.model.time import MAX, MIN, Times, Window
from levada.operators.excess import most_of
from levada.operators.rows.wanting import Asked, Entries, Finder, entries
from levada.plan.sealed import steps as s
from levada.plan.sealed.plan import PlanNode
from levada.plan.sealed.shares import At, Shares, longest

CLASSES = 48
Relaxed = s.Join | s.Occur


class Wanted(NamedTuple):
    """Who wants what of an input: the finders of its ranges, and of each leaf of theirs the classes
    of windows that its owners have. ``mixed``: members whose picks have several.
    """

    finders: tuple[Finder, ...]
    masks: tuple[tuple[Longs, Longs], ...]
    classes: tuple[Params, ...]
    mixed: Bools
    owners: tuple[At, ...]


def sifted(node: PlanNode[Relaxed], i: int, rows: Frame, shares: Shares, seed: int) -> Frame:
    """The rows of input ``i`` that some pick wants."""
    wanted = node.known(_wanted, i, shares, seed)
    keep = np.ones(rows.n, np.bool_)
    for finder, masks in zip(wanted.finders, wanted.masks, strict=True):
        keep &= _bits(finder, masks, rows) != 0
    return rows.where(keep)


def ends(
    node: PlanNode[Relaxed], i: int, rows: Frame, end: Times, *, shares: Shares, seed: int
) -> Times:  # fmt: skip
    """When rows of input ``i``, which end by then, have left the windows of all that want them."""
    wanted = node.known(_wanted, i, shares, seed)
    several = np.flatnonzero(wanted.mixed[rows["op"]])
    if not len(several):
        return end
    some = rows.take(several)
    left = np.full(some.n, MAX, np.int64)
    for finder, masks in zip(wanted.finders, wanted.masks, strict=True):
        bits = _bits(finder, masks, some)
        one = np.full(some.n, MIN, np.int64)
        for number, params in enumerate(wanted.classes):
            at = np.flatnonzero(bits >> number & 1)
            if len(at):
                one[at] = np.maximum(one[at], _left(params, some, at))
        np.minimum(left, one, out=left)
    out = end.copy()
    out[several] = np.minimum(end[several], left)
    return out


def blame(
    node: PlanNode[Relaxed], rows: Frame, limits: QueryLimits, *, shares: Shares, seed: int
) -> ExcessError:  # fmt: skip
    """The error of the pick that wants most of these rows of input 0, which are too many."""
    wanted = node.known(_wanted, 0, shares, seed)
    _, owner, _ = wanted.finders[0].found(rows)
    counts = np.bincount(owner, minlength=len(wanted.owners))
    number, member = wanted.owners[int(counts.argmax())]
    error = most_of(node, np.bincount(rows["op"]), limits)
    error.node, error.member = number, member
    return error


def _left(params: Params, rows: Frame, at: Longs) -> Times:
    """When these rows leave the windows of one class."""
    found = np.full(len(at), MAX, np.int64)
    for j in range(len(params.kind)):
        lo = rows[col.least(j)][at]
        of = np.full(len(at), j, np.int32)
        np.minimum(found, leave(*params, of, lo), out=found)
    return found


def _bits(finder: Finder, masks: tuple[Longs, Longs], rows: Frame) -> Longs:
    """The classes of those that want each row; 0: nobody does."""
    found = np.zeros(rows.n, np.int64)
    for leaves, of in zip(finder.leaves(rows), masks, strict=True):
        there = leaves >= 0
        if there.any():
            found[there] |= of[leaves[there]]
    return found


def _wanted(node: PlanNode[Relaxed], i: int, shares: Shares, seed: int) -> Wanted:
    """What the living picks want of input ``i``."""
    side = node.step.sides[i]
    members = np.flatnonzero(node.alive).tolist()
    pairs = [(own, at) for own in members for at in shares.above.get((node.id, own), ())]
    places = [node.step.places[k] for k, pair in enumerate(node.step.windows) if pair[i] >= 0]
    order = np.argsort([pair[i] for pair in node.step.windows if pair[i] >= 0])
    picks = shares.plan.nodes
    windows = [
        tuple([picks[at[0]].members[at[1]].windows[places[k]] for k in order]) for _, at in pairs
    ]
    of_class, classes = _classes(windows)
    mixed = np.zeros(len(node.members), np.bool_)
    for own in members:
        mixed[own] = len({w for (m, _), w in zip(pairs, windows, strict=True) if m == own}) > 1
    finders = []
    for number, slot in side.ranges or ((0, None),):
        wants = _entries(shares, pairs, [key for key, _ in side.keys], number, seed)
        finders.append(Finder.of(wants, [at for _, at in side.keys], slot))
    bits = np.left_shift(1, of_class)
    masks = tuple([finder.spread(bits) for finder in finders])
    return Wanted(
        tuple(finders), masks, tuple(map(Params.of, classes)), mixed, tuple([at for _, at in pairs])
    )


def _entries(
    shares: Shares, pairs: Sequence[tuple[int, At]], keys: Sequence[int], number: int, seed: int
) -> Entries:
    """What the picks of these pairs want, by their places in the sequence."""
    parts = []
    for pick in dict.fromkeys(at[0] for _, at in pairs):
        own = [(k, op, at[1]) for k, (op, at) in enumerate(pairs) if at[0] == pick]
        owner, op, members = (np.array(column) for column in zip(*own, strict=True))
        node = shares.plan.nodes[pick].of(s.Pick)
        assert node is not None, "a pick"
        asked = Asked(members.astype(np.int32), op.astype(np.int32), owner.astype(np.int64))
        parts.append(entries(node, asked, keys, number, seed))
    return Entries.together(parts)


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
