"""The reuse lattice: which operators could serve a query, and where, without looking at all
(STREAMREUSE, section 4).

Levels, from the top: sources, equal attributes, grouping, attributes that are compared; below them
conditions, columns and windows in trees of upper bounds (``tree``). Each node knows the regions of
all operators below it, as bits (NID); a search has a mask of regions and leaves out what is in none
of them. *Containment* looks into all levels; for *relaxation* the base conditions are enough, and
candidates come by how near they are: with the same attributes first, outward in order. Which trees
of a level may contain a query is read from marks, as in the blocks of a tree.

What a search gives, read to the end, is what a look at all operators gives; the first few cost
logarithmically many blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bench.papers.streamreuse.model.bound_tree import Entry, Marks, Tree
from bench.papers.streamreuse.model.descriptor import Bound, Descriptor, Wanted, wanted_of
from bench.papers.streamreuse.model.relaxation import relaxable

EVERYWHERE = -1
"""The mask of all regions."""
Level = Callable[[Descriptor], Any]

LEVELS: tuple[tuple[str, Level], ...] = (
    ("sources", lambda d: d.sources),
    ("joins", lambda d: d.joins),
    ("group", lambda d: d.group),
    ("attributes", lambda d: d.where.attributes),
)


@dataclass(slots=True)
class LevelNode:
    """Nodes of the next level by their keys, or trees below the last; and the regions of all."""

    below: dict[Any, LevelNode | Tree] = field(default_factory=dict)
    nid: int = 0
    marks: Marks = field(default_factory=Marks)

    def look(self) -> None:
        """What follows from the nodes below."""
        self.nid = 0
        for node in self.below.values():
            self.nid |= node.nid

    def mark(self, tree: Tree, before: Bound | None) -> None:
        """A tree below is new, or wider than ``before``."""
        tree.bit = tree.bit or self.marks.free()
        assert tree.root.bound is not None, "it has something below"
        self.marks.put(tree.bit, tree.root.bound, before)

    def among(self, wanted: Wanted) -> Iterator[Tree]:
        """The trees below that may contain it."""
        bits = self.marks.holding(wanted)
        return (t for t in self.below.values() if isinstance(t, Tree) and t.bit & bits)


class Lattice:
    """Operators by number, with their definitions and regions."""

    def __init__(self) -> None:
        self._root = LevelNode()
        self._operators: dict[int, tuple[Descriptor, int]] = {}

    def __len__(self) -> int:
        return len(self._operators)

    def insert(self, operator: int, definition: Descriptor, nid: int) -> None:
        """An operator, in the regions whose bits ``nid`` has."""
        assert operator not in self._operators and nid > 0, "it is new, and somewhere"
        node, path = self._root, []
        for name, key in LEVELS:
            path.append(node)
            last = name == LEVELS[-1][0]
            below = node.below.get(key(definition))
            if below is None:
                below = Tree(definition.where.attributes) if last else LevelNode()
                node.below[key(definition)] = below
            if isinstance(below, Tree):
                before = below.root.bound
                below.insert(operator, definition, nid)
                if below.root.bound is not before:
                    node.mark(below, before)
            else:
                node = below
        for level in path:
            level.nid |= nid
        self._operators[operator] = definition, nid

    def delete(self, operator: int) -> None:
        """The operator is gone."""
        definition, _ = self._operators.pop(operator)
        path = self._path(definition)
        tree = path[-1].below[definition.where.attributes]
        assert isinstance(tree, Tree), "trees are below the last level"
        before = tree.root.bound
        tree.delete(operator, definition)
        if tree.root.bound != before:
            path[-1].marks.drop(tree.bit)
            if tree.root.items:
                path[-1].mark(tree, None)
        below: LevelNode | Tree = tree
        for (_, key), node in zip(LEVELS[::-1], path[::-1], strict=True):
            if not (below.root.items if isinstance(below, Tree) else below.below):
                del node.below[key(definition)]
            if node is not self._root:
                node.look()
            below = node

    def move(self, operator: int, nid: int) -> None:
        """The operator is in other regions, or in more of them."""
        definition, _ = self._operators[operator]
        self.delete(operator)
        self.insert(operator, definition, nid)

    def redefine(self, operator: int, definition: Descriptor) -> None:
        """The operator computes something else: it was relaxed, or shrank."""
        _, nid = self._operators[operator]
        self.delete(operator)
        self.insert(operator, definition, nid)

    def equal(self, wanted: Descriptor, mask: int = EVERYWHERE) -> Iterator[int]:
        """Operators of this very definition."""
        node: LevelNode | Tree | None = self._root
        for _, key in LEVELS:
            node = node.below.get(key(wanted)) if isinstance(node, LevelNode) else None
        found = node.equal(wanted) if isinstance(node, Tree) else None
        if found is not None:
            yield from _within(found, mask)

    def containing(self, wanted: Descriptor, mask: int = EVERYWHERE) -> Iterator[int]:
        """Operators that serve a query as they are; those that compare least come first."""
        bound = wanted_of(wanted)
        levels = self._levels(wanted, mask, wanted.group is None)
        trees = [t for level in levels for t in level.among(bound) if t.nid & mask]
        for tree in sorted(trees, key=lambda t: len(t.attributes)):
            for entry in tree.containing(bound, wanted, mask):
                yield from _within(entry, mask)

    def relaxable(self, wanted: Descriptor, mask: int = EVERYWHERE) -> Iterator[int]:
        """Operators that could be made to serve a query, the nearest first."""
        names = set(wanted.where.attributes)
        levels = self._levels(wanted, mask, exactly=True)
        below = (node for level in levels for node in level.below.values())
        trees = [t for t in below if isinstance(t, Tree) and t.nid & mask]
        for tree in sorted(trees, key=lambda t: len(names ^ set(t.attributes))):
            for entry in tree.nearest(wanted, mask):
                if relaxable(entry.definition, wanted):
                    yield from _within(entry, mask)

    def counts(self) -> dict[str, int]:
        """How many nodes each level has, from the top, and how many definitions and operators."""
        found, nodes = {}, [self._root]
        for name, _ in LEVELS:
            below = [node for level in nodes for node in level.below.values()]
            found[name] = len(below)
            nodes = [node for node in below if isinstance(node, LevelNode)]
        trees = [node for node in below if isinstance(node, Tree)]
        definitions = sum(1 for tree in trees for _ in tree.entries())
        return found | {"definitions": definitions, "operators": len(self)}

    def _path(self, definition: Descriptor) -> list[LevelNode]:
        path = [self._root]
        for _, key in LEVELS[:-1]:
            node = path[-1].below[key(definition)]
            assert isinstance(node, LevelNode), "trees are below the last level"
            path.append(node)
        return path

    def _levels(self, wanted: Descriptor, mask: int, exactly: bool) -> Iterator[LevelNode]:
        """What has trees of the same base; of groupings all that are finer, unless ``exactly``."""
        node: LevelNode | Tree | None = self._root
        for _, key in LEVELS[:2]:
            node = node.below.get(key(wanted)) if isinstance(node, LevelNode) else None
        if not isinstance(node, LevelNode) or not node.nid & mask:
            return
        for group, level in node.below.items():
            same = group == wanted.group
            finer = not exactly and None not in (group, wanted.group) and group >= wanted.group
            if (same or finer) and isinstance(level, LevelNode) and level.nid & mask:
                yield level


def _within(entry: Entry, mask: int) -> Iterator[int]:
    return (operator for operator, nid in entry.homes.items() if nid & mask)
