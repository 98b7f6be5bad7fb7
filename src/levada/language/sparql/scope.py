"""Variables in scope (SPARQL 1.1, section 18.2.1); variables and aggregates of expressions.

Order is the text's: ``SELECT *`` shows the variables in the order of their first appearance.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from levada.language.sparql import ast


def visible_names(element: ast.Element) -> Iterator[str]:
    """Yields the variables that an element of a group brings into scope, with repetitions."""
    match element:
        case ast.Triples(triples):
            for triple in triples:
                yield from _names(triple.subject, triple.predicate, triple.object)
        case ast.Group(elements):
            for inner in elements:
                yield from visible_names(inner)
        case ast.Union(branches):
            for branch in branches:
                yield from visible_names(branch)
        case ast.Optional(group):
            yield from visible_names(group)
        case ast.Graph(name, group) | ast.Window(name, group) | ast.Service(name, _, group):
            yield from _names(name)
            yield from visible_names(group)
        case ast.Bind(_, variable):
            yield variable.name
        case ast.InlineData(variables):
            yield from _names(*variables)
        case ast.SubSelect(select, where, modifiers, values):
            yield from projected_variables(select, where, modifiers, values)
        case ast.Minus() | ast.Filter():
            return


def _names(*nodes: object) -> Iterator[str]:
    return (node.name for node in nodes if isinstance(node, ast.Var))


def variables_in_scope(
    where: ast.Group | None, modifiers: ast.Modifiers, values: ast.InlineData | None
) -> list[str]:
    """Returns the distinct variables of a query level before SELECT adds any, in order of
    appearance.
    """
    names = [] if where is None else list(visible_names(where))
    names += [key.variable.name for key in modifiers.group_by if key.variable is not None]
    if values is not None:
        names += visible_names(values)
    return list(dict.fromkeys(names))


def projected_variables(
    select: ast.Select, where: ast.Group, modifiers: ast.Modifiers, values: ast.InlineData | None
) -> list[str]:
    """Returns the variables that a SELECT shows."""
    if select.projection is None:
        return variables_in_scope(where, modifiers, values)
    return list(dict.fromkeys(item.variable.name for item in select.projection))


def operands(expression: ast.Expression) -> tuple[ast.Expression, ...]:
    """Returns the direct parts of an expression."""
    match expression:
        case ast.Operation(_, parts) | ast.BuiltIn(_, parts) | ast.FunctionCall(_, parts):
            return parts
        case ast.Aggregate(_, arg):
            return () if arg is None else (arg,)
        case _:
            return ()


def aggregates(expressions: Iterable[ast.Expression]) -> Iterator[ast.Aggregate]:
    """Yields the outermost aggregates in expressions."""
    for expression in expressions:
        if isinstance(expression, ast.Aggregate):
            yield expression
        else:
            yield from aggregates(operands(expression))


def outside_aggregates(expression: ast.Expression) -> Iterator[ast.Var]:
    """Yields the variables of an expression outside aggregates."""
    if isinstance(expression, ast.Var):
        yield expression
    elif not isinstance(expression, ast.Aggregate):
        for part in operands(expression):
            yield from outside_aggregates(part)


def is_grouped(select: ast.Form, modifiers: ast.Modifiers) -> bool:
    """Whether a query level groups: by GROUP BY, or as one group by an aggregate (18.2.4.1)."""
    used = [*modifiers.having, *(key.expression for key in modifiers.order_by)]
    if isinstance(select, ast.Select) and select.projection is not None:
        used += [item.expression for item in select.projection if item.expression is not None]
    return bool(modifiers.group_by) or any(aggregates(used))
