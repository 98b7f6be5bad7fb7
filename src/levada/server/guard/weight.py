"""How much a text asks of who plans it. What is joined next is chosen among all that is left, so
planning takes time by the square of a text's patterns and more: 2,000 of them, which fit into a
body, took minutes, in which the engine has no epoch. So they are counted before anybody plans.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from levada.engine.prepare import Prepared
from levada.errors import UsageError
from levada.syntax.cql.ast import Table
from levada.syntax.sparql.ast import PathAlternative, PathSequence, Triple


def check_weight(query: Prepared, most: int) -> None:
    """Raises ``UsageError`` for a text with more than so many patterns of triples, or tables;
    ``QueryError`` for what is no query. Each choice and step of a path is planned as a pattern.
    """
    found = sum(map(_patterns, nodes(query.ast)))
    if found > most:
        raise UsageError(
            f"The text has {found:,} patterns, and the server takes at most {most:,}.",
            hint="Who may write to the checkpoint may add it: levada add CHECKPOINT QUERY.",
        )


def _patterns(node: object) -> int:
    match node:
        case Triple() | Table():
            return 1
        case PathAlternative(parts) | PathSequence(parts):
            return len(parts) - 1
        case _:
            return 0


def nodes(tree: object) -> Iterator[object]:
    """A tree's nodes, without going down one call a level."""
    rest = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, tuple):
            rest.extend(node)
        elif is_dataclass(node):
            yield node
            rest.extend(getattr(node, field.name) for field in fields(node))
