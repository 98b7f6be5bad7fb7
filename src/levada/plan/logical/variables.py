"""The variables of a pattern: those that a solution may bind, those that every solution binds, and
those that the pattern mentions.

They decide the meaning of EXISTS (``language/translate/sparql/exists``). Cost: linear in the tree.
"""

from __future__ import annotations

from levada.core import expressions as ex
from levada.plan.logical import nodes as a
from levada.plan.logical.traversal import children, memoize


@memoize
def possible_variables(node: a.Node) -> frozenset[str]:
    """Returns the variables that a solution may bind: those in scope (18.2.1) and blank nodes.

    >>> sorted(possible_variables(a.Minus(a.Values(("x",), ()), a.Values(("x", "y"), ()))))
    ['x']
    """
    match node:
        case a.Minus(left, _) | a.Exists(left, _, _, _) | a.Except(left, _):
            return possible_variables(left)
        case a.Closure():
            return frozenset((node.start, node.end))
        case a.Mark(left, _, _, variable):
            return possible_variables(left) | {variable}
        case a.SubQuery(columns=columns):
            return frozenset(name for _, name in columns)
        case a.Extend(child, variable, _) | a.Number(child, variable):
            return possible_variables(child) | {variable}
        case a.Group(_, keys, aggregates):
            return frozenset(keys) | {name for name, _ in aggregates}
        case a.Project(_, names):
            return frozenset(names)
        case _:
            return _leaf_variables(node).union(*map(possible_variables, children(node)))


@memoize
def certain_variables(node: a.Node) -> frozenset[str]:
    """Returns the variables that every solution binds.

    >>> sorted(certain_variables(a.LeftJoin(a.Values(("x",), ()), a.Values(("x", "y"), ()), None)))
    ['x']
    """
    match node:
        case a.Values(names, rows):
            return frozenset(
                name for i, name in enumerate(names) if all(row[i] is not None for row in rows)
            )
        case (
            a.LeftJoin(left, _, _) | a.Minus(left, _) | a.Exists(left, _, _, _) | a.Except(left, _)
        ):
            return certain_variables(left)
        case a.Closure():
            return frozenset((node.start, node.end))
        case a.Mark(left, _, _, variable):
            return certain_variables(left) | {variable}
        case a.SubQuery(columns=columns):
            return frozenset(name for _, name in columns)
        case a.Filter(child, ex.Call(ex.Function.BOUND, (ex.Var(name),))):
            return certain_variables(child) | {name}
        case a.Union(left, right):
            return certain_variables(left) & certain_variables(right)
        case a.Group(child, keys, _):
            return certain_variables(child) & frozenset(keys)
        case a.Project(child, names):
            return certain_variables(child) & frozenset(names)
        case _:
            return _leaf_variables(node).union(*map(certain_variables, children(node)))


def never_bound_variables(node: a.Node) -> frozenset[str]:
    """Returns the variables in scope that no solution binds, as the filters above a pattern imply.

    >>> not_bound = ex.Call(ex.Function.NOT, (ex.Call(ex.Function.BOUND, (ex.Var("x"),)),))
    >>> sorted(never_bound_variables(a.Filter(a.Values(("x", "y"), ((None, None),)), not_bound)))
    ['x']
    """
    match node:
        case a.Filter(
            child, ex.Call(ex.Function.NOT, (ex.Call(ex.Function.BOUND, (ex.Var(name),)),))
        ):
            return never_bound_variables(child) | {name}
        case a.Filter(child, _):
            return never_bound_variables(child)
        case _:
            return frozenset()


@memoize
def mentioned_variables(node: a.Node) -> frozenset[str]:
    """Returns every variable in a pattern, also in its expressions and on the right of MINUS.

    A sub-select counts only with the variables that it shows: a hidden variable differs from one of
    the same name outside (18.2.1).

    >>> right = a.Project(a.Values(("y", "z"), ()), ("y",))
    >>> sorted(mentioned_variables(a.Minus(a.Values(("x",), ()), right)))
    ['x', 'y']
    """
    if isinstance(node, a.Project):
        return frozenset(node.variables)
    return _node_variables(node).union(*map(mentioned_variables, children(node)))


def _node_variables(node: a.Node) -> frozenset[str]:
    """Returns the variables of a node itself."""
    used = _leaf_variables(node).union(*(ex.variables(e) for e in expressions(node)))
    match node:
        case a.Extend(_, variable, _) | a.Mark(_, _, _, variable):
            used |= {variable}
        case a.Number(_, variable, _, partition):
            used |= {variable, *partition}
        case a.Group(_, keys, aggregates):
            used |= {*keys, *(name for name, _ in aggregates)}
        case _:
            pass
    return used


def expressions(node: a.Node) -> tuple[ex.Expression, ...]:
    """Returns the expressions of a node itself."""
    match node:
        case (
            a.LeftJoin(_, _, condition) | a.Exists(_, _, condition, _) | a.Mark(_, _, condition, _)
        ):
            return () if condition is None else (condition,)
        case a.Filter(_, expression) | a.Extend(_, _, expression):
            return (expression,)
        case a.Group(_, _, aggregates):
            return tuple(aggregate for _, aggregate in aggregates)
        case a.OrderBy(_, keys) | a.Top(_, keys) | a.Number(keys=keys):
            return tuple(key for key, _ in keys)
        case a.Conjunction(_, conditions):
            return conditions
        case _:
            return ()


def draws_values(node: a.Node) -> bool:
    """Whether an expression draws a value in each solution (RAND, UUID, BNODE)."""
    return any(map(ex.random, expressions(node))) or any(map(draws_values, children(node)))


def _leaf_variables(node: a.Node) -> frozenset[str]:
    """Returns the variables of a leaf."""
    match node:
        case a.Bgp(_, patterns):
            return frozenset(
                p.name for pattern in patterns for p in pattern.positions if isinstance(p, ex.Var)
            )
        case a.Entailed(_, pattern):
            return frozenset(p.name for p in pattern.positions if isinstance(p, ex.Var))
        case a.TripleArrivals(_, pattern, variable):
            return frozenset(
                (variable, *(p.name for p in pattern.positions if isinstance(p, ex.Var)))
            )
        case a.Scan(_, columns):
            return frozenset(name for _, name in columns)
        case a.Values(names, _):
            return frozenset(names)
        case _:
            return frozenset()
