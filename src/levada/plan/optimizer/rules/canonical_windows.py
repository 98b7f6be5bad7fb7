"""Numbers windows in the order in which patterns read them, so queries share operators regardless
of the order of FROM clauses or of CQL's tables.

    FROM :u .. FROM :w ..  { WINDOW :w { A } WINDOW :u { B } }  ->  FROM :w .. FROM :u ..

The patterns already have an order that does not depend on the text (``canonical_order``). Rows have
times by window numbers, so joins over the same windows with other numbers would differ. Windows
that no pattern reads come last, unchanged. The rule does not apply to queries with a sub-query,
whose windows belong to a level, or with a merge of windows. Cost: linear in the query.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from levada.plan.logical import nodes as a
from levada.plan.logical.traversal import children
from levada.plan.optimizer.rule import Context
from levada.plan.optimizer.traversal import rewrite_query


def order_windows(query: a.Query, context: Context) -> a.Query:
    """Returns the query with its windows in the order in which they are read."""
    if len(query.windows) < 2:
        return query
    nodes = [*_nodes(query.pattern)]
    sources = [node.source for node in nodes if isinstance(node, _READING)]
    if any(isinstance(node, a.SubQuery) for node in nodes) or not all(
        isinstance(source, a.InWindow | a.InGraph) for source in sources
    ):
        return query
    read = [source.index for source in sources if isinstance(source, a.InWindow)]
    order = [*dict.fromkeys((*read, *range(len(query.windows))))]
    if order == sorted(order):
        return query
    places = {index: place for place, index in enumerate(order)}
    windows = tuple([query.windows[index] for index in order])
    return replace(rewrite_query(query, partial(_renumber, places)), windows=windows)


_READING = a.Bgp | a.Entailed | a.TripleArrivals | a.Scan


def _nodes(node: a.Node) -> Iterator[a.Node]:
    yield node
    for child in children(node):
        yield from _nodes(child)


def _renumber(places: Mapping[int, int], node: a.Node) -> a.Node:
    if isinstance(node, _READING) and isinstance(node.source, a.InWindow):
        return replace(node, source=a.InWindow(places[node.source.index]))
    return node
