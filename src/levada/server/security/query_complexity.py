"""Bounds on the planning cost of a text. The order of joins makes planning at least quadratic in
the patterns, and each epoch evaluates the expressions. So both are counted before the text is
planned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from levada.engine.query_pipeline import Prepared
from levada.errors import UsageError
from levada.language.cql import ast as cql
from levada.language.cql.ast import Table
from levada.language.sparql.ast import (
    BuiltIn,
    FunctionCall,
    Operation,
    PathAlternative,
    PathNegated,
    PathSequence,
    Triple,
)

OPERANDS = 4
"""Operands of expressions that a text may have for each allowed pattern."""


def check_weight(query: Prepared, most: int) -> None:
    """Raises ``UsageError`` for a text with more than ``most`` triple patterns or tables, or with
    too many operands. Raises ``QueryError`` for an invalid query. Each choice and step of a path
    counts as a pattern. Each operand, and each name that a path forbids, counts as an operand.
    """
    patterns = operands = 0
    for node in nodes(query.ast):
        patterns += _count_patterns(node)
        operands += _count_operands(node)
    for count, limit, word in (
        (patterns, most, "patterns"),
        (operands, OPERANDS * most, "operands in expressions"),
    ):
        if count > limit:
            raise UsageError(
                f"The text has {count:,} {word}, and the server takes at most {limit:,}.",
                hint="Who may write to the checkpoint may add it: levada add CHECKPOINT QUERY.",
            )


def _count_patterns(node: object) -> int:
    match node:
        case Triple() | Table():
            return 1
        case PathAlternative(parts) | PathSequence(parts):
            return len(parts) - 1
        case _:
            return 0


def _count_operands(node: object) -> int:
    match node:
        case Operation(_, operands) | cql.Operation(_, operands):
            return len(operands)
        case BuiltIn(_, args) | FunctionCall(_, args) | PathNegated(args):
            return len(args)
        case _:
            return 0


def nodes(tree: object) -> Iterator[object]:
    """Yields a tree's nodes, without recursion."""
    rest = [tree]
    while rest:
        node = rest.pop()
        if isinstance(node, tuple):
            rest.extend(node)
        elif is_dataclass(node):
            yield node
            rest.extend(getattr(node, field.name) for field in fields(node))
