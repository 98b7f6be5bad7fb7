"""The members of a node of the catalog, in the order of their numbers.

A number is never used again, because rows of state refer to it: what is gone leaves an empty place.
In a sealed plan an empty place looks like some living member and is not ``alive``, so that tables
by member have no holes; it costs a few bytes of arrays. A node that has too many of them is
``spent``: what comes takes a new node of the same shape, the old one goes with its last member, and
so does its state. So what a plan costs follows from the queries that are there, however many have
been. A node with many members of earlier versions is spent, too: a version of the plan is written
by the nodes whose members are others (``plan/sealed/changed``), and so a query that comes to very
many costs a small node.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from levada.plan.sealed.shapes import Member, Shape

FULL = 2048  # places that a node of before has, which takes no new members
EMPTY = 512  # empty places that are not worth a new node
SHARE = 4  # nor so many for each living member


_NUMBERS: list[int] = []
_ALONE: list[tuple[int]] = []


def number(at: int) -> int:
    """The number, which all nodes have in common as one object: they have members of the same."""
    while at >= len(_NUMBERS):
        _NUMBERS.append(len(_NUMBERS))
        _ALONE.append((_NUMBERS[-1],))
    return _NUMBERS[at]


def inputs_of(numbers: list[int]) -> tuple[int, ...]:
    """A member's inputs: those of one number are one object.

    >>> inputs_of([5]) is inputs_of([5]), inputs_of([5, 6])
    (True, (5, 6))
    """
    if len(numbers) == 1:
        return _ALONE[number(numbers[0])]
    return tuple(numbers)


@dataclass
class Members:
    """A table of members; ``born``: the plan version of each; ``changed``: since the last version
    that was sealed.
    """

    index: dict[Member, int] = field(default_factory=dict)
    rows: list[Member | None] = field(default_factory=list)
    uses: list[int] = field(default_factory=list)
    born: list[int] = field(default_factory=list)
    changed: bool = True

    def add(self, member: Member, version: int) -> int:
        """The number of a member that is new."""
        at = self.index[member] = number(len(self.rows))
        self.changed = True
        self.rows.append(member)
        self.uses.append(0)
        self.born.append(version)
        return at

    def drop(self, at: int) -> None:
        """Leaves a place empty."""
        member = self.rows[at]
        assert member is not None, "a member goes once"
        del self.index[member]
        self.rows[at] = None
        self.changed = True

    def __getitem__(self, at: int) -> Member:
        member = self.rows[at]
        assert member is not None, "a member that is there"
        return member

    def spent(self, version: int) -> bool:
        """Whether new members of this plan version had better go to a new node: too many are gone,
        or so many are there that each version would say them all again.
        """
        if len(self.rows) >= FULL and self.born[0] < version:
            return True
        return len(self.rows) - len(self.index) >= max(EMPTY, SHARE * len(self.index))

    def living(self) -> list[int]:
        """The numbers of those that are there, ascending."""
        return list(self.index.values())

    def table(self) -> tuple[Member, ...]:
        """A member for each place; empty ones show the first that is there."""
        first = next(iter(self.index))
        return tuple(first if m is None else m for m in self.rows)

    def alive(self) -> npt.NDArray[np.bool_]:
        """Which places are not empty."""
        alive = np.zeros(len(self.rows), np.bool_)
        alive[self.living()] = True
        return alive


@dataclass
class CatalogNode:
    """A node of the catalog: its shape, the nodes of its inputs, its members."""

    shape: Shape
    inputs: tuple[int, ...]
    members: Members = field(default_factory=Members)
