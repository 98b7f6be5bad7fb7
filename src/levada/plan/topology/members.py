"""The members of a node of the catalog, in the order of their numbers.

A number is never used again, because rows of state refer to it: what is gone leaves an empty place.
In a sealed plan an empty place looks like some living member and is not ``alive``, so that tables
by member have no holes; it costs a few bytes of arrays. A node that has too many of them is
``spent``: what comes takes a new node of the same shape, the old one goes with its last member, and
so does its state. So what a plan costs follows from the queries that are there, however many have
been.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from levada.plan.sealed.shapes import Member

EMPTY = 512  # empty places that are not worth a new node
SHARE = 4  # nor so many for each living member


@dataclass
class Members:
    """A table of members; ``born``: the plan version of each."""

    index: dict[Member, int] = field(default_factory=dict)
    rows: list[Member | None] = field(default_factory=list)
    uses: list[int] = field(default_factory=list)
    born: list[int] = field(default_factory=list)

    def add(self, member: Member, version: int) -> int:
        """The number of a member that is new."""
        at = self.index[member] = len(self.rows)
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

    def __getitem__(self, at: int) -> Member:
        member = self.rows[at]
        assert member is not None, "a member that is there"
        return member

    @property
    def spent(self) -> bool:
        """Whether new members had better go to a new node."""
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

    def born_after(self, version: int) -> npt.NDArray[np.bool_]:
        """The members that this plan version did not have."""
        return np.array(self.born, np.int64) > version
