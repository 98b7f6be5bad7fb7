"""A join with one row of VALUES whose variables are new is that many constants: each row of the
other side is extended by them.

So ``WINDOW ?w``, which joins each window's solutions with its IRI, needs no exchange (SPARQL 1.1,
18.5: a join with no common variable is the product).
"""

from __future__ import annotations

from dataclasses import replace

from levada.algebra import nodes as a
from levada.algebra.variables import possible
from levada.model.expression import Const, random, variables
from levada.optimizer.rewrite import bottom_up


def extend_by_values(query: a.Query) -> a.Query:
    """The query with constants in place of joins with one row."""
    return replace(query, pattern=bottom_up(query.pattern, _extended))


def _extended(node: a.Node) -> a.Node:
    match node:
        case a.Join(a.Values() | a.Unit(), _) | a.Join(_, a.Unit()):
            return node
        case a.Join(child, a.Values(names, (row,))) if all(row) and not possible(child) & set(
            names
        ):
            for name, term in zip(names, row, strict=True):
                assert term is not None, "the row is bound"
                child = a.Extend(child, name, Const(term))
            return child
        case a.Filter(a.Extend(child, name, Const() as value), condition):
            if name in variables(condition) or random(condition):
                return node
            return a.Extend(
                _extended(a.Filter(child, condition)), name, value
            )  # a filter goes on below, to its patterns
        case _:
            return node
