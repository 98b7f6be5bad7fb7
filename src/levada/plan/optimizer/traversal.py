"""Walks the algebra for rules: a rule names only the nodes that it changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from levada.plan.logical import nodes as a
from levada.plan.logical.traversal import children, with_children

Change = Callable[[a.Node], a.Node]


def bottom_up(node: a.Node, change: Change) -> a.Node:
    """Returns the tree with ``change`` applied to every node, inputs first.

    >>> bottom_up(a.Distinct(a.Unit()), lambda n: n.child if isinstance(n, a.Distinct) else n)
    Unit()
    """
    if below := children(node):
        node = with_children(node, [bottom_up(child, change) for child in below])
    return change(node)


def rewrite_query(query: a.Query, change: Change) -> a.Query:
    """Returns the query with ``change`` applied to every node of its pattern, inputs first."""
    pattern = bottom_up(query.pattern, change)
    return query if pattern is query.pattern else replace(query, pattern=pattern)
