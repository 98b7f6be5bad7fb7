"""Marks parts of a query that static data alone answer, to be evaluated once, not at every report.

Patterns over static graphs are joined as they are, and so are joins, filters and unions of them.
Operators that compare whole results (OPTIONAL, MINUS, EXISTS, groups, DISTINCT, ORDER BY with
LIMIT) or follow paths need report rows. If such a part reads no window and does not depend on the
report, every report gives the same rows. So the outermost of these parts are marked, and their
answers become one more static leaf, kept as runs.

    LeftJoin over graphs, in a query with windows  ->  Static(LeftJoin)
"""

from __future__ import annotations

from dataclasses import replace

from levada.plan.logical import nodes as a
from levada.plan.logical.properties import HOISTED, Analysis, is_answered_once
from levada.plan.logical.traversal import children, level, with_children
from levada.plan.optimizer.rule import Context


def hoist_static(query: a.Query, context: Context) -> a.Query:
    """Returns the query with its static parts marked. A query that is static as a whole has one
    answer.
    """
    if not any(isinstance(node, HOISTED) for node in level(query.pattern)):
        return query  # most queries: they need no analysis
    analysis = Analysis()
    if not analysis.properties_of(query.pattern).reads_window:
        return query
    pattern = _hoist(query.pattern, analysis)
    return query if pattern is query.pattern else replace(query, pattern=pattern)


def _hoist(node: a.Node, analysis: Analysis) -> a.Node:
    if isinstance(node, a.Project) and isinstance(node.child, a.Top):
        hoisted = is_answered_once(
            node.child, analysis.properties_of(node)
        )  # hidden variables need not be kept
    else:
        hoisted = is_answered_once(node, analysis.properties_of(node))
    if hoisted and not isinstance(node, a.Closure):
        return a.Static(node)
    # where graphs stay as they are, paths are found once as they stand; not so what is in them
    node = with_children(node, [_hoist(child, analysis) for child in children(node)])
    return a.Static(node) if hoisted else node
