"""Who wants slices in state, where what the members of a GROUP BY differ in are conditions on a
number: cells (``cells``) that stay.

A slice in state says what its cell is told by: the key of its rows' terms and member, and the
number of one of them. So its cell is looked up in the index of those who are there *now*
(``Wants``): whoever has gone cuts nothing any more, and cells grow together; whoever has come
begins after all that is in state, so that nothing there has to be cut at his borders.

    mask    the windows in which a cell is wanted, by bits: a cell that a short window alone wants
            is kept no longer than this one
    wish    what of an index a member wants; members that want the same have the same
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools, Ints, Longs
from levada.core.frame import Frame
from levada.core.row_ranges import ranges
from levada.kernels.keyed.hash_groups import group
from levada.operators.aggregation.slicing.partial_aggregates import mix_words, sum_words
from levada.operators.rows.predicate_index import Index, IndexedMembers, entries
from levada.operators.rows.range_keys import Numbers
from levada.operators.rows.route_rows import key_of
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.slice_readers import Reader, windows_of

_BITS = 62
"""Windows beyond so many have a bit in common: these are kept as long as the longest of them."""


@dataclass(frozen=True, eq=False, slots=True)
class Wants:
    """The index of the conditions of those who are there. ``masks``: of each leaf; ``bits``,
    ``wish``: of each member of the GROUP BY. The wishes that have node i are ``wishes[offsets[i] :
    offsets[i + 1]]``.
    """

    index: Index
    masks: Longs
    bits: Longs
    wish: Longs
    offsets: Longs
    wishes: Longs

    def leaves(self, slices: Frame) -> Longs:
        """The leaf of each slice, -1: nobody wants it."""
        return self.index.leaves_of(slices[col.KEY], slices[col.CHECK], slices[col.VALUE])

    def select_wanted(self, slices: Frame) -> Frame:
        """The slices that somebody wants, with their leaves and masks instead of what tells
        these.
        """
        leaf = self.leaves(slices)
        mask = np.where(leaf < 0, 0, self.masks[leaf])
        return slices.with_(**{col.LEAF: leaf, col.WANTED: mask}).where(mask != 0)

    def is_wanted(self, masks: Longs, op: Ints) -> Bools:
        """Whether a member may want slices of such a mask."""
        is_wanted: Bools = (masks & self.bits[op]) != 0
        return is_wanted

    def above(self, nodes: Longs) -> tuple[Longs, Longs]:
        """(place, wish): which of these nodes are of which wishes."""
        first = self.offsets[nodes]
        counts = self.offsets[nodes + 1] - first
        return np.repeat(np.arange(len(nodes)), counts), self.wishes[ranges(first, counts)]


def wants_of(panes: PlanNode[s.Panes], pick: PlanNode[s.Pick], seed: int) -> Wants:
    """What the members of a GROUP BY want through a pick, worked out once for all versions of the
    plan that have the same of both.
    """
    place = f"wants {pick.id} {seed}"
    return panes.kept(place, (pick.members,), lambda: _find_wants(panes, pick, seed))


def cells_of(reader: Reader, rows: Frame, at: Longs) -> Frame:
    """What the cells of a producer's rows are told by, as slices in state say it."""
    assert reader.pick is not None, "it reads through a pick"
    step, slots = reader.pick.step, reader.way[0].edge.slots
    keys, number = [slots[key.slot] for key in step.keys], slots[step.tests[0].slot]
    names = [name(i) for i in keys for name in (col.x, col.y)]
    names += [name(number) for name in (col.kind, col.double, col.mantissa, col.scale)]
    rows = rows.select(["op", *(name for name in names if name in rows)]).take(at)
    key, check = key_of(rows, keys)
    columns = {col.KEY: key, col.CHECK: check, col.VALUE: Numbers.at(rows, number).d}
    return Frame(columns, rows.n)


def _find_wants(panes: PlanNode[s.Panes], pick: PlanNode[s.Pick], seed: int) -> Wants:
    living = np.flatnonzero(panes.alive)
    read = np.zeros(len(panes.members), np.int64)
    read[living] = panes.members.inputs[0][living]
    members = np.unique(read[living]).astype(np.int32)
    below = pick.members.inputs[0][members]
    asked = IndexedMembers(members, below, members.astype(np.int64))
    wants = entries(pick, asked, range(len(pick.step.keys)), 0, seed)
    index = Index.build(wants, by_number=True)
    bits = np.zeros(len(panes.members), np.int64)
    bits[living] = np.int64(1) << np.minimum(windows_of(panes)[living], _BITS)
    masks = np.zeros(len(pick.members), np.int64)
    np.bitwise_or.at(masks, read[living], bits[living])
    wish, offsets, wishes = _wishes(index, len(pick.members))
    return Wants(index, index.owner_bits(masks), bits, wish[read], offsets, wishes)


def _wishes(index: Index, owners: int) -> tuple[Longs, Longs, Longs]:
    """The wish of each owner; the wishes that have each node, and where these begin."""
    width = 2 * index.size
    node = np.repeat(np.arange(width), np.diff(index.offsets))
    owner, node = np.divmod(np.unique(index.owner[index.of] * width + node), width)
    words = mix_words(node.view(np.uint64), np.zeros(len(node), np.uint64))
    wish, first = group(*(sum_words(owner, owners, half) for half in words))
    mine = np.flatnonzero(first[wish[owner]] == owner)
    order = mine[np.argsort(node[mine], kind="stable")]
    offsets = np.searchsorted(node[order], np.arange(width + 1))
    return wish.astype(np.int64), offsets, wish[owner[order]].astype(np.int64)
