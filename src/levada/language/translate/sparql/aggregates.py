"""Translates grouping and aggregates (SPARQL 1.1, section 18.2.4.1).

``Group`` computes keys and aggregates by variables. A key that is an expression is an ``Extend``
below it (``.g0``, or the name after AS). An aggregate inside an expression becomes a variable
(``.a0``) that the expression above reads. Equal aggregates are computed once. A variable outside
aggregates that is not a key means its SAMPLE. The syntax check refuses that in SELECT; in HAVING
and ORDER BY it is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from levada.core.expressions import Aggregate, AggregateFunction, Call, Expression, Var
from levada.language.sparql import ast
from levada.language.translate.sparql.context import Context
from levada.language.translate.sparql.exists import add_marks
from levada.language.translate.sparql.expressions import with_marks
from levada.plan.logical.nodes import Extend, Group, Node


@dataclass(slots=True)
class Grouping:
    """The grouping of one query level while its clauses are translated.

    ``aggregates``: the aggregates of the clauses so far, with the variable of each.
    """

    context: Context
    keys: tuple[str, ...]
    aggregates: dict[Aggregate, str] = field(default_factory=dict)

    def lift(self, node: Expression, known: Set[str]) -> Expression:
        """Returns an expression above the group: an aggregate becomes a variable of the group.

        A variable that is not ``known`` there (a key, or a name that SELECT has added) becomes its
        SAMPLE.
        """
        match node:
            case Aggregate():
                return self._variable(node)
            case Var(name) if name not in known:
                return self._variable(Aggregate(AggregateFunction.SAMPLE, node))
            case Call(function, args):
                return Call(function, tuple(self.lift(arg, known) for arg in args))
            case _:
                return node

    def counts_distinct_solutions(self) -> bool:
        """Whether the query has ``COUNT(DISTINCT *)``: then blank nodes must not be part of
        solutions below.
        """
        return any(aggregate.arg is None and aggregate.distinct for aggregate in self.aggregates)

    def group_node(self, child: Node) -> Group:
        """Returns the ``Group`` node after all clauses are lifted."""
        return Group(
            child,
            self.keys,
            tuple((name, aggregate) for aggregate, name in self.aggregates.items()),
        )

    def _variable(self, aggregate: Aggregate) -> Var:
        if aggregate not in self.aggregates:
            self.aggregates[aggregate] = self.context.fresh("a")
        return Var(self.aggregates[aggregate])


def group_keys(
    child: Node, keys: Sequence[ast.GroupKey], context: Context
) -> tuple[Node, tuple[str, ...]]:
    """Returns the pattern with an ``Extend`` for each key expression, and the distinct key
    variables.
    """
    names: list[str] = []
    for key in keys:
        if isinstance(key.expression, ast.Var) and key.variable is None:
            names.append(key.expression.name)
        else:
            name = context.fresh("g") if key.variable is None else key.variable.name
            value, marks = with_marks(key.expression, context)
            child = Extend(add_marks(child, marks, context), name, value)
            names.append(name)
    return child, tuple(dict.fromkeys(names))
