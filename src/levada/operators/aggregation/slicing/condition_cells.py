"""*Cells* of slices, where queries differ in conditions (STREAMREUSE, aggregates below relaxed
selections; Krishnamurthy, Wu and Franklin, SIGMOD 2006, whose fragments carry signatures).

The conditions of a pick's members are the entries of an index (``rows/predicate_index``): the terms
of its keys, and an interval of numbers or texts each. A cell is a leaf of the index: all of its
rows belong to the same members. So rows are folded by cell, once. In an index by numbers the tree
over the leaves adds the cells up: each node is the sum of its two children, and a member wants the
few nodes that together are its interval. For n rows that reach M members each, the cost is n and,
for each slice of time, twice its cells and M log M partials; without cells it is n M.

There are no cells (``None``) for a number that its double does not identify, for a condition on two
variables, and for constants that the index cannot order. Rows are then picked one by one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from levada.core.array_types import Ints, Longs
from levada.core.frame import Frame
from levada.core.row_ranges import ranges
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.aggregation.slicing.cell_tree import Nodes
from levada.operators.rows.predicate_index import (
    Entries,
    Index,
    IndexedMembers,
    PredicateIndexReader,
    entries,
)
from levada.operators.rows.range_keys import RangeKey
from levada.plan.execution.slice_readers import Reader, Readers


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
            asked = IndexedMembers(members, below, members.astype(np.int64) + number)
            parts.append(entries(pick, asked, keys, 0, seed))
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
    def ancestors_of(wanting: CellIndex, leaf: Longs, beside: Longs) -> Cells:
        """Returns the ancestors of slices (see ``Nodes.over``)."""
        index = wanting.index
        nodes = Nodes.ancestors_of(index, leaf, beside)
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
