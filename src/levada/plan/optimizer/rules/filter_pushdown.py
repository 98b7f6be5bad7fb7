"""Splits filters and pushes them down to where their variables are bound: fewer solutions are
joined, moved and kept.

``FILTER(p && q)`` keeps a solution iff both are true, as two filters do (SPARQL 1.1, 17.2: an error
is not true). A filter passes a node if it reads the same values below it:

    Union                     into both sides
    LeftJoin                  to the left, if the right side does not change its variables
    Minus, Exists, Mark       to the left; a mark is bound here
    Extend                    if it does not read the variable, or if that is a constant, which
                              replaces it then; drawn values stay below
    Project                   if it reads no hidden variable: these are unbound above
    Distinct                  always
    Group                     if it reads keys alone: it keeps or drops whole groups
    Join, Conjunction         into a part that binds its variables in every solution; otherwise it
                              is a condition of the conjunction, applied as early as possible

Slice and Top count their input, so no filter passes them. Filters that depend on the report (RAND,
BNODE, NOW, ..) stay in place.
"""

from __future__ import annotations

from dataclasses import replace

from levada.core.expressions import (
    Call,
    Const,
    Expression,
    Function,
    Var,
    per_report,
    random,
    variables,
)
from levada.core.rdf_terms import Term
from levada.plan.logical import nodes as a
from levada.plan.logical.traversal import children
from levada.plan.logical.variables import certain_variables, possible_variables
from levada.plan.optimizer.rule import Context, rewrite_query

MOST_PARTS = 200
"""A filter of more conditions stays unchanged: each would be a node above the last one, and later
stages walk nodes recursively.
"""


def push_filters(query: a.Query, context: Context) -> a.Query:
    """Returns the query with each part of a filter as deep as possible."""
    return rewrite_query(query, _push)


def _push(node: a.Node) -> a.Node:
    if not isinstance(node, a.Filter):
        return node
    whole, late = node.child, []
    conditions = conjuncts(node.condition)
    if len(conditions) > MOST_PARTS:
        return node
    for condition in conditions:
        if per_report(condition):
            late.append(condition)
        else:
            whole = _place(whole, condition, frozenset(variables(condition)))
    for condition in late:
        whole = a.Filter(whole, condition)
    return node if whole == node else whole


def conjuncts(condition: Expression) -> list[Expression]:
    """Returns the parts of a conjunction: a filter keeps a solution iff all are true.

    >>> len(conjuncts(Call(Function.AND, (Var("x"), Call(Function.AND, (Var("y"), Var("z")))))))
    3
    """
    if isinstance(condition, Call) and condition.function is Function.AND:
        return [c for arg in condition.args for c in conjuncts(arg)]
    return [condition]


def _place(node: a.Node, condition: Expression, names: frozenset[str]) -> a.Node:
    """Places a condition on a node as deep as possible; ``names`` are its variables."""
    match node:
        case a.Filter(child, other):
            below = _place(child, condition, names)
            stays = isinstance(below, a.Filter) and below.child is child
            if not stays or per_report(other):
                return replace(node, child=below)
        case a.Distinct(child):
            return replace(node, child=_place(child, condition, names))
        case a.Project(child, shown) if names.issubset(shown):
            return replace(node, child=_place(child, condition, names))
        case a.Group(child, keys, _) if names and names.issubset(keys):
            return replace(node, child=_place(child, condition, names))
        case a.Extend(child, variable, expression) if not random(expression):
            if variable not in names:
                return replace(node, child=_place(child, condition, names))
            if isinstance(expression, Const) and not _asks_bound(condition, variable):
                constant = _with_constant(condition, variable, expression.term)
                return replace(node, child=_place(child, constant, names - {variable}))
        case a.Union(left, right):
            return a.Union(_place(left, condition, names), _place(right, condition, names))
        case a.LeftJoin(left, right, _) if names.isdisjoint(
            possible_variables(right) - certain_variables(left)
        ):
            return replace(node, left=_place(left, condition, names))
        case a.Minus(left, _) | a.Exists(left, _, _, _):
            return replace(node, left=_place(left, condition, names))
        case a.Mark(left, _, _, variable) if variable not in names:
            return replace(node, left=_place(left, condition, names))
        case a.Bgp(_, patterns) if len(patterns) > 1:
            return a.Conjunction((node,), (condition,))
        case a.Join(left, right):
            if (at := _part((left, right), names)) is not None:
                left, right = _place_in_child((left, right), at, condition, names)
                return a.Join(left, right)
        case a.Conjunction(parts, conditions):
            at = _part(parts, names)
            if at is None or any(
                _is_leaf(part) and names <= certain_variables(part) for part in parts
            ):
                return a.Conjunction(parts, (*conditions, condition))
            return a.Conjunction(_place_in_child(parts, at, condition, names), conditions)
        case _:
            pass
    return a.Filter(node, condition)


def _part(parts: tuple[a.Node, ...], names: frozenset[str]) -> int | None:
    """Returns the first part all of whose solutions bind these variables."""
    return next(
        (i for i, part in enumerate(parts) if names and names <= certain_variables(part)), None
    )


def _is_leaf(node: a.Node) -> bool:
    """Whether a part of a conjunction takes no filter: paths are searched from the other parts."""
    return not children(node) or isinstance(node, (a.Closure, a.SubQuery))


def _place_in_child(
    parts: tuple[a.Node, ...], at: int, condition: Expression, names: frozenset[str]
) -> tuple[a.Node, ...]:
    return (*parts[:at], _place(parts[at], condition, names), *parts[at + 1 :])


def _asks_bound(condition: Expression, variable: str) -> bool:
    match condition:
        case Call(Function.BOUND, (Var(name),)):
            return name == variable
        case Call(_, args):
            return any(_asks_bound(arg, variable) for arg in args)
        case _:
            return False


def _with_constant(condition: Expression, variable: str, term: Term) -> Expression:
    match condition:
        case Var(name) if name == variable:
            return Const(term)
        case Call(function, args):
            return Call(function, tuple(_with_constant(arg, variable, term) for arg in args))
        case _:
            return condition
