"""The empty group joins with everything and changes nothing: Join(Unit, X) = Join(X, Unit) = X."""

from __future__ import annotations

from dataclasses import replace

from levada.algebra import nodes as a
from levada.optimizer.rewrite import bottom_up


def drop_units(query: a.Query) -> a.Query:
    """The query without joins with the empty group."""
    return replace(query, pattern=bottom_up(query.pattern, _drop))


def _drop(node: a.Node) -> a.Node:
    match node:
        case a.Join(a.Unit(), other) | a.Join(other, a.Unit()):
            return other
        case _:
            return node
