"""Walking the algebra: a rule names only the nodes that it changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from levada.algebra import nodes as a

CHILDREN = ("left", "right", "child", "zero")


def bottom_up(node: a.Node, change: Callable[[a.Node], a.Node]) -> a.Node:
    """The tree with ``change`` applied to every node, inputs first."""
    inner: dict[str, Any] = {}
    for name in CHILDREN:
        child = getattr(node, name, None)
        if child is not None:
            inner[name] = bottom_up(child, change)
    return change(replace(node, **inner) if inner else node)
