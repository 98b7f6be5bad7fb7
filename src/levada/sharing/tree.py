"""Definitions in order, in blocks that know an upper bound of all below and the regions these are
in: levels 4 to 6 of the lattice.

Definitions with the same base and the same attributes in their boxes are sorted by conditions,
columns and windows, so that what is alike stands together. A *block* of at most ``FULL`` of them,
or of blocks, has a bound that contains each: a search for what contains a query leaves out every
block whose bound does not, or that is in no wanted region (a tree of upper bounds in the manner of
GiST; the paper's filter tree has a level for each part of the key). Operators of one definition are
one entry.

``nearest`` goes outward from where the query itself would stand, ``containing`` in order. Both give
everything if they are read to the end; a planner reads as much as it prices.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from levada.sharing.descriptor import Descriptor, usable
from levada.sharing.spans import Spans
from levada.sharing.windows import ALWAYS, Instants

FULL = 32
PIECES = 16
"""A bound of more pieces is made one that is coarser."""
NONE = Spans(())
Order = tuple[Any, ...]


def order_of(d: Descriptor) -> Order:
    """Where a definition stands among those of its base; equal ones have one place."""
    clauses = tuple(sorted(tuple(sorted(c)) for c in d.where.clauses))
    box = tuple(found.parts for _, found in d.where.box)
    shown = tuple(sorted(d.columns)), tuple(sorted(d.aggregates))
    return box, clauses, shown, d.windows.ranges, d.windows.instants.parts


@dataclass(frozen=True, slots=True)
class Bound:
    """At least as much as each of some definitions: of each attribute, columns, windows."""

    box: tuple[Spans, ...]
    columns: frozenset[str]
    ranges: tuple[int, ...]
    instants: Instants

    def __or__(self, other: Bound) -> Bound:
        columns = self.columns | other.columns
        return Bound(
            tuple(_spans(a, b) for a, b in zip(self.box, other.box, strict=True)),
            self.columns if columns == self.columns else columns,
            tuple(map(max, self.ranges, other.ranges)),
            _instants(self.instants, other.instants),
        )

    def may_contain(self, wanted: Wanted) -> bool:
        """Whether something below could contain it."""
        return (
            all(own >= w for own, w in zip(self.ranges, wanted.ranges, strict=True))
            and wanted.columns <= self.columns
            and all(own.covers(w) for own, w in zip(self.box, wanted.box, strict=True))
            and self.instants.covers(wanted.instants)
        )


Wanted = Bound


def bound_of(d: Descriptor, attributes: tuple[str, ...]) -> Bound:
    """A definition's own bound, or what is wanted, on these attributes of its box."""
    box = {} if d.where.never else dict(d.where.box)
    return Bound(
        tuple(box.get(a, NONE) for a in attributes),
        d.columns if d.group is None else frozenset(),
        d.windows.ranges,
        d.windows.instants,
    )


def _spans(one: Spans, other: Spans) -> Spans:
    both = one | other
    return both if len(both.parts) <= PIECES else both.hull()


def _instants(one: Instants, other: Instants) -> Instants:
    both = one | other
    return both if len(both.parts) <= PIECES else ALWAYS


@dataclass(slots=True, eq=False)
class Entry:
    """A definition, and the regions of each operator that has it, as bits."""

    order: Order
    definition: Descriptor
    bound: Bound
    homes: dict[int, int] = field(default_factory=dict)
    nid: int = 0

    def look(self) -> None:
        """What follows from the operators."""
        self.nid = 0
        for nid in self.homes.values():
            self.nid |= nid


@dataclass(slots=True, eq=False)
class Block:
    """Entries or blocks in order. ``order``: none below stands before it."""

    items: list[Entry | Block]
    order: Order = ()
    bound: Bound | None = None
    nid: int = 0

    def look(self) -> None:
        """What follows from the items."""
        self.nid, bound = 0, None
        for item in self.items:
            assert item.bound is not None, "what is empty has been dropped"
            self.nid |= item.nid
            bound = item.bound if bound is None else bound | item.bound
        self.bound = bound

    def widen(self, entry: Entry) -> None:
        """One more below."""
        self.nid |= entry.nid
        self.bound = entry.bound if self.bound is None else self.bound | entry.bound


