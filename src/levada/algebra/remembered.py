"""Remembers what functions of nodes return while a query is prepared.

Such a function walks everything below its node, and a stage asks it at each node: without a memory
that is quadratic in the depth of a query. Nodes are compared by identity, which costs nothing, and
are kept until the stage is over, so that no other node gets the identity of one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TypeVar

from levada.algebra.nodes import Node

T = TypeVar("T")
_Memory = dict[tuple[str, int], tuple[Node, object]]


class _Local(threading.local):
    memory: _Memory | None = None


_local = _Local()


@contextmanager
def remembering() -> Iterator[None]:
    """Within, ``remembered`` functions compute each value once.

    >>> with remembering():
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


def remembered(function: Callable[[Node], T]) -> Callable[[Node], T]:
    """A function of a node that is computed once for each node, within ``remembering``."""
    name = function.__qualname__

    @wraps(function)
    def remember(node: Node) -> T:
        memory = _local.memory
        if memory is None:
            return function(node)
        key = (name, id(node))
        if key not in memory:
            memory[key] = (node, function(node))
        return memory[key][1]  # type: ignore[return-value]

    return remember
