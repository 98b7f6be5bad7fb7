"""Translates one query level, a query or sub-select, above its pattern (SPARQL 1.1, 18.2.4 and
18.2.5).

From the pattern upwards: Group, HAVING, VALUES, the expressions of SELECT, ORDER BY, projection,
DISTINCT, OFFSET and LIMIT.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, field

from levada.core.expressions import Aggregate, AggregateFunction, Call, Expression, Function, Var
from levada.core.frozen import frozen
from levada.language.sparql import ast
from levada.language.sparql.scope import is_grouped, projected_variables, variables_in_scope
from levada.language.translate.sparql.context import Context, Marked
from levada.language.translate.sparql.exists import add_marks
from levada.language.translate.sparql.expressions import expression, operation, with_marks
from levada.plan.logical.nodes import (
    Distinct,
    Extend,
    Filter,
    Group,
    Join,
    Node,
    OrderBy,
    Project,
    Slice,
    Unit,
    Values,
)

# Translates grouping and aggregates (SPARQL 1.1, section 18.2.4.1).
#
# ``Group`` computes keys and aggregates by variables. A key that is an expression is an ``Extend``
# below it (``.g0``, or the name after AS). An aggregate inside an expression becomes a variable
# (``.a0``) that the expression above reads. Equal aggregates are computed once. A variable outside
# aggregates that is not a key means its SAMPLE. The syntax check refuses that in SELECT; in HAVING
# and ORDER BY it is allowed.


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


Data = tuple[ast.InlineData | None, Values | None]


def level(
    below: Node,
    form: ast.Form,
    where: ast.Group,
    modifiers: ast.Modifiers,
    values: Data,
    *,
    context: Context,
    columns: tuple[str, ...] | None = None,
) -> tuple[Node, tuple[str, ...]]:
    """Returns the algebra of a query level over its pattern ``below``, and its columns.

    ``columns``: the projected columns if the form is not SELECT; None projects nothing away.
    ``values``: the VALUES after the level, as written and as translated.
    """
    clauses = _clauses(below, form, where, modifiers, context)
    node = clauses.node
    if clauses.having.values:
        node = Filter(
            add_marks(node, clauses.having.marks, context),
            operation(Function.AND, clauses.having.values),
        )
    if values[1] is not None:
        node = values[1] if isinstance(node, Unit) else Join(node, values[1])
    for name, selected in clauses.selected:
        node = Extend(add_marks(node, selected.marks, context), name, selected.values[0])
    if clauses.order.values:
        keys = zip(
            clauses.order.values, (key.descending for key in modifiers.order_by), strict=True
        )
        node = OrderBy(add_marks(node, clauses.order.marks, context), tuple(keys))
    if isinstance(form, ast.Select):
        columns = tuple(projected_variables(form, where, modifiers, values[0]))
    if columns is not None:
        node = Project(node, columns)
    if isinstance(form, ast.Select) and form.duplicates is not ast.Duplicates.ALL:
        node = Distinct(node)
    if modifiers.limit is not None or modifiers.offset:
        node = Slice(node, modifiers.offset or 0, modifiers.limit)
    return node, columns or ()


@frozen
class _Clause:
    """The expressions of a clause, and each EXISTS in them that is not in an aggregate."""

    values: list[Expression]
    marks: list[Marked]

    def lift(self, grouping: Grouping, known: Set[str]) -> _Clause:
        """Returns the clause above the group."""
        here = {*known, *(mark.variable for mark in self.marks)}
        return _Clause([grouping.lift(value, here) for value in self.values], self.marks)


@frozen
class _Clauses:
    """A level's pattern, grouped if it groups, and the clauses above it; SELECT's by name."""

    node: Node
    selected: list[tuple[str, _Clause]]
    having: _Clause
    order: _Clause


def _clauses(
    below: Node, form: ast.Form, where: ast.Group, modifiers: ast.Modifiers, context: Context
) -> _Clauses:
    grouped: list[Marked] = []

    def clause(expressions: Sequence[ast.Expression]) -> _Clause:
        with context.marking() as marks:
            values = [expression(node, context) for node in expressions]
        grouped.extend(mark for mark in marks if mark.below)
        return _Clause(values, [mark for mark in marks if not mark.below])

    items = (form.projection or ()) if isinstance(form, ast.Select) else ()
    selected = [
        (i.variable.name, clause([i.expression])) for i in items if i.expression is not None
    ]
    having = clause(modifiers.having)
    order = clause([key.expression for key in modifiers.order_by])
    if not is_grouped(form, modifiers):
        return _Clauses(below, selected, having, order)
    child, keys = group_keys(add_marks(below, grouped, context), modifiers.group_by, context)
    grouping = Grouping(context, keys)
    known = set(keys)
    lifted: list[tuple[str, _Clause]] = []
    for name, one in selected:
        lifted.append((name, one.lift(grouping, known)))
        known.add(name)
    having = having.lift(grouping, set(keys))
    order = order.lift(grouping, known)
    if grouping.counts_distinct_solutions():
        child = Project(
            child, tuple(dict.fromkeys([*variables_in_scope(where, modifiers, None), *keys]))
        )
    return _Clauses(grouping.group_node(child), lifted, having, order)
