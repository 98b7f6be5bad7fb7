"""Finds the members that want a row: their keys by a table, their ranges by segments.

Each *entry* contains the terms of some keys and an interval of numbers that one owner wants.
Intervals of equal keys are cut at all their borders into segments. A tree over the segments holds
each entry at a logarithm of places, so that a row finds its owners by a look-up, a search, and a
step for each level, however many owners there are and however their intervals overlap (a segment
tree, by columns).

For rows and constants that are not exact points and intervals (``range_keys``) every owner of the
keys is found: the caller evaluates the conditions themselves.

Cost: building n log n; a row some 100 ns and its matches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
import polars as pl

from levada.core import column_names as col
from levada.core.array_types import Bools, Doubles, Ints, Longs, Words
from levada.core.expressions import Call, Expression, Var, variables
from levada.core.frame import Column, Frame
from levada.core.row_ranges import ranges
from levada.core.size_thresholds import register
from levada.errors import ExcessError
from levada.kernels.keyed.hash_groups import find, group, table_of
from levada.kernels.terms.term_ids import identify
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.expressions import truth
from levada.operators.rows.filter_extend import PIECE, parameters, scope
from levada.operators.rows.list_keys import wanted_of
from levada.operators.rows.range_keys import END, Bounds, RangeKey
from levada.operators.rows.route_rows import key_of
from levada.operators.rows.term_columns import by_value
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode


class Entries(NamedTuple):
    """The wants of owners: member, keys, numbers."""

    op: Ints
    keys: tuple[tuple[Words, Words], ...]
    bounds: Bounds
    owner: Longs

    @staticmethod
    def concat(parts: Sequence[Entries]) -> Entries:
        """Concatenates entries."""
        if len(parts) == 1:
            return parts[0]
        keys = [
            (np.concatenate([x for x, _ in of]), np.concatenate([y for _, y in of]))
            for of in zip(*(part.keys for part in parts), strict=True)
        ]
        return Entries(
            np.concatenate([part.op for part in parts]),
            tuple(keys),
            Bounds.concat([part.bounds for part in parts]),
            np.concatenate([part.owner for part in parts]),
        )


class IndexedMembers(NamedTuple):
    """Members of a pick, the members of the operator whose rows they want, and their owners'
    numbers.
    """

    members: Ints
    op: Ints
    owner: Longs


def entries(
    node: PlanNode[s.Pick], readers: IndexedMembers, keys: Sequence[int], number: int, seed: int
) -> Entries:
    """Returns the wants of members of a pick, by these of its keys and a range or a list."""
    known = node.compute_once(identities, seed)
    bounds, whose = wanted_of(node, number, readers.members)
    if number < 0:
        readers = IndexedMembers(readers.members[whose], readers.op[whose], readers.owner[whose])
    parts = []
    for params in product(*(node.step.keys[key].params for key in keys)):
        terms = tuple(
            [(known[i][0][readers.members], known[i][1][readers.members]) for i in params]
        )
        parts.append(Entries(readers.op, terms, bounds, readers.owner))
    return Entries.concat(parts)


def identities(node: PlanNode[s.Pick], seed: int) -> dict[int, tuple[Words, Words]]:
    """The identities of the members' terms, by parameter: of columns of tuples by their values, as
    their rows have them, else of their texts.
    """
    by_parameter = {}
    for key in node.step.keys:
        for i in key.params:
            if node.step.tuples and not key.source:
                constants = node.compute_once(parameters)[i]
                by_parameter[i] = by_value(constants, seed, partial(identify, seed=seed))
                continue
            texts = [str(constants[i]) for constants in node.members.each_constants()]
            by_parameter[i] = identify(pl.Series(texts, dtype=pl.String), seed)
    return by_parameter


class ProbeBatch(NamedTuple):
    """The matches of a row from the ``low``-th to before the ``high``-th."""

    low: int
    high: int


@dataclass(frozen=True, eq=False, slots=True)
class Index:
    """Entries by keys and segments. The places of a group of equal keys lie between two ``cuts``;
    ``width`` is how many there can be. The tree has ``size`` leaves; node i has the entries
    ``of[offsets[i] : offsets[i + 1]]``.
    """

    k: Words
    h: Words
    slots: Ints
    borders: Doubles
    width: int
    cuts: Longs
    size: int
    offsets: Longs
    of: Longs
    owner: Longs
    is_decided: Bools

    @staticmethod
    def build(wants: Entries, *, by_number: bool) -> Index:
        """Builds the index of these entries; ``by_number``: also by their intervals."""
        columns: dict[str, Column] = {"op": wants.op}
        for i, (x, y) in enumerate(wants.keys):
            columns[col.x(i)], columns[col.y(i)] = x, y
        n = len(wants.op)
        k, h = key_of(Frame(columns, n), range(len(wants.keys)))
        codes, first = group(k, h)
        k, h = k[first], h[first]
        borders = _borders(wants.bounds) if by_number else np.empty(0)
        width = 2 * len(borders) + 1
        start = codes.astype(np.int64) * width
        whole = np.zeros(n, np.int64), np.ones(n, np.int64)
        a, b = _places(wants.bounds, borders) if by_number else whole
        there = _distinct_intervals(wants.owner, start + a, start + b)
        left, right = (start + a)[there], (start + b)[there]
        cuts = np.unique(np.concatenate([np.arange(len(first)) * width, left, right]))
        size = 1 << len(cuts).bit_length()
        nodes, of = _canonical(np.searchsorted(cuts, left), np.searchsorted(cuts, right), size)
        order = np.argsort(nodes, kind="stable")
        offsets = np.zeros(2 * size + 1, np.int64)
        np.cumsum(np.bincount(nodes, minlength=2 * size), out=offsets[1:])
        return Index(
            k, h, table_of(k, h), borders, width, cuts, size, offsets, there[of[order]],
            wants.owner, wants.bounds.is_decided,
        )  # fmt: skip

    def leaves(self, frame: Frame, keys: Sequence[int], d: Doubles | None) -> Longs:
        """Returns the leaf of each row by these slots and its number; -1: no owner wants such a
        key.
        """
        return self.leaves_of(*key_of(frame, keys), d)

    def leaves_of(self, k: Words, h: Words, d: Doubles | None) -> Longs:
        """The same by the keys of members and slots (``key_of``)."""
        if len(k) and (k == k[0]).all() and (h == h[0]).all():
            code = np.full(len(k), find(self.slots, self.k, self.h, k[:1], h[:1])[0], np.int64)
        else:
            code = find(self.slots, self.k, self.h, k, h).astype(np.int64)
        if self.width == 1:
            return code  # without numbers each group of keys is a leaf, and has all its entries
        at = code * self.width
        if d is not None:
            d = np.where(np.isinf(d), np.copysign(END, d), d)
            left = np.searchsorted(self.borders, d, "left")
            there = np.append(self.borders, np.nan)[left] == d
            at += 2 * left + there
        return np.where(code < 0, -1, self._leaves_at(at))

    def _leaves_at(self, places: Longs) -> Longs:
        """The leaf at each place; of many of few places each is looked for once."""
        every = self.width * len(self.k)
        if not 0 < every <= len(places):
            return np.searchsorted(self.cuts, places, "right") - 1
        leaf: Longs = np.searchsorted(self.cuts, np.arange(every), "right") - 1
        return leaf[places]

    def find_entries(self, leaves: Longs, turns: ProbeBatch | None = None) -> tuple[Longs, Longs]:
        """Returns (row, entry) of all entries that want the rows at these leaves, by rows; for each
        row the entries of these ``turns`` (None: all).
        """
        rows, at = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        here = np.flatnonzero(leaves >= 0)
        nodes, counted_entries = leaves[here] + self.size, np.zeros(len(here), np.int64)
        while len(nodes) and nodes[0]:
            first = self.offsets[nodes]
            every = counts = self.offsets[nodes + 1] - first
            if turns is not None:
                low, high = (np.clip(turn - counted_entries, 0, every) for turn in turns)
                first, counts, counted_entries = first + low, high - low, counted_entries + every
            if counts.any():
                rows.append(np.repeat(here, counts))
                at.append(ranges(first, counts))
            nodes = nodes >> 1 if self.width > 1 else nodes[:0]
        row, place = np.concatenate(rows), np.concatenate(at)
        if len(rows) > 2:
            order = np.argsort(row, kind="stable")
            row, place = row[order], place[order]
        return row, self.of[place]

    def owners(self, weights: Longs | None = None) -> Longs:
        """How many want each leaf; by the ``weights`` of owners, if they have some."""
        counts: Longs = np.diff(self.offsets)
        if weights is not None:
            sums = np.append(0, np.cumsum(weights[self.owner[self.of]]))
            counts = np.diff(sums[self.offsets])
        level = 2
        while level < 2 * self.size:
            counts[level : 2 * level] += np.repeat(counts[level // 2 : level], 2)
            level *= 2
        return counts[self.size :]

    def owner_bits(self, masks: Longs) -> Longs:
        """Returns for each leaf the bits that any of its entries has; ``masks``: of the owners."""
        node_bits = np.zeros(2 * self.size, np.int64)
        nodes = np.repeat(np.arange(2 * self.size), np.diff(self.offsets))
        np.bitwise_or.at(node_bits, nodes, masks[self.owner[self.of]])
        level = 2
        while level < 2 * self.size:
            node_bits[level : 2 * level] |= np.repeat(node_bits[level // 2 : level], 2)
            level *= 2
        return node_bits[self.size :]


@dataclass(frozen=True, eq=False)
class PredicateIndexReader:
    """An index of wants by ``keys``, and by the position of rows on an ``axis``, if there is one.
    Exact positions are looked up by segments, others by the keys alone. ``borders``: the texts on
    the axis, if it orders texts.
    """

    keys: tuple[int, ...]
    axis: RangeKey | None
    plain: Index
    numbered: Index | None
    borders: pl.Series

    @staticmethod
    def build(wants: Entries, keys: Sequence[int], axis: RangeKey | None) -> PredicateIndexReader:
        """Builds a finder of these entries."""
        numbered = None if axis is None else Index.build(wants, by_number=True)
        plain, borders = Index.build(wants, by_number=False), wants.bounds.borders
        return PredicateIndexReader(tuple(keys), axis, plain, numbered, borders)

    def leaves(self, frame: Frame, pool: TermLookup) -> tuple[Longs, Longs]:
        """The leaf of each row in the one index and in the other; -1: it is not there."""
        if self.axis is None or self.numbered is None:
            return np.full(frame.n, -1, np.int64), self.plain.leaves(frame, self.keys, None)
        numbers = self.axis.positions(frame, self.borders, pool)
        by_number = self.numbered.leaves(frame, self.keys, np.where(numbers.exact, numbers.d, 0.0))
        left = ~numbers.exact & ~numbers.none
        rest = np.full(frame.n, -1, np.int64)
        if left.any():
            rest[left] = self.plain.leaves(frame.where(left), self.keys, None)
        return np.where(numbers.exact, by_number, -1), rest

    def find_owners(self, frame: Frame, pool: TermLookup) -> tuple[Longs, Longs, Bools]:
        """(row, owner) of all that want a row by their numbers and keys, and if that is certain."""
        parts = []
        by_number, rest = self.leaves(frame, pool)
        for index, leaves in ((self.numbered, by_number), (self.plain, rest)):
            if index is not None and (leaves >= 0).any():
                row, of = index.find_entries(leaves)
                certain = (
                    index.is_decided[of] if index is self.numbered else np.zeros(len(of), np.bool_)
                )
                parts.append((row, index.owner[of], certain))
        if len(parts) == 1:
            return parts[0]
        none = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_)
        row, owner, certain = map(np.concatenate, zip(none, *parts, strict=True))
        order = np.argsort(row, kind="stable")
        return row[order], owner[order], certain[order]

    def owners(
        self, leaves: tuple[Longs, Longs], turns: ProbeBatch
    ) -> tuple[Longs, Longs, Bools]:  # fmt: skip
        """Returns (row, owner, certain) for the rows at these leaves of both indexes, in these
        turns.
        """
        rows, owners = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        certain = [np.empty(0, np.bool_)]
        for index, index_leaves in zip((self.numbered, self.plain), leaves, strict=True):
            if index is not None:
                row, of = index.find_entries(index_leaves, turns)
                rows.append(row)
                owners.append(index.owner[of])
                certain.append(
                    index.is_decided[of] if index is self.numbered else np.zeros(len(of), bool)
                )
        return np.concatenate(rows), np.concatenate(owners), np.concatenate(certain)

    @cached_property
    def counts(self) -> tuple[Longs, Longs]:
        """How many want each leaf, of both."""
        none = np.empty(0, np.int64)
        return none if self.numbered is None else self.numbered.owners(), self.plain.owners()

    def owner_bits(self, masks: Longs) -> tuple[Longs, Longs]:
        """``Index.owner_bits`` of both."""
        none = np.empty(0, np.int64)
        numbered = none if self.numbered is None else self.numbered.owner_bits(masks)
        return numbered, self.plain.owner_bits(masks)


def _borders(wants: Bounds) -> Doubles:
    both = np.concatenate([wants.low, wants.high])
    return np.unique(both[np.isfinite(both)])


def _places(wants: Bounds, borders: Doubles) -> tuple[Longs, Longs]:
    """The interval of each entry among the borders: 2 i + 1 is at the i-th, 2 i before it."""
    a = 2 * np.searchsorted(borders, wants.low) + 1 + wants.above
    b = 2 * np.searchsorted(borders, wants.high) + 2 - wants.below.astype(np.int64)
    none = ~wants.is_decided  # these are looked at one by one
    a = np.where(np.isneginf(wants.low) | none, 0, a)
    b = np.where(np.isposinf(wants.high) | none, 2 * len(borders) + 1, b)
    return a, b


def _distinct_intervals(owner: Longs, left: Longs, right: Longs) -> Longs:
    """Returns the places of non-empty intervals, one for equal intervals of an owner: an owner that
    lists several values has as many intervals, which are equal without numbers.
    """
    there = np.flatnonzero(left < right)
    if not len(owner) or int(np.bincount(owner).max()) == 1:
        return there
    order = there[np.lexsort((right[there], left[there], owner[there]))]
    intervals = np.stack([owner[order], left[order], right[order]])
    first = np.append(True, (intervals[:, 1:] != intervals[:, :-1]).any(axis=0))
    return np.sort(order[first[: len(order)]])


def _canonical(left: Longs, right: Longs, size: int) -> tuple[Longs, Longs]:
    """(node, entry): the nodes of the tree that together are each entry's leaves."""
    l, r = left + size, right + size  # noqa: E741
    every = np.arange(len(left))
    nodes, of = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    while len(every):
        odd = (l & 1).astype(np.bool_)
        nodes.append(l[odd])
        of.append(every[odd])
        l = l + odd  # noqa: E741
        odd = (r & 1).astype(np.bool_)
        nodes.append(r[odd] - 1)
        of.append(every[odd])
        l, r = l >> 1, (r - odd) >> 1  # noqa: E741
        more = l < r
        l, r, every = l[more], r[more], every[more]  # noqa: E741
    return np.concatenate(nodes), np.concatenate(of)


