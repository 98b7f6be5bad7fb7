"""Members that want slices in state, where the members of a GROUP BY differ in conditions on a
number: persistent cells.

A slice in state contains the columns that identify its cell: the key of its rows' terms and member,
and the number of one term. Its cell is looked up in the index of the *current* members (``Wants``).
A removed member no longer cuts cells, so cells merge. A new member begins after all slices in
state, so no slice has to be cut at its borders.

    mask    the windows in which a cell is wanted, by bits: a cell that only a short window wants
            is kept no longer than this window
    wish    the part of an index that a member wants; members with equal wants have equal wishes
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
from levada.plan.execution.slice_readers import Reader, window_numbers

_BITS = 62
"""Windows beyond so many have a bit in common: these are kept as long as the longest of them."""


@dataclass(frozen=True, eq=False, slots=True)
class Wants:
    """The index of the conditions of the current members. ``masks``: by leaf. ``bits``, ``wish``:
    by member of the GROUP BY. The wishes that contain node i are ``wishes[offsets[i] : offsets[i +
    1]]``.
    """

    index: Index
    masks: Longs
    bits: Longs
    wish: Longs
    offsets: Longs
    wishes: Longs

    def leaves(self, slices: Frame) -> Longs:
        """Returns the leaf of each slice; -1: no member wants it."""
        return self.index.leaves_of(slices[col.KEY], slices[col.CHECK], slices[col.VALUE])

    def select_wanted(self, slices: Frame) -> Frame:
        """Returns the slices that some member wants; their leaves and masks replace the columns
        that identify cells.
        """
        leaf = self.leaves(slices)
        mask = np.where(leaf < 0, 0, self.masks[leaf])
        return slices.with_(**{col.LEAF: leaf, col.WANTED: mask}).where(mask != 0)

    def is_wanted(self, masks: Longs, op: Ints) -> Bools:
        """Whether a member may want slices of such a mask."""
        is_wanted: Bools = (masks & self.bits[op]) != 0
        return is_wanted

    def above(self, nodes: Longs) -> tuple[Longs, Longs]:
        """Returns (place, wish): the wishes that contain these nodes."""
        first = self.offsets[nodes]
        counts = self.offsets[nodes + 1] - first
        return np.repeat(np.arange(len(nodes)), counts), self.wishes[ranges(first, counts)]


def wants_of(panes: PlanNode[s.Panes], pick: PlanNode[s.Pick], seed: int) -> Wants:
    """Returns the wants of the members of a GROUP BY through a pick. They are computed once for all
    plan versions with the same members and pick.
    """
    place = f"wants {pick.id} {seed}"
    return panes.compute_once_at(place, (pick.members,), lambda: _find_wants(panes, pick, seed))


def cells_of(reader: Reader, rows: Frame, at: Longs) -> Frame:
    """Returns the columns that identify the cells of a producer's rows, as slices in state contain
    them.
    """
    assert reader.pick is not None, "it reads through a pick"
    step, slots = reader.pick.step, reader.way[0].edge.slots
    keys, number = [slots[key.slot] for key in step.keys], slots[step.tests[0].slot]
    names = [name(i) for i in keys for name in (col.x, col.y)]
    names += [name(number) for name in (col.kind, col.double, col.mantissa, col.scale)]
    rows = rows.select(["op", *(name for name in names if name in rows)]).take(at)
    key, check = key_of(rows, keys)
    columns = {col.KEY: key, col.CHECK: check, col.VALUE: Numbers.from_slot(rows, number).d}
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
    bits[living] = np.int64(1) << np.minimum(window_numbers(panes)[living], _BITS)
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
