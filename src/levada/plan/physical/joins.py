"""Joins of many inputs in one step, by variable names: of stars (``MultiwayJoin``,
``AdaptiveJoin``), and of chains and circles (``LinkedJoin``); and what joins of two read where they
are (``Arrange``).

What a join of two is stands in ``operators``; these are put in its place (``multiway``,
``linked``), or below it (``arranged``), with the same rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from levada.plan.physical import traits as t


@dataclass(frozen=True, slots=True)
class MultiwayJoin(t.Pairing):
    """Rows of all inputs with equal keys whose intervals have an instant in common, put together in
    one step; but for the keys no two inputs share a variable. ``raw``: as of a join.
    """

    keys: tuple[str, ...]
    raw: tuple[bool, ...]

    def makes_set(self, i: int) -> bool:
        """A raw one."""
        return self.raw[i]


@dataclass(frozen=True, slots=True)
class AdaptiveJoin(MultiwayJoin):
    """The same, in one step or two at a time as costs less, which is found while it runs."""


@dataclass(frozen=True, slots=True)
class LinkedJoin(t.Pairing):
    """Rows of all inputs that agree on what they share, put together in one step. ``shared``: of
    each input the variables that others have, too; ``copied``: whose rows go to all partitions. The
    others are together by one of these variables, or there is one such input. ``raw``: as of a
    join.
    """

    shared: tuple[tuple[str, ...], ...]
    raw: tuple[bool, ...]
    copied: tuple[bool, ...]

    def makes_set(self, i: int) -> bool:
        """A raw one."""
        return self.raw[i]


@dataclass(frozen=True, slots=True)
class Arrange(t.Traits):
    """Static rows kept by ``keys``, which no row leaves unbound, for whoever joins with them."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArrangeDistinct(Arrange):
    """The same for who asks only whether there are such: equal ones once."""


@dataclass(frozen=True, slots=True)
class RelaxedStatic(Arrange):
    """The same for relaxed joins, some of whose queries want other rows of it."""


@dataclass(frozen=True, slots=True)
class ArrangeStream(Arrange):
    """Rows of streams, likewise; ``raw`` ones are made a set on the way in."""

    raw: bool

    def makes_set(self, i: int) -> bool:
        """A raw one."""
        return self.raw


@dataclass(frozen=True, slots=True)
class RelaxedStream(ArrangeStream):
    """The same for relaxed joins."""
