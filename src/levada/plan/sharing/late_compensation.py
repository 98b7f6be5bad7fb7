"""Picks above reports: what several queries pick of a relaxed join is reported once.

    Emit <- Report <- Pick <- Join    from the join on each row once for each query that wants it
    Emit <- Pick <- Report <- Join    once, up to where it is shown

A condition commutes with the report of rows that only come: a row is the query's at each report at
which it counts, or at none. So queries that report alike (windows, policy, start) have one report,
which remembers a row as long as any of them wants it (``operators/border/reported_once``), and with
it what the pick tells it by. What is picked then goes as (row, cell) into the results, where a cell
is what the same queries want (CQELS Cloud, C32 and C56: a row goes along with the set of those who
want it).

Where picks tell by one range: by terms alone hardly any row is several queries'; what no index
tells would be asked anew at each report.
"""

from __future__ import annotations

from dataclasses import replace

from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op


def share_report(op: Op, below: Op) -> Op | None:
    """A report of rows that are picked, over these rows, as rows that are picked of a report; None
    where picks stay below. ``below``: its input.
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
    """Whether rows are told by an index, and queries may want the same ones."""
    return len({test.range for test in pick.tests}) == 1 and not pick.rest
