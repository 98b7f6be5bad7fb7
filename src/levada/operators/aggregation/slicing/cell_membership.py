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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools, Ints, Longs
from levada.core.frame import Frame
from levada.core.row_ranges import ranges
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.aggregation.slicing.cell_tree import Nodes
from levada.operators.aggregation.slicing.partial_aggregates import mix_words, sum_words
from levada.operators.rows.predicate_index import (
    Entries,
    Index,
    IndexedMembers,
    PredicateIndexReader,
    entries,
)
from levada.operators.rows.range_keys import Numbers, RangeKey
from levada.operators.rows.route_rows import key_of
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.slice_readers import Reader, Readers, window_numbers

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
    indexed = IndexedMembers(members, below, members.astype(np.int64))
    wants = entries(pick, indexed, range(len(pick.step.keys)), 0, seed)
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


# *Cells* of slices, where queries differ in conditions (STREAMREUSE, aggregates below relaxed
# selections; Krishnamurthy, Wu and Franklin, SIGMOD 2006, whose fragments carry signatures).
#
# The conditions of a pick's members are the entries of an index (``rows/predicate_index``): the
# terms of its keys, and an interval of numbers or texts each. A cell is a leaf of the index: all of
# its rows belong to the same members. So rows are folded by cell, once. In an index by numbers the
# tree over the leaves adds the cells up: each node is the sum of its two children, and a member
# wants the few nodes that together are its interval. For n rows that reach M members each, the cost
# is n and, for each slice of time, twice its cells and M log M partials; without cells it is n M.
#
# There are no cells (``None``) for a number that its double does not identify, for a condition on
# two variables, and for constants that the index cannot order. Rows are then picked one by one.


class IndexLeaves(NamedTuple):
    """The leaf of each row in an index; -1: no member wants it."""

    wanting: CellIndex
    leaf: Longs


@dataclass(frozen=True, eq=False, slots=True)
class CellIndex:
    """The wants of all picks through which readers read, and the number of owners of each leaf. The
    owners are members; those of a pick begin at a number (``first``).
    """

    finder: PredicateIndexReader
    owners: Longs
    first: Mapping[int, int]

    @staticmethod
    def build(readers: Readers, seed: int) -> CellIndex:
        """Worked out once."""
        assert readers.form is not None, "they read through picks"
        parts, first, number = [], dict[int, int](), 0
        for reader in readers.readers:
            pick = reader.pick
            if pick is None or pick.id in first:
                continue
            members = np.flatnonzero(pick.alive).astype(np.int32)
            below = pick.members.inputs[0][members]
            slots = [reader.way[0].edge.slots[key.slot] for key in pick.step.keys]
            keys = np.argsort(slots, kind="stable").tolist()
            indexed = IndexedMembers(members, below, members.astype(np.int64) + number)
            parts.append(entries(pick, indexed, keys, 0, seed))
            first[pick.id], number = number, number + len(pick.members)
        axis = next((RangeKey(*each) for each in readers.form.ranges), None)
        finder = PredicateIndexReader.build(Entries.concat(parts), readers.form.keys, axis)
        return CellIndex(finder, (finder.numbered or finder.plain).owners(), first)

    @property
    def index(self) -> Index:
        """Returns the index by numbers, if there is one."""
        return self.finder.numbered or self.finder.plain


def match_conditions(readers: Readers, rows: Frame, pool: TermLookup) -> IndexLeaves | None:
    """Returns the members that want these rows of a producer, or None if terms and one range alone
    do not decide it.
    """
    if readers.form is None or len(readers.form.ranges) > 1:
        return None
    if CellIndex not in readers.facts:
        readers.facts[CellIndex] = CellIndex.build(readers, pool.seed)
    wanting: CellIndex = readers.facts[CellIndex]
    by_number, by_key = wanting.finder.leaves(rows, pool)
    if wanting.finder.numbered is None:
        return IndexLeaves(wanting, by_key)
    if not wanting.index.is_decided.all() or (by_key >= 0).any():
        return None
    return IndexLeaves(wanting, by_number)


@dataclass(frozen=True, eq=False, slots=True)
class Cells:
    """The nodes that members want; ``owners``: (place, owner) pairs of the members that want
    them.
    """

    wanting: CellIndex
    nodes: Nodes
    owners: tuple[Longs, Longs]

    @staticmethod
    def ancestors_of(wanting: CellIndex, leaf: Longs, other_key: Longs) -> Cells:
        """Returns the ancestors of slices (see ``Nodes.over``)."""
        index = wanting.index
        nodes = Nodes.ancestors_of(index, leaf, other_key)
        first = index.offsets[nodes.nodes]
        counts = index.offsets[nodes.nodes + 1] - first
        owner = index.owner[index.of[ranges(first, counts)]]
        return Cells(wanting, nodes, (np.repeat(np.arange(len(nodes.nodes)), counts), owner))

    def member_nodes(self, reader: Reader) -> tuple[Longs, Ints]:
        """Returns (place, member of the reader's pick) for the nodes that each member wants."""
        assert reader.pick is not None, "it reads through a pick"
        place, owner = self.owners
        member = owner - self.wanting.first[reader.pick.id]
        is_member = (member >= 0) & (member < len(reader.pick.members))
        return place[is_member], member[is_member].astype(np.int32)
