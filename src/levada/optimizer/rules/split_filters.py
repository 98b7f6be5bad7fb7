"""A filter on a conjunction is a chain of filters, so that each part can go down as far as its
variables are bound.

FILTER(p && q) keeps a solution iff both are true; so do two filters (SPARQL 1.1, 17.2: an error is
not true).
"""

from __future__ import annotations

from dataclasses import replace

from levada.algebra import nodes as a
from levada.model.expression import Call, Function
from levada.optimizer.rewrite import bottom_up


def split_filters(query: a.Query) -> a.Query:
    """The query with conjunctions in filters taken apart."""
    return replace(query, pattern=bottom_up(query.pattern, _split))


def _split(node: a.Node) -> a.Node:
    match node:
        case a.Filter(child, Call(Function.AND, (left, right))):
            return _split(a.Filter(_split(a.Filter(child, left)), right))
        case _:
            return node