class Tree:
    """Definitions of one base whose boxes have the same attributes."""

    __slots__ = ("attributes", "root")

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self.attributes = attributes
        self.root = Block([])

    @property
    def nid(self) -> int:
        """The regions of all operators."""
        return self.root.nid

    def insert(self, operator: int, definition: Descriptor, nid: int) -> None:
        """One operator more."""
        order = order_of(definition)
        path = self._path(order)
        leaf = path[-1]
        at = bisect_left(leaf.items, order, key=_order)
        if at < len(leaf.items) and leaf.items[at].order == order:
            entry = leaf.items[at]
        else:
            entry = Entry(order, definition, bound_of(definition, self.attributes))
            leaf.items.insert(at, entry)
        assert isinstance(entry, Entry), "a leaf has entries"
        entry.homes[operator] = nid
        entry.nid |= nid
        for block in path:
            block.widen(entry)
        self._split(path)

    def delete(self, operator: int, definition: Descriptor) -> None:
        """One operator less. Blocks that are left with little stay; empty ones go."""
        order = order_of(definition)
        path = self._path(order)
        leaf = path[-1]
        at = bisect_left(leaf.items, order, key=_order)
        entry = leaf.items[at]
        assert isinstance(entry, Entry) and operator in entry.homes, "it was inserted"
        del entry.homes[operator]
        entry.look()
        if not entry.homes:
            del leaf.items[at]
        for block, parent in _upward(path):
            if not block.items and parent is not None:
                parent.items.remove(block)
            else:
                block.look()

    def equal(self, definition: Descriptor) -> Entry | None:
        """The entry of this very definition."""
        order = order_of(definition)
        items = self._path(order)[-1].items
        at = bisect_left(items, order, key=_order)
        found = items[at] if at < len(items) and items[at].order == order else None
        assert not isinstance(found, Block), "a leaf has entries"
        return found

    def containing(self, wanted: Descriptor, mask: int) -> Iterator[Entry]:
        """All that are usable for a query, in some region of the mask."""
        if wanted.where.never or set(self.attributes) <= set(wanted.where.attributes):
            bound = bound_of(wanted, self.attributes)
            yield from self._containing(self.root, bound, wanted, mask)

    def _containing(
        self, block: Block, bound: Bound, wanted: Descriptor, mask: int
    ) -> Iterator[Entry]:
        for item in block.items:
            if not item.nid & mask or item.bound is None or not item.bound.may_contain(bound):
                continue
            if isinstance(item, Block):
                yield from self._containing(item, bound, wanted, mask)
            elif usable(item.definition, wanted):
                yield item

    def nearest(self, wanted: Descriptor, mask: int) -> Iterator[Entry]:
        """All in some region of the mask, outward from the query's own place."""
        order = order_of(wanted)
        sides = _after(self.root, order, mask), _before(self.root, order, mask)
        for pair in zip_longest(*sides):
            yield from (entry for entry in pair if entry is not None)

    def entries(self) -> Iterator[Entry]:
        """All, in order."""
        return _after(self.root, (), -1)

    def _path(self, order: Order) -> list[Block]:
        block, path = self.root, [self.root]
        while block.items and isinstance(block.items[0], Block):
            at = max(bisect_right(block.items, order, key=_order) - 1, 0)
            below = block.items[at]
            assert isinstance(below, Block), "items of a block are alike"
            below.order = min(below.order, order)
            path.append(block := below)
        return path

    def _split(self, path: list[Block]) -> None:
        for block, parent in _upward(path):
            if len(block.items) <= FULL:
                return
            half = len(block.items) // 2
            halves = [Block(block.items[:half]), Block(block.items[half:])]
            for new in halves:
                new.order = new.items[0].order
                new.look()
            if parent is None:
                self.root = Block(list(halves), (), block.bound, block.nid)
            else:
                at = next(i for i, item in enumerate(parent.items) if item is block)
                halves[0].order = block.order
                parent.items[at : at + 1] = halves


def _order(item: Entry | Block) -> Order:
    return item.order


def _after(block: Block, order: Order, mask: int) -> Iterator[Entry]:
    first = bisect_left(block.items, order, key=_order)
    if block.items and isinstance(block.items[0], Block):
        first = max(first - 1, 0)
    for item in block.items[first:]:
        if item.nid & mask:
            if isinstance(item, Block):
                yield from _after(item, order, mask)
            else:
                yield item


def _before(block: Block, order: Order, mask: int) -> Iterator[Entry]:
    end = bisect_left(block.items, order, key=_order)
    for item in reversed(block.items[:end]):
        if item.nid & mask:
            if isinstance(item, Block):
                yield from _before(item, order, mask)
            else:
                yield item


def _upward(path: list[Block]) -> Iterator[tuple[Block, Block | None]]:
    """Each block of a way from the root, with the one above it, from the leaf on."""
    above: list[Block | None] = [None, *path[:-1]]
    return zip(reversed(path), reversed(above), strict=True)
