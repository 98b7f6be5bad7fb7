"""Walks the algebra: the children of a node, a node with other children, the nodes of a query
level.

Code that walks the tree names only the nodes that it handles. Cost: linear in the walked nodes.

A function of a node walks everything below it. A stage calls it at each node, which would be
quadratic in the query's depth. So the results of such functions are kept during a stage
(``memoizing``). Nodes are compared by identity, and kept meanwhile, so no other node gets the
identity of an old one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import TypeVar

from levada.plan.logical import nodes as a


def children(node: a.Node) -> tuple[a.Node, ...]:
    """Returns the nodes directly below a node, in order.

    >>> children(a.Join(a.Unit(), a.Values((), ())))
    (Unit(), Values(variables=(), rows=()))
    """
    match node:
        case a.Unit() | a.Bgp() | a.Entailed() | a.TripleArrivals() | a.Scan() | a.Values():
            return ()
        case a.Conjunction(parts):
            return parts
        case a.Closure(child, zero):
            return (child,) if zero is None else (child, zero)
        case (
            a.Join(left, right)
            | a.LeftJoin(left, right)
            | a.Minus(left, right)
            | a.Exists(left, right)
            | a.Mark(left, right)
            | a.Union(left, right)
            | a.Except(left, right)
            | a.Recent(left, right)
        ):
            return (left, right)
        case _:
            return (node.child,)


def with_children(node: a.Node, others: Sequence[a.Node]) -> a.Node:
    """Returns the node with these children, as many as it has; itself if they are the same objects.

    >>> with_children(a.Distinct(a.Unit()), [a.Values((), ())])
    Distinct(child=Values(variables=(), rows=()))
    """
    before = children(node)
    assert len(before) == len(others), "a node keeps the number of its children"
    if all(one is other for one, other in zip(before, others, strict=True)):
        return node
    match node:
        case a.Conjunction():
            return replace(node, parts=tuple(others))
        case a.Closure():
            return replace(node, child=others[0], zero=others[1] if len(others) > 1 else None)
        case a.Unit() | a.Bgp() | a.Entailed() | a.TripleArrivals() | a.Scan() | a.Values():
            return node
        case (
            a.Join()
            | a.LeftJoin()
            | a.Minus()
            | a.Exists()
            | a.Mark()
            | a.Union()
            | a.Except()
            | a.Recent()
        ):
            return replace(node, left=others[0], right=others[1])
        case _:
            return replace(node, child=others[0])


def level(node: a.Node) -> Iterator[a.Node]:
    """Returns the nodes of one query level, outermost first.

    A ``SubQuery`` belongs to the level, the nodes below it do not.
    """
    yield node
    if not isinstance(node, a.SubQuery):
        for child in children(node):
            yield from level(child)


T = TypeVar("T")
_Memory = dict[tuple[str, int], tuple[a.Node, object]]


class _Local(threading.local):
    memory: _Memory | None = None


_local = _Local()


@contextmanager
def memoizing() -> Iterator[None]:
    """Makes ``memoize`` functions compute each value once within the context.

    >>> with memoizing():
    ...     pass
    """
    if _local.memory is not None:
        yield
        return
    _local.memory = {}
    try:
        yield
    finally:
        _local.memory = None


def memoize(function: Callable[[a.Node], T]) -> Callable[[a.Node], T]:
    """Wraps a function of a node to be computed once for each node, within ``memoizing``."""
    name = function.__qualname__

    @wraps(function)
    def remember(node: a.Node) -> T:
        memory = _local.memory
        if memory is None:
            return function(node)
        key = (name, id(node))
        if key not in memory:
            memory[key] = (node, function(node))
        return memory[key][1]  # type: ignore[return-value]

    return remember
