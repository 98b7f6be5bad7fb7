"""Picks and the operators of relaxed joins below them, by variable names
(``plan/sharing/relaxation``).
"""

from __future__ import annotations

from levada.core.expressions import Call, Const, Expression, Function
from levada.core.frozen import frozen
from levada.core.rdf_terms import Term
from levada.plan.execution.join_kinds import Order, compared_expression
from levada.plan.physical import traits as t


@frozen
class Key:
    """A variable that must equal one of these terms.

    ``source``: the inputs that lead from the pick to the pattern with the term, and the position
    there; () if it is from a condition.
    """

    name: str
    terms: tuple[Term, ...]
    source: tuple[int, ...]


@frozen
class Comparison:
    """A comparison of a variable with a constant; comparisons of a variable by the same ``order``
    are one ``range``.
    """

    range: int
    name: str
    function: Function
    term: Term
    order: Order

    @property
    def condition(self) -> Call:
        """The comparison as a condition."""
        return Call(self.function, (compared_expression(self.name, self.order), Const(self.term)))


@frozen
class Pick(t.Traits):
    """Rows of a shared join that satisfy these conditions and that count in the windows.

    ``rest``: conditions of any other form.
    """

    keys: tuple[Key, ...]
    tests: tuple[Comparison, ...]
    rest: tuple[Expression, ...] = ()


@frozen
class ByWindow(t.Passing):
    """Rows of a pick with times of each leaf, turned into rows with times of each window
    (``per_leaf_times``).
    """


@frozen
class Instants(t.Plain):
    """The instants of a stream's numbers: one of the numbered rows for each instant."""


@frozen
class Narrow(t.Passing):
    """Rows of a pick joined by numbers, as rows of the query's own count window.

    The second input has the instants of numbers.
    """

    @property
    def has_instants(self) -> bool:
        """Whether rows come and go with the numbers."""
        return True
