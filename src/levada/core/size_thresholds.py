"""Sizes from which the same is done in another way: numbers of rows, queries, bytes.

No result depends on one. Each registers where it is defined, so that property tests can draw it
small, and random cases of a few rows take each of the ways.
"""

from __future__ import annotations

SIZES: dict[str, int] = {}
"""The least value with which each registered size works, by module and name."""


def register(name: str, size: int, *, least: int = 1) -> int:
    """Returns the size. ``name``: its module and its name there.

    >>> register("levada.example.MANY", 16, least=2), SIZES.pop("levada.example.MANY")
    (16, 2)
    """
    SIZES[name] = least
    return size
