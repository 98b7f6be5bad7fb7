"""Joins of many inputs in one step, by variable names: of stars (``MultiwayJoin``,
``AdaptiveJoin``), and of chains and circles (``LinkedJoin``); and what joins of two read where they
are (``Arrange``).

What a join of two is stands in ``operators``; these are put in its place (``multiway``,
``linked``), or below it (``arranged``), with the same rows.
"""

from __future__ import annotations

from levada.core.frozen import frozen
from levada.plan.physical import traits as t


@frozen
class MultiwayJoin(t.Pairing):
    """Rows of all inputs with equal keys whose intervals have an instant in common, put together in
    one step; but for the keys no two inputs share a variable. ``raw``: as of a join.
    """

    keys: tuple[str, ...]
    raw: tuple[bool, ...]

    def makes_set(self, i: int) -> bool:
        """A raw one."""
        return self.raw[i]


@frozen
class AdaptiveJoin(MultiwayJoin):
    """The same, in one step or two at a time as costs less, which is found while it runs."""


@frozen
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


@frozen
class Arrange(t.Traits):
    """Static rows kept by ``keys``, which no row leaves unbound, for whoever joins with them."""

    keys: tuple[str, ...]


@frozen
class ArrangeDistinct(Arrange):
    """The same for who asks only whether there are such: equal ones once."""


@frozen
class RelaxedStatic(Arrange):
    """The same for relaxed joins, some of whose queries want other rows of it."""


@frozen
class ArrangeStream(Arrange):
    """Rows of streams, likewise; ``raw`` ones are made a set on the way in."""

    raw: bool

    def makes_set(self, i: int) -> bool:
        """A raw one."""
        return self.raw


@frozen
class RelaxedStream(ArrangeStream):
    """The same for relaxed joins."""
