"""Definitions in order, in blocks that know an upper bound of all below and the regions these are
in: levels 4 to 6 of the lattice.

Definitions with the same base and the same attributes in their boxes are sorted by conditions,
columns and windows, so that what is alike stands together. A *block* of at most ``FULL`` of them,
or of blocks, has a bound that contains each: a search for what contains a query leaves out every
block whose bound does not, or that is in no wanted region (a tree of upper bounds in the manner of
GiST; the paper's filter tree has a level for each part of the key). Operators of one definition are
one entry. Which items of a block may contain a query is read from *marks*, bits by value, column,
range and instant, in place of a look at each.

``nearest`` goes outward from where the query itself would stand, ``containing`` in order. Both give
everything if they are read to the end; a planner reads as much as it prices.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, TypeVar

from bench.papers.streamreuse.model.descriptor import (
    Bound,
    Descriptor,
    Wanted,
    bound_of,
    usable,
)
from bench.papers.streamreuse.model.value_intervals import Segments
from bench.papers.streamreuse.model.windows import Instants, Progression, within

FULL = 64
FEW = 4
"""So many items of a block are looked at one by one."""
Order = tuple[Any, ...]
K = TypeVar("K")


def order_of(d: Descriptor) -> Order:
    """Where a definition stands among those of its base; equal ones have one place."""
    clauses = tuple(sorted(tuple(sorted(c)) for c in d.where.clauses))
    box = tuple(found.parts for _, found in d.where.box)
    shown = tuple(sorted(d.columns)), tuple(sorted(d.aggregates))
    return box, clauses, shown, d.windows.ranges, d.windows.instants.parts


class Marks:
    """What each of some bounds may contain, a bit for each: by values, columns, ranges and
    instants. So those that may contain a query are found without a look at each (a bitmap index).
    """

    __slots__ = ("box", "columns", "compared", "instants", "ranges", "used")

    def __init__(self) -> None:
        self.box: dict[str, Segments] = {}
        self.compared: dict[str, int] = {}
        self.ranges: list[Segments] = []
        self.columns: dict[str, int] = {}
        self.instants: dict[Progression, int] = {}
        self.used = 0

    def free(self) -> int:
        """A bit that nothing has."""
        return ~self.used & (self.used + 1)

    def put(self, bit: int, bound: Bound, before: Bound | None = None) -> None:
        """A bound, or what it is now that was ``before``, and less."""
        self.used |= bit
        for at, (name, own) in enumerate(zip(bound.attributes, bound.box, strict=True)):
            self.compared[name] = self.compared.get(name, 0) | bit
            known = before.box[at].parts if before is not None else ()
            held = self.box.setdefault(name, Segments())
            for part in own.parts if own.parts != known else ():
                if part not in known:
                    held.add(*part, bit)
        self.ranges = self.ranges or [Segments() for _ in bound.ranges]
        for longest, ms in zip(self.ranges, bound.ranges, strict=True):
            longest.add(0, ms + 1, bit)
        for column in bound.columns:
            self.columns[column] = self.columns.get(column, 0) | bit
        for progression in bound.instants.parts:
            self.instants[progression] = self.instants.get(progression, 0) | bit

    def drop(self, bit: int) -> None:
        """A bound is gone, or will be put anew."""
        self.used &= ~bit
        for held in (*self.box.values(), *self.ranges):
            held.remove(bit)
        self.compared = _without(self.compared, bit)
        self.box = {name: held for name, held in self.box.items() if name in self.compared}
        self.columns = _without(self.columns, bit)
        self.instants = _without(self.instants, bit)

    def holding(self, wanted: Wanted) -> int:
        """The bounds that may contain it, as bits."""
        bits = self.used
        for longest, ms in zip(self.ranges, wanted.ranges, strict=True):
            bits &= longest.holding(ms, ms + 1)
        for column in wanted.columns:
            bits &= self.columns.get(column, 0)
        for name, held in self.box.items() if bits and not wanted.never else ():
            own, free = wanted.box.get(name), ~self.compared[name]
            if own is None:
                bits &= free
            else:
                for low, high in own.parts:
                    bits &= free | held.holding(low, high)
            if not bits:
                return 0
        return bits & self._reporting(wanted.instants) if bits else 0

    def _reporting(self, wanted: Instants) -> int:
        bits = -1
        for inner in wanted.parts:
            found = 0
            for outer, items in self.instants.items():
                if within(inner, outer):
                    found |= items
            bits &= found
        return bits


def _without(marked: dict[K, int], bit: int) -> dict[K, int]:
    return {key: kept for key, bits in marked.items() if (kept := bits & ~bit)}


@dataclass(slots=True, eq=False)
class Entry:
    """A definition, and the regions of each operator that has it, as bits."""

    order: Order
    definition: Descriptor
    bound: Bound
    homes: dict[int, int] = field(default_factory=dict)
    nid: int = 0
    bit: int = 0

    def look(self) -> None:
        """What follows from the operators."""
        self.nid = 0
        for nid in self.homes.values():
            self.nid |= nid


@dataclass(slots=True, eq=False)
class Block:
    """Entries or blocks in order. ``order``: none below stands before it. ``bit``: its own among
    the ``marks`` of the block above it.
    """

    items: list[Entry | Block]
    order: Order = ()
    bound: Bound | None = None
    nid: int = 0
    bit: int = 0
    marks: Marks | None = None

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

    def mark(self, item: Entry | Block, before: Bound | None = None) -> None:
        """An item is new, or wider than ``before``. Few items need no marks."""
        new: Iterable[Entry | Block] = (item,)
        if self.marks is None:
            if len(self.items) <= FEW:
                return
            self.marks, new, before = Marks(), self.items, None
            for each in new:
                each.bit = 0
        for each in new:
            assert each.bound is not None, "it has something below"
            each.bit = each.bit or self.marks.free()
            self.marks.put(each.bit, each.bound, before)

    def unmark(self, item: Entry | Block) -> None:
        """An item is gone."""
        if self.marks is not None:
            self.marks.drop(item.bit)

    def among(self, wanted: Wanted) -> list[Entry | Block]:
        """The items that may contain it, in order."""
        if self.marks is None:
            return [i for i in self.items if i.bound is not None and i.bound.may_contain(wanted)]
        bits = self.marks.holding(wanted)
        return [item for item in self.items if item.bit & bits] if bits else []


class Tree:
    """Definitions of one base whose boxes have the same attributes."""

    __slots__ = ("attributes", "bit", "root")

    def __init__(self, attributes: tuple[str, ...]) -> None:
        self.attributes = attributes
        self.root = Block([])
        self.bit = 0

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
            entry = Entry(order, definition, bound_of(definition))
            leaf.items.insert(at, entry)
            leaf.mark(entry)
        assert isinstance(entry, Entry), "a leaf has entries"
        entry.homes[operator] = nid
        entry.nid |= nid
        for block, parent in _upward(path):
            before = block.bound
            block.widen(entry)
            if parent is not None and block.bound is not before:
                parent.mark(block, before)
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
            leaf.unmark(entry)
        for block, parent in _upward(path):
            if not block.items and parent is not None:
                parent.items.remove(block)
                parent.unmark(block)
                continue
            before = block.bound
            block.look()
            if parent is not None and block.bound != before:
                parent.unmark(block)
                parent.mark(block)

    def equal(self, definition: Descriptor) -> Entry | None:
        """The entry of this very definition."""
        order = order_of(definition)
        items = self._path(order)[-1].items
        at = bisect_left(items, order, key=_order)
        found = items[at] if at < len(items) and items[at].order == order else None
        assert not isinstance(found, Block), "a leaf has entries"
        return found

    def containing(self, bound: Wanted, wanted: Descriptor, mask: int) -> Iterator[Entry]:
        """All that are usable for a query, in some region of the mask."""
        return _containing(self.root, bound, wanted, mask)

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
                new.mark(new.items[0])
            if parent is None:
                self.root = parent = Block(list(halves), (), block.bound, block.nid)
            else:
                at = next(i for i, item in enumerate(parent.items) if item is block)
                halves[0].order = block.order
                parent.items[at : at + 1] = halves
                parent.unmark(block)
            for new in halves:
                parent.mark(new)


def _order(item: Entry | Block) -> Order:
    return item.order


def _containing(block: Block, bound: Wanted, wanted: Descriptor, mask: int) -> Iterator[Entry]:
    for item in block.among(bound):
        if item.nid & mask:
            if isinstance(item, Block):
                yield from _containing(item, bound, wanted, mask)
            elif usable(item.definition, wanted):
                yield item


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
