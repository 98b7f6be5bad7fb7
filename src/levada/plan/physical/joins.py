"""Joins of many inputs in one step, by variable names: stars (``MultiwayJoin``, ``AdaptiveJoin``),
chains and circles (``LinkedJoin``), and arrangements that binary joins read (``Arrange``).

``operators`` defines the binary join. These operators replace it (``multiway_join``,
``replicated_join``) or are placed below it (``static_arrangements``), with the same rows.
"""

from __future__ import annotations

from levada.core.frozen import frozen
from levada.plan.physical import traits as t


@frozen
class MultiwayJoin(t.Pairing):
    """Combined rows of all inputs with equal keys and intersecting intervals, in one step.

    No two inputs share a variable except for the keys. ``raw``: as in a join.
    """

    keys: tuple[str, ...]
    raw: tuple[bool, ...]

    def makes_set(self, i: int) -> bool:
        """Whether the input is raw."""
        return self.raw[i]


@frozen
class AdaptiveJoin(MultiwayJoin):
    """A ``MultiwayJoin`` that runs in one step or two at a time, whichever costs less while it
    runs.
    """


@frozen
class LinkedJoin(t.Pairing):
    """Combined rows of all inputs that agree on shared variables, in one step.

    ``shared``: the variables of each input that others have, too. ``copied``: inputs whose rows go
    to all partitions. The others are partitioned by one of these variables, or there is one such
    input. ``raw``: as in a join.
    """

    shared: tuple[tuple[str, ...], ...]
    raw: tuple[bool, ...]
    copied: tuple[bool, ...]

    def makes_set(self, i: int) -> bool:
        """Whether the input is raw."""
        return self.raw[i]


@frozen
class Arrange(t.Traits):
    """Static rows kept by ``keys``, which are always bound, for all joins with them."""

    keys: tuple[str, ...]


@frozen
class ArrangeDistinct(Arrange):
    """An ``Arrange`` for existence tests: equal rows are kept once."""


@frozen
class RelaxedStatic(Arrange):
    """An ``Arrange`` for relaxed joins, whose queries may want other rows of it."""


@frozen
class ArrangeStream(Arrange):
    """Rows of streams kept by ``keys``; ``raw`` rows are made a set on the way in."""

    raw: bool

    def makes_set(self, i: int) -> bool:
        """Whether the rows are raw."""
        return self.raw


@frozen
class RelaxedStream(ArrangeStream):
    """An ``ArrangeStream`` for relaxed joins."""
