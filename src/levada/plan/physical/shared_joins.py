"""Picks and what relaxed joins know of them, by variable names (``plan/install/relax``)."""

from __future__ import annotations

from levada.core.expressions import Call, Const, Expression, Function
from levada.core.frozen import frozen
from levada.core.rdf_terms import Term
from levada.plan.execution.join_kinds import Order, compared_expression
from levada.plan.physical import traits as t


@frozen
class Key:
    """A variable that is one of these terms. ``source``: the inputs that lead from the pick to the
    pattern of which it was lifted, and the position there; () if it was one of a condition.
    """

    name: str
    terms: tuple[Term, ...]
    source: tuple[int, ...]


@frozen
class Comparison:
    """A variable against a constant; those of a variable below a join that tell its rows by the
    same ``order`` are one ``range``.
    """

    range: int
    name: str
    function: Function
    term: Term
    order: Order

    @property
    def condition(self) -> Call:
        """It as a condition."""
        return Call(self.function, (compared_expression(self.name, self.order), Const(self.term)))


@frozen
class Pick(t.Traits):
    """Of a join that others share, the rows that satisfy these and that count in the windows.
    ``rest``: conditions of any other form.
    """

    keys: tuple[Key, ...]
    tests: tuple[Comparison, ...]
    rest: tuple[Expression, ...] = ()


@frozen
class ByWindow(t.Passing):
    """Rows of a pick that have times of each leaf, as those of the query's own join: with times of
    each window (``shared/by_leaf``).
    """


@frozen
class Instants(t.Plain):
    """When each number of a stream came: of numbered rows one for each instant."""


@frozen
class Narrow(t.Passing):
    """Rows of a pick that are joined by their numbers, as those of the query's own count window;
    the second input says when numbers came.
    """

    @property
    def has_instants(self) -> bool:
        """Rows come and go when numbers come."""
        return True
