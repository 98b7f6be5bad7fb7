"""DISTINCT of distinct solutions is the solutions; a slice that cuts nothing is its input."""

from __future__ import annotations

from dataclasses import replace

from levada.algebra import nodes as a
from levada.optimizer.rewrite import bottom_up


def merge_slices(query: a.Query) -> a.Query:
    """The query without modifiers that change nothing."""
    return replace(query, pattern=bottom_up(query.pattern, _merge))


def _merge(node: a.Node) -> a.Node:
    match node:
        case a.Distinct(a.Distinct(inner)):
            return a.Distinct(inner)
        case a.Slice(child, 0, None):
            return child
        case _:
            return node
