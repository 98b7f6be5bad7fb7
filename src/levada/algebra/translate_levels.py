"""One query level, a query or sub-select, above its pattern (SPARQL 1.1, sections 18.2.4 and 18.2.5).

From the pattern upwards: Group, HAVING, VALUES, the expressions of SELECT, ORDER BY, projection, DISTINCT, OFFSET and LIMIT.
"""

from __future__ import annotations

from levada.algebra.expression import Expression, Function
from levada.algebra.nodes import Distinct, Extend, Filter, Join, Node, OrderBy, Project, Slice, Unit, Values
from levada.algebra.translate_aggregates import Grouping, group_keys
from levada.algebra.translate_context import Context
from levada.algebra.translate_expressions import expression, operation
from levada.syntax import ast
from levada.syntax.scope import in_scope, is_grouped, projected

Data = tuple[ast.InlineData | None, Values | None]


def level(
    below: Node,
    form: ast.Form,
    where: ast.Group,
    modifiers: ast.Modifiers,
    values: Data,
    context: Context,
    *,
    columns: tuple[str, ...] | None = None,
) -> tuple[Node, tuple[str, ...]]:
    """The algebra of a query level over its pattern ``below``, and its columns.

    ``columns``: what is projected where the form is not SELECT; None projects nothing away. ``values`` is the VALUES
    behind the level, as written and as translated.
    """
    node, selected, having, order = _clauses(below, form, where, modifiers, context)
    if having:
        node = Filter(node, operation(Function.AND, having))
    if values[1] is not None:
        node = values[1] if isinstance(node, Unit) else Join(node, values[1])
    for name, value in selected:
        node = Extend(node, name, value)
    if order:
        node = OrderBy(node, tuple(order))
    if isinstance(form, ast.Select):
        columns = tuple(projected(form, where, modifiers, values[0]))
    if columns is not None:
        node = Project(node, columns)
    if isinstance(form, ast.Select) and form.duplicates is not ast.Duplicates.ALL:
        node = Distinct(node)
    if modifiers.limit is not None or modifiers.offset:
        node = Slice(node, modifiers.offset or 0, modifiers.limit)
    return node, columns or ()


Clauses = tuple[Node, list[tuple[str, Expression]], list[Expression], list[tuple[Expression, bool]]]


def _clauses(below: Node, form: ast.Form, where: ast.Group, modifiers: ast.Modifiers, context: Context) -> Clauses:
    """The pattern, grouped if the level groups, and the expressions of SELECT, HAVING and ORDER BY above it."""
    items = (form.projection or ()) if isinstance(form, ast.Select) else ()
    selected = [(i.variable.name, expression(i.expression, context)) for i in items if i.expression is not None]
    having = [expression(condition, context) for condition in modifiers.having]
    order = [(expression(key.expression, context), key.descending) for key in modifiers.order_by]
    if not is_grouped(form, modifiers):
        return below, selected, having, order
    child, keys = group_keys(below, modifiers.group_by, context)
    grouping = Grouping(context, keys)
    known = set(keys)
    lifted: list[tuple[str, Expression]] = []
    for name, value in selected:
        lifted.append((name, grouping.lift(value, known)))
        known.add(name)
    having = [grouping.lift(condition, set(keys)) for condition in having]
    order = [(grouping.lift(value, known), descending) for value, descending in order]
    if grouping.counts_distinct_solutions():
        child = Project(child, tuple(dict.fromkeys([*in_scope(where, modifiers, None), *keys])))
    return grouping.over(child), lifted, having, order
