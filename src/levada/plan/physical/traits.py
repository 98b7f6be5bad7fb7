"""What a physical operator says of itself: whatever is asked of all kinds of operators alike.

Installing asks which slots pass and what must be known of them; it names a kind only where
expressions, keys or members of that kind decide (``plan/install/facets`` has an exhaustive match of
those). An operator that differs from ``Traits`` says so in its class.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from levada.plan.execution.row_layout import NOTHING, Facet


class Traits:
    """What holds of most operators."""

    __slots__ = ()

    passes_slots: ClassVar[bool] = False
    """Whether rows go through with the slots of the first input, as they come."""

    side_by_side: ClassVar[bool] = False
    """Whether all inputs must have the same columns."""

    @property
    def puts_together(self) -> bool:
        """Whether a variable may have its values from several inputs."""
        return False

    @property
    def has_instants(self) -> bool:
        """Whether its rows come and go at other instants than the times of their triples."""
        return False

    def makes_set(self, i: int) -> bool:
        """Whether it makes the rows of input ``i`` a set, each with its earlier occurrence."""
        return False

    def source(self, name: str, variables: tuple[str, ...]) -> str | None:
        """The variable of the inputs whose value this one of the output's ``variables`` has; None:
        it is computed.
        """
        return name


class Plain(Traits):
    """Of every variable of the inputs it reads the same, beside what is read above."""

    __slots__ = ()

    def reads(self, weighted: bool) -> Facet:
        """That; ``weighted``: rows have weights where they come or where they go."""
        return NOTHING


class Passing(Plain):
    """Rows go through as they come."""

    __slots__ = ()
    passes_slots: ClassVar[bool] = True


class WholeRows(Passing):
    """Whole rows are told apart: by all identities."""

    __slots__ = ()

    def reads(self, weighted: bool) -> Facet:
        """Identities."""
        return Facet.ID


class Netting(Passing):
    """Rows with weights are told apart, since equal ones cancel each other."""

    __slots__ = ()

    def reads(self, weighted: bool) -> Facet:
        """Identities, if there are weights."""
        return Facet.ID if weighted else NOTHING


class Counting(Passing):
    """Count windows: rows are told apart, and of one time are in the order of their texts."""

    __slots__ = ()

    @property
    def has_instants(self) -> bool:
        """Rows leave with later ones."""
        return True

    def reads(self, weighted: bool) -> Facet:
        """Identities and texts."""
        return Facet.ID | Facet.TEXT


class SideBySide(Traits):
    """Inputs with the same columns."""

    __slots__ = ()
    side_by_side: ClassVar[bool] = True
    puts_together: ClassVar[bool] = True


class Pairing(Traits):
    """Pairs of rows: a shared variable that one row leaves unbound is filled from the other."""

    __slots__ = ()
    puts_together: ClassVar[bool] = True


class Argument(Protocol):
    """An aggregate, as far as it says of what."""

    @property
    def arg(self) -> str | None:
        """The variable; None: the row itself."""


class Grouping(Traits):
    """Groups: the keys, then the aggregates."""

    __slots__ = ()
    keys: tuple[str, ...]
    aggregates: tuple[Argument, ...]

    def source(self, name: str, variables: tuple[str, ...]) -> str | None:
        """Of an aggregate its argument."""
        if name in self.keys:
            return name
        return self.aggregates[variables.index(name) - len(self.keys)].arg
