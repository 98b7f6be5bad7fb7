"""The members of a node of the catalog, in the order of their numbers.

A number is never used again, because rows of state refer to it. A removed member leaves an empty
place. In a sealed plan an empty place has the values of some living member and is not ``alive``, so
tables by member have no holes. An empty place costs a few bytes of arrays.

A node with too many empty places is spent (``is_spent``). New members then go to a new node of the
same shape. The old node and its state are removed with its last member. So the size of a plan
follows from the current queries, not from the number of former ones. A node with many members of
earlier versions is spent, too. A version of the plan contains only nodes whose members changed
(``plan/execution``), so a query that joins very many others costs one small node.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from levada.core.array_types import Bools, Longs
from levada.core.size_thresholds import register
from levada.plan.execution.member_table import MemberColumns, MemberTable
from levada.plan.execution.plan import FULL
from levada.plan.execution.shapes import Member, Shape

EMPTY = register(f"{__name__}.EMPTY", 512)  # with up to this many empty places a node is not spent
SHARE = 4  # nor with up to this many for each living member


class Members:
    """A table of members. ``uses``: the number of uses of each. ``born``: the plan version that
    added each. ``changed``: whether members changed since the last sealed version.
    """

    __slots__ = ("_held", "_there", "born", "changed", "uses")

    def __init__(self) -> None:
        self._held, self._there = MemberColumns(), 0
        self.uses, self.born = array("q"), array("q")
        self.changed = True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Members):
            return NotImplemented
        same = self.uses == other.uses and self.born == other.born
        return same and self.rows == other.rows

    __hash__ = None  # type: ignore[assignment]

    @property
    def index(self) -> Mapping[Member, int]:
        """The living members with their numbers, ascending."""
        return _Index(self._held, self._there)

    @property
    def places(self) -> int:
        """The number of places, with empty ones."""
        return len(self._held)

    @property
    def rows(self) -> list[Member | None]:
        """The member of each place, None where it is empty."""
        return [self._held[at] if there else None for at, there in enumerate(self._held.alive)]

    def find(self, member: Member) -> int:
        """Returns the number of a member; -1: it does not exist."""
        return self._held.find(member)

    def add(self, member: Member, version: int) -> int:
        """Adds a new member and returns its number."""
        self.changed = True
        self._there += 1
        self.uses.append(0)
        self.born.append(version)
        return self._held.add(member)

    def drop(self, at: int) -> None:
        """Empties a place."""
        assert self._held.alive[at], "a member goes once"
        self._held.remove(at)
        self._there -= 1
        self.changed = True

    def __getitem__(self, at: int) -> Member:
        assert self._held.alive[at], "a member that is there"
        return self._held[at]

    def __bool__(self) -> bool:
        return self._there > 0

    def is_spent(self, version: int) -> bool:
        """Whether new members of this plan version should go to a new node.

        Either too many places are empty, or the node has so many members that rewriting them in
        each version is too expensive.
        """
        if self.places >= FULL and self.born[0] < version:
            return True
        return self.places - self._there >= max(EMPTY, SHARE * self._there)

    def living_numbers(self) -> list[int]:
        """Returns the numbers of the living members, ascending."""
        return self._held.living_numbers()

    def find_readers(self, i: int, below: Collection[int]) -> Longs:
        """Returns the living members that read one of these members of input ``i``."""
        read = np.isin(self.living_members().inputs[i], list(below))
        return np.flatnonzero(self.alive())[read]

    def kinds(self, *fields: str) -> tuple[list[Member], list[int]]:
        """Groups the living members by these fields: one member of each kind, and the kind of each
        member.
        """
        index: dict[object, int] = {}
        of = [index.setdefault(key, len(index)) for key in self._held.kinds(fields)]
        living, firsts = self.living_numbers(), dict[int, int]()
        for at, kind in zip(living, of, strict=True):
            firsts.setdefault(kind, at)
        return [self._held[at] for at in firsts.values()], of

    def table(self) -> MemberTable:
        """Returns the member of each place; empty places have the first living member."""
        there = self.alive()
        return self._held.table(np.where(there, np.arange(len(there)), there.argmax()).tolist())

    def living_members(self) -> MemberTable:
        """Returns the living members."""
        return self._held.table(self.living_numbers())

    def alive(self) -> Bools:
        """Returns for each place whether it is not empty."""
        return self._held.mask()


class _Index(Mapping[Member, int]):
    """A mapping from the members of a table to their numbers."""

    def __init__(self, held: MemberColumns, size: int) -> None:
        self._held, self._size = held, size

    def __getitem__(self, member: Member) -> int:
        if (at := self._held.find(member)) < 0:
            raise KeyError(member)
        return at

    def __iter__(self) -> Iterator[Member]:
        return (self._held[at] for at, there in enumerate(self._held.alive) if there)

    def __len__(self) -> int:
        return self._size


@dataclass
class CatalogNode:
    """A node of the catalog: its shape, the nodes of its inputs, its members."""

    shape: Shape
    inputs: tuple[int, ...]
    members: Members = field(default_factory=Members)


def is_alive(nodes: Mapping[int, CatalogNode], at: tuple[int, int]) -> bool:
    """Whether a member of this node and number exists."""
    node = nodes.get(at[0])
    return node is not None and node.members.uses[at[1]] > 0
