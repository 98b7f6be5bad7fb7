"""Flattens a tree of joins into one conjunction, whose parts can be joined in any order: the join
is commutative and associative (Pérez, Arenas, Gutierrez 2009, proposition 1).

    Join(Join(A, B), C)  ->  Conjunction(A, B, C)
"""

from __future__ import annotations

from levada.plan.logical import nodes as a
from levada.plan.optimizer.rule import Context, rewrite_query


def flatten_joins(query: a.Query, context: Context) -> a.Query:
    """Returns the query with a conjunction for each tree of joins, the parts in the order of the
    text.
    """
    return rewrite_query(query, _flatten)


def _flatten(node: a.Node) -> a.Node:
    if isinstance(node, a.Join):
        return a.Conjunction((*_parts(node.left), *_parts(node.right)))
    return node


def _parts(node: a.Node) -> tuple[a.Node, ...]:
    return node.parts if isinstance(node, a.Conjunction) else (node,)
