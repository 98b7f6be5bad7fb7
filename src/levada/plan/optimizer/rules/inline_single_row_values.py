"""Replaces a part of one row, whose variables no other part has, by constants.

Each solution of the other parts is extended by them (SPARQL 1.1, 18.5: a join without a common
variable is the product).

    Conjunction(A, Values((x), ((1)), B)  ->  Extend(Conjunction(A, B), x, 1)

So ``WINDOW ?w`` and ``GRAPH ?g``, which join the solutions over each source with its name, and
VALUES with one row, cost a column. A join would move all rows to one place.
"""

from __future__ import annotations

from collections import Counter

from levada.core.expressions import Const
from levada.plan.logical import nodes as a
from levada.plan.logical.variables import possible_variables
from levada.plan.optimizer.rule import Context, rewrite_query


def one_row_values(query: a.Query, context: Context) -> a.Query:
    """Returns the query with constants in place of parts of one row."""
    return rewrite_query(query, _extend)


def _extend(node: a.Node) -> a.Node:
    if not isinstance(node, a.Conjunction) or node.conditions:
        return node
    if not any(map(_is_row, node.parts)):
        return node
    uses = Counter(name for part in node.parts for name in possible_variables(part))
    rows = [
        part
        for part in node.parts
        if isinstance(part, a.Values)
        and _is_row(part)
        and all(uses[v] == 1 for v in part.variables)
    ]
    others = tuple(part for part in node.parts if part not in rows)
    if not others:
        others, rows = (rows[0],), rows[1:]
    if not rows:
        return node
    whole: a.Node = a.Conjunction(others) if len(others) > 1 else others[0]
    for row in rows:
        for name, term in zip(row.variables, row.rows[0], strict=True):
            assert term is not None, "the row is bound"
            whole = a.Extend(whole, name, Const(term))
    return whole


def _is_row(node: a.Node) -> bool:
    return isinstance(node, a.Values) and len(node.rows) == 1 and None not in node.rows[0]
