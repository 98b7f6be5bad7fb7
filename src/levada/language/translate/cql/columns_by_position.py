"""Matches columns by position: those of a view with the names of its schema, those of both sides of
a Union or Except with the names of the left side.

An Integer beside a Float becomes a Float; other types must be equal. Cost: linear in the columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from levada.core.expressions import Expression, Var
from levada.language.cql.ast import LiteralType
from levada.language.translate.cql.expressions import cast
from levada.plan.logical import nodes

Typed = tuple[tuple[str, LiteralType], ...]
"""Columns: their names and types, in order."""

_NUMBERS = {LiteralType.INTEGER, LiteralType.DOUBLE}


def wider_types(
    left: Sequence[LiteralType], right: Sequence[LiteralType]
) -> list[LiteralType] | None:
    """Returns the types that hold the values of both sides, column by column.

    None: some column has no such type, or one side has more columns.

    >>> wider_types([LiteralType.INTEGER], [LiteralType.DOUBLE])
    [<LiteralType.DOUBLE: 'double'>]
    """
    if len(left) != len(right):
        return None
    pairs = list(zip(left, right, strict=True))
    if any(a != b and {a, b} != _NUMBERS for a, b in pairs):
        return None
    return [a if a == b else LiteralType.DOUBLE for a, b in pairs]


def widen_columns(node: nodes.Node, columns: Typed, wanted: Typed) -> nodes.Node:
    """Returns the columns of a node under the names of ``wanted``, with its types."""
    pairs = enumerate(zip(columns, wanted, strict=True))
    casts = {i: kind for i, ((_, column_type), (_, kind)) in pairs if column_type != kind}
    return rename(node, [name for name, _ in columns], [name for name, _ in wanted], casts)


def rename(
    node: nodes.Node,
    names: list[str],
    wanted: list[str],
    casts: Mapping[int, LiteralType] | None = None,
) -> nodes.Node:
    """Returns the columns ``names`` of a node, in this order, renamed to ``wanted``.

    ``casts``: columns that are cast to these types.
    """
    if names == wanted and not casts:
        return nodes.Project(node, tuple(names))
    between = [f".c{i}" for i in range(len(names))]
    for i, (name, new) in enumerate(zip(names, between, strict=True)):
        value: Expression = Var(name)
        if casts and i in casts:
            value = cast(casts[i].value, value)
        node = nodes.Extend(node, new, value)
    node = nodes.Project(node, tuple(between))
    for new, name in zip(between, wanted, strict=True):
        node = nodes.Extend(node, name, Var(new))
    return nodes.Project(node, tuple(wanted))