# Residual conditions: evaluated on the (row, member) pairs that an index has found but cannot
# decide.
#
# A member pays for the pairs that its keys and ranges leave, whatever other members want. Pairs are
# evaluated some at a time, with only the columns that conditions read.


_ROUNDS = (0, 1, 8, 64, 1 << 62)
"""The pairs of a row are tested in rounds, up to these numbers, until the row is decided."""


def true_of(
    node: PlanNode[s.Pick],
    condition: Expression,
    rows: Frame,
    row: Longs,
    member: Longs | Ints,
    *,
    pool: TermLookup,
) -> Bools:
    """Flags the pairs for which the condition is true. The condition is over the slots of ``rows``
    and the constants of the pick's members. Raises ``ExcessError``, which names one of these.
    """
    read = {int(v) for v in variables(condition)}
    names = [n for n in rows.columns if col.is_slot(n) and int(n[1:]) in read]
    some, width = rows.select(names), max(read, default=-1) + 1
    truths = np.zeros(len(row), np.bool_)
    turn, pool.spent.turn = pool.spent.turn, node.id
    try:
        for at in range(0, len(row), PIECE):
            piece = slice(at, at + PIECE)
            pairs = some.take(row[piece]).with_(op=member[piece].astype(np.int32))
            truths[piece] = truth(condition, scope(node, pairs, pool, width))
    except ExcessError as error:
        error.node = node.id
        raise
    finally:
        pool.spent.turn = turn
    return truths


