"""The move of picks above reports: rows that several queries pick from a relaxed join are reported
once.

    Emit <- Report <- Pick <- Join    from the join on, each row once for each query that wants it
    Emit <- Pick <- Report <- Join    once, up to the results

A condition commutes with the report of rows that are only added: a row belongs to the query at each
report at which it counts, or at none. So queries with equal reports (windows, policy, start) have
one report. It keeps a row as long as any of them wants it, with the columns of their conditions.
Picked rows then go into the results as (row, cell), where a cell is the set of queries that want it
(CQELS Cloud, C32 and C56).

This applies to picks by one range. With terms alone few rows belong to several queries, and other
conditions would be evaluated again at each report.
"""

from __future__ import annotations

from dataclasses import replace

from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op


def share_report(op: Op, below: Op) -> Op | None:
    """Returns a report of picked rows as picked rows of a report; None: the pick stays below.

    ``below``: the input of the report.
    """
    names = []
    while isinstance(below.spec, p.Rename):
        names.append(below)
        (below,) = below.inputs
    pick = below.spec
    if not isinstance(op.spec, p.Report) or not isinstance(pick, p.Pick) or not _is_indexed(pick):
        return None
    (source,) = below.inputs
    if op.exchange != (None,) or op.weighted or source.weighted or source.windows is None:
        return None
    report = replace(
        op, inputs=(source,), variables=source.variables, maybe=source.maybe, typed=source.typed
    )
    keys = tuple([replace(k, source=(0, *k.source)) if k.source else k for k in pick.keys])
    shown = replace(
        below, spec=replace(pick, keys=keys), inputs=(report,), windows=None, stage=op.stage
    )
    for name in reversed(names):
        shown = replace(name, inputs=(shown,), windows=None, stage=op.stage)
    return shown


def _is_indexed(pick: p.Pick) -> bool:
    """Whether an index finds the rows, and queries may want the same ones."""
    return len({test.range for test in pick.tests}) == 1 and not pick.rest
