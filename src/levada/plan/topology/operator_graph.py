"""The shared operators of all queries: nodes (shapes) and members (operators).

A node is one vectorized operator; a member is a row of its parameter tables. Members are counted
and removed with the last query that uses them, nodes with their last member. Numbers of nodes and
members never change and are never used again, because state refers to them (``catalog_members``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from levada.plan.execution.plan import At
from levada.plan.execution.shapes import Member, Shape
from levada.plan.sharing.share_equal_operators import CommonSubexpressions
from levada.plan.topology.catalog_members import CatalogNode


class OperatorGraph:
    """The nodes by number and by shape, and the uses of their members. ``common``: the operators by
    what they compute.
    """

    def __init__(self) -> None:
        self.nodes: dict[int, CatalogNode] = {}
        self.index: dict[Shape, int] = {}  # the nodes by their shapes
        # and by the shape of their generation 0, oldest first
        self.alike: dict[Shape, list[int]] = {}
        self.numbers = 0  # the number of nodes so far, with removed ones
        self.common = CommonSubexpressions()
        self._depths: dict[int, int] = {}

    def graphs(self) -> frozenset[str | None]:
        """Returns the static graphs that some query reads."""
        return frozenset(
            g for node in self.nodes.values() for m in node.members.index for g in m.graphs
        )

    def intern(self, shape: Shape, member: Member, version: int) -> tuple[Shape, int]:
        """Returns the node's own shape and the member's number; adds them to this plan version if
        they are missing.
        """
        alike = self.alike.get(shape, [])
        for number in alike:
            at = self.nodes[number].members.find(member)
            if at >= 0:
                return self.nodes[number].shape, at
        node = self.nodes[alike[-1]] if alike else None
        if node is None or node.members.is_spent(version):
            node = self._node(shape)
        return node.shape, node.members.add(member, version)

    def _node(self, shape: Shape) -> CatalogNode:
        """Adds a node; a second node of a shape has another generation."""
        alike = self.alike.setdefault(shape, [])
        number = self.numbers
        self.numbers += 1
        new_shape = replace(shape, generation=number) if alike else shape
        alike.append(number)
        self.index[new_shape] = number
        node = self.nodes[number] = CatalogNode(
            new_shape, tuple(self.index[i] for i, _ in shape.inputs)
        )
        return node

    def drop_node(self, number: int) -> None:
        """Removes a node without members."""
        node = self.nodes.pop(number)
        del self.index[node.shape]
        self._depths.pop(number, None)
        first = replace(node.shape, generation=0)
        self.alike[first].remove(number)
        if not self.alike[first]:
            del self.alike[first]

    def count_use(self, node: int, member: int, change: int) -> None:
        """Counts a use of a member; a used member uses its inputs."""
        entry = self.nodes[node]
        table = entry.members
        before = table.uses[member]
        table.uses[member] = after = before + change
        if (before == 0) == (after == 0):
            return
        inputs = table[member].inputs
        if after == 0:
            table.drop(member)
            self.common.forget(entry.shape, member)
            if not table:
                self.drop_node(node)
        for i, m in zip(entry.inputs, inputs, strict=True):
            self.count_use(i, m, change)

    def find_readers(self, below: Iterable[At]) -> dict[int, set[int]]:
        """Returns the members that read one of these, directly or through others, and these, by
        their nodes. Cost: linear in the members of the nodes above.
        """
        above: dict[int, set[int]] = {}
        for node, member in below:
            above.setdefault(node, set()).add(member)
        for number in self.order():
            reader = self.nodes[number]
            for i, input_ in enumerate(reader.inputs):
                if input_ in above:
                    read = reader.members.find_readers(i, above[input_])
                    above.setdefault(number, set()).update(read.tolist())
        return above

    def order(self) -> tuple[int, ...]:
        """Returns the numbers of the nodes, inputs before their readers."""
        return tuple(sorted(self.nodes, key=lambda n: (self.nodes[n].shape.stage, self._depth(n))))

    def _depth(self, number: int) -> int:
        if number not in self._depths:
            self._depths[number] = 1 + max(
                (self._depth(i) for i in self.nodes[number].inputs), default=0
            )
        return self._depths[number]
