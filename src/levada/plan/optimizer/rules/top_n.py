"""Merges ORDER BY with OFFSET and LIMIT above it into one sort that keeps only the requested rows.

SELECT takes its columns from the result.

    Slice(Project(OrderBy(A)))  ->  Project(Top(A))

Solutions that are equal for ORDER BY are ordered by the shown columns.
"""

from __future__ import annotations

from levada.plan.logical import nodes as a
from levada.plan.optimizer.rule import Context, rewrite_query


def merge_slices(query: a.Query, context: Context) -> a.Query:
    """Returns the query with one sort for ORDER BY with OFFSET and LIMIT."""
    return rewrite_query(query, _merge)


def _merge(node: a.Node) -> a.Node:
    match node:
        case a.Slice(a.Project(a.OrderBy(child, keys), names), offset, limit):
            return a.Project(a.Top(child, keys, offset, limit, names), names)
        case a.Slice(a.OrderBy(child, keys), offset, limit):
            return a.Top(child, keys, offset, limit)
        case _:
            return node