def by_other_slots(expression: Expression, slots: Mapping[int, int]) -> Expression:
    """A condition over the slots of a pick's input as one over others."""
    match expression:
        case Var(name):
            return Var(str(slots[int(name)]))
        case Call(function, args):
            return Call(function, tuple([by_other_slots(arg, slots) for arg in args]))
        case _:
            return expression


class ResidualPredicates(NamedTuple):
    """Members of a pick that select rows by a condition. ``members`` and ``bits``: the member and
    the bits of each owner that the finder returns; ``every``: all of these bits. ``tells``: the
    condition is true wherever the finder is sure.
    """

    pick: PlanNode[s.Pick]
    finder: PredicateIndexReader
    condition: Expression
    first: int
    members: Longs
    bits: Longs
    every: int
    tells: bool

    def add(self, classes: Longs, rows: Frame, pool: TermLookup, *, all_of: bool) -> None:
        """Adds the bits of the members that want each row to its ``classes``. ``all_of``: also if
        the row already has some.
        """
        leaves = self.finder.leaves(rows, pool)
        for low, high in pairwise(_ROUNDS):
            lacking = (classes & self.every) != self.every if all_of else classes == 0
            open_ = np.flatnonzero(lacking)
            size = max(_PAIRS // max(min(high - low, len(self.members)), 1), 64)
            for at in range(0, len(open_), size):
                part = open_[at : at + size]
                part_leaves = (leaves[0][part], leaves[1][part])
                row, owner, certain = self.finder.owners(part_leaves, ProbeBatch(low, high))
                true = certain if self.tells else np.zeros(len(certain), np.bool_)
                self._ask(classes, rows, (part[row], owner - self.first, true), pool)

    def _ask(
        self, classes: Longs, rows: Frame, pairs: tuple[Longs, Longs, Bools], pool: TermLookup
    ) -> None:  # fmt: skip
        """Adds the bits of pairs of a row and a member, of which some are known to be ``true``."""
        row, positions, true = pairs
        left = np.flatnonzero(~true)
        if len(left):
            members = self.members[positions[left]]
            true[left] = true_of(self.pick, self.condition, rows, row[left], members, pool=pool)
        np.bitwise_or.at(classes, row[true], self.bits[positions[true]])


_PAIRS = register(f"{__name__}._PAIRS", 1 << 21)
"""Pairs that are found at once, at most, but for those of a few rows."""
