"""Traits: the properties that all kinds of physical operators define.

The installer uses traits for the slots that pass and for their facets. It depends on the kind of an
operator only for expressions, keys or members of that kind (``binding/required_facets`` has an
exhaustive match of these). An operator that differs from ``Traits`` overrides it in its class.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

from levada.plan.execution.row_layout import NOTHING, Facet


class Traits:
    """The properties of most operators."""

    __slots__ = ()

    passes_slots: ClassVar[bool] = False
    """Whether rows pass unchanged with the slots of the first input."""

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
        """Returns the input variable with the value of this output variable; None: it is computed.

        ``variables``: the variables of the output.
        """
        return name


class Plain(Traits):
    """Operators that read the same facets of every input variable, beside the facets read above."""

    __slots__ = ()

    def reads(self, weighted: bool) -> Facet:
        """Returns these facets; ``weighted``: input or output rows have weights."""
        return NOTHING


class Passing(Plain):
    """Operators whose rows pass unchanged."""

    __slots__ = ()
    passes_slots: ClassVar[bool] = True


class WholeRows(Passing):
    """Operators that compare whole rows, by all identities."""

    __slots__ = ()

    def reads(self, weighted: bool) -> Facet:
        """Returns identities."""
        return Facet.ID


class Netting(Passing):
    """Operators that compare rows with weights, since equal ones cancel each other."""

    __slots__ = ()

    def reads(self, weighted: bool) -> Facet:
        """Returns identities if there are weights."""
        return Facet.ID if weighted else NOTHING


class Counting(Passing):
    """Count windows: they compare rows, and order rows of one time by their texts."""

    __slots__ = ()

    @property
    def has_instants(self) -> bool:
        """Whether rows leave when later ones arrive."""
        return True

    def reads(self, weighted: bool) -> Facet:
        """Returns identities and texts."""
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
    """An aggregate with its argument."""

    @property
    def arg(self) -> str | None:
        """The variable; None: the row itself."""


class Grouping(Traits):
    """Groups: the keys, then the aggregates."""

    __slots__ = ()
    keys: tuple[str, ...]
    aggregates: tuple[Argument, ...]

    def source(self, name: str, variables: tuple[str, ...]) -> str | None:
        """Returns the argument of an aggregate, and a key itself."""
        if name in self.keys:
            return name
        return self.aggregates[variables.index(name) - len(self.keys)].arg
