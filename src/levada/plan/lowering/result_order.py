"""Finds the order of the rows of a difference: the query's ORDER BY, as far as it follows from
shown variables.

ISTREAM and DSTREAM compare solutions regardless of their order, and hidden variables are not part
of a solution. So the first condition on a hidden variable ends the order. Cost: linear in the nodes
above the pattern.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from levada.core.expressions import Call, Expression, Var, random, variables
from levada.plan.logical import nodes as a

Keys = tuple[tuple[Expression, bool], ...]


def find_shown_order(node: a.Node, names: Collection[str]) -> Keys:
    """Returns the ORDER BY conditions on top of a pattern that use only shown variables.

    >>> find_shown_order(a.OrderBy(a.Unit(), ((Var("x"), True), (Var("y"), False))), ["x"])
    ((Var(name='x'), True),)
    """
    while isinstance(node, (a.Project, a.Distinct, a.Slice)):
        node = node.child
    if not isinstance(node, (a.OrderBy, a.Top)):
        return ()
    called = _names_of(node.child, names)
    keys = []
    for condition, descending in node.keys:
        if random(condition) or not all(v in called for v in variables(condition)):
            break
        keys.append((_rename(condition, called), descending))
    return tuple(keys)


def _names_of(node: a.Node, names: Collection[str]) -> dict[str, str]:
    """Returns the shown name of each variable: itself, or the name that SELECT gives it.

    An example is ``(COUNT(*) AS ?n)``.
    """
    called = {name: name for name in names}
    while isinstance(node, a.Extend):
        if node.variable in names and isinstance(node.expression, Var):
            called.setdefault(node.expression.name, node.variable)
        node = node.child
    return called


def _rename(expression: Expression, called: Mapping[str, str]) -> Expression:
    match expression:
        case Var(name):
            return Var(called[name])
        case Call(function, args):
            return Call(function, tuple(_rename(arg, called) for arg in args))
        case _:
            return expression
