"""Removes the empty group, whose one solution is compatible with every other one.

A join with it, and an OPTIONAL, MINUS or EXISTS of it, is the other side (SPARQL 1.1, 18.5):

    Join(Unit, X) = Join(X, Unit) = LeftJoin(X, Unit) = Minus(X, Unit) = Exists(X, Unit) = X

``VALUES () { () }`` is the same solution. NOT EXISTS of it has no solutions, and stays.
https://www.w3.org/TR/sparql11-query/#sparqlAlgebra
"""

from __future__ import annotations

from levada.plan.logical import nodes as a
from levada.plan.optimizer.rule import Context, rewrite_query

_ROW = a.Values((), ((),))


def drop_units(query: a.Query, context: Context) -> a.Query:
    """Returns the query without joins and similar operators with the empty group."""
    return rewrite_query(query, _drop)


def _drop(node: a.Node) -> a.Node:
    match node:
        case a.Join(left, right) if _is_unit(left):
            return right
        case (
            a.Join(left, right)
            | a.LeftJoin(left, right, None)
            | a.Minus(left, right)
            | a.Exists(left, right, None, False)
        ) if _is_unit(right):
            return left
        case _:
            return node


def _is_unit(node: a.Node) -> bool:
    return isinstance(node, a.Unit) or node == _ROW
