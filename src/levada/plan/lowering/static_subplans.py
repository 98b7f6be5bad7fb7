"""Parts of a query that static data alone answer: evaluated once, not at every report (design,
section 2; issue 4).

A pattern over static graphs is joined as it is, and so are joins, filters and unions of such. What
compares whole results (OPTIONAL, MINUS, EXISTS, groups, DISTINCT, ORDER BY with LIMIT) needs report
rows; where it reads no window and nothing depends on the report, every report gives the same rows.
So it is lowered as a query without windows is, and its answer is one more static leaf: kept as
runs, met by what comes. Cost of telling: linear in the algebra.
"""

from __future__ import annotations

from collections.abc import Sequence

from levada.algebra import nodes as a
from levada.algebra.incremental import level
from levada.algebra.variables import expressions
from levada.plan.lowering.listing import per_report, reads_window
from levada.plan.physical.operators import Op

_SNAPSHOTS = (a.LeftJoin, a.Minus, a.Exists, a.Mark, a.Group, a.Distinct, a.OrderBy, a.Slice)


def alone(node: a.Node, *, changing: bool) -> bool:
    """Whether this part is evaluated once; ``changing``: its static data may be replaced."""
    kinds = (*_SNAPSHOTS, a.Closure) if changing else _SNAPSHOTS
    if not isinstance(node, kinds) or reads_window(node):
        return False
    return not any(per_report(e) for part in level(node) for e in expressions(part))


def connected(parts: Sequence[Op]) -> list[list[Op]]:
    """Parts in groups: those that share variables, directly or through others."""
    groups: list[list[Op]] = []
    for part in parts:
        mine = [g for g in groups if any(set(part.variables) & set(op.variables) for op in g)]
        groups = [g for g in groups if g not in mine] + [[*(op for g in mine for op in g), part]]
    return groups
