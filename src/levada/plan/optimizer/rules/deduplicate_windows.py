"""Replaces windows of a query that are equal except for their names by one of them: they have the
same content at every report.

    { WINDOW :w { A } WINDOW :u { B } }  ->  { WINDOW :w { A } WINDOW :w { B } }

A query with two names, as each STREAM clause of CQELS-QL makes, then shares its joins with a query
with one name. The second window stays: its reports are those of the first.

The rule applies only to windows that time alone fills and empties: a window that counts may count
the matches of its own patterns. It does not apply to queries with a sub-query, which has windows of
its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from levada.core.event_time import Window, WindowKind
from levada.plan.logical import nodes as a
from levada.plan.logical.traversal import children
from levada.plan.optimizer.rule import Context, rewrite_query

_TIMED = frozenset(
    (
        WindowKind.CLOSE_OPEN, WindowKind.CLOSE_CLOSED, WindowKind.CHANGE, WindowKind.RANGE,
        WindowKind.NOW, WindowKind.ALL,
    )
)  # fmt: skip


def equal_windows(query: a.Query, context: Context) -> a.Query:
    """Returns the query with one name for equal windows that are read."""
    nodes = [*_nodes(query.pattern)]
    if any(isinstance(node, a.SubQuery) for node in nodes):
        return query
    sources = [
        node.source for node in nodes if isinstance(node, a.Bgp | a.Entailed | a.TripleArrivals)
    ]
    read = {source.index for source in sources if isinstance(source, a.InWindow)}
    first: dict[tuple[str, Window], int] = {}
    named = {
        i: first.setdefault((on.stream, on.window), i)
        for i, on in enumerate(query.windows)
        if i in read and on.window.kind in _TIMED
    }
    if all(i == at for i, at in named.items()):
        return query
    return rewrite_query(query, partial(_rename_windows, named))


def _nodes(node: a.Node) -> Iterator[a.Node]:
    yield node
    for child in children(node):
        yield from _nodes(child)


def _rename_windows(named: Mapping[int, int], node: a.Node) -> a.Node:
    match node:
        case a.Bgp() | a.Entailed() | a.TripleArrivals() if isinstance(node.source, a.InWindow):
            at = named.get(node.source.index, node.source.index)
            return node if at == node.source.index else replace(node, source=a.InWindow(at))
        case _:
            return node
