"""Constructors of operators that work by changes, and of those that read a sub-query (as
``build``).

Changes are report rows with a weight: the rows that begin and end at a report. They are partitioned
like report rows.
"""

from __future__ import annotations

from dataclasses import replace

from levada.core.expressions import AggregateFunction
from levada.core.query_model import Output
from levada.plan.execution.joins import Shown
from levada.plan.logical.nodes import Reporting
from levada.plan.physical import build, build_reports
from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op
from levada.plan.physical.partitioning import LOST, place, place_as_input, place_by_keys


def lift(rows: Op, window: int, level: tuple[int, ...], *, weighted: bool) -> Op:
    """Returns the rows that a sub-query reports as content of a window."""
    spec = p.SubqueryWindow(window, level, weighted)
    return replace(
        rows,
        spec=spec,
        inputs=(rows,),
        windows=(window,),
        exchange=(None,),
        weighted=weighted,
        raw=False,
    )


def rename_to_level(op: Op, names: tuple[str, ...], sources: tuple[str, ...]) -> Op:
    """Renames the variables ``sources`` for another level, which does not know the names of this
    one.
    """
    to = {source: name for name, source in reversed(list(zip(names, sources, strict=True)))}
    pairs = list(zip(names, sources, strict=True))
    placed = op.placed
    if placed not in (HOME, LOST, ()):
        placed = tuple(to[v] for v in placed) if set(placed) <= to.keys() else LOST
    return replace(
        op, spec=p.Rename(sources), inputs=(op,), variables=names, exchange=(None,), placed=placed,
        maybe=frozenset(name for name, source in pairs if source in op.maybe),
        typed=frozenset(name for name, source in pairs if source in op.typed),
    )  # fmt: skip


def deltas(op: Op, keys: tuple[str, ...], *, enumerated: bool = False) -> Op:
    """Turns rows with event times into changes, partitioned by ``keys`` if they must move anyway.

    Changes stay as they are. ``enumerated``: replacements of static data show at the next report.
    """
    if op.windows is None:
        return op
    op = build.occur(op)
    stage, exchange, placed = place_by_keys(op, keys)
    return replace(
        op,
        spec=p.Deltas(enumerated),
        inputs=(op,),
        windows=None,
        stage=stage,
        exchange=exchange,
        placed=placed,
        weighted=True,
    )


def running(
    op: Op,
    keys: tuple[str, ...],
    aggregates: tuple[p.AggregateSpec, ...],
    names: tuple[str, ...],
    nonempty_by: tuple[Op, ...],
    *,
    enumerated: bool,
) -> Op:
    """Returns GROUP BY of changes.

    The one group without keys exists while one of ``nonempty_by`` has rows, or, if reports are
    ``enumerated``, while the windows are not empty.
    """
    op = deltas(op, keys)
    inputs = (op, *nonempty_by)
    stage, exchange, placed = place_by_keys(op, keys)
    if nonempty_by:
        placed = HOME
        stage, exchange = place(inputs, HOME)
    pairs = list(zip(names, aggregates, strict=True))
    maybe = (op.maybe & set(keys)) | {
        n for n, s in pairs if s.function is not AggregateFunction.COUNT
    }
    typed = (op.typed & set(keys)) | {n for n, s in pairs if build_reports.is_number(s, op)}
    return Op(
        p.Running(keys, aggregates, enumerated and not keys),
        inputs,
        (*keys, *names),
        None,
        stage,
        exchange,
        placed,
        maybe,
        weighted=True,
        typed=typed,
    )


def nonempty_marks(leaf: Op) -> Op:
    """Returns marks that a window has rows: its changes without their columns."""
    return deltas(build.rename(leaf, ()), ())


def distinct(op: Op) -> Op:
    """Returns DISTINCT of changes."""
    op = deltas(op, op.variables)
    stage, exchange, placed = place_by_keys(op, op.variables)
    return replace(
        op,
        spec=p.Multiplicity(Shown.DISTINCT),
        inputs=(op,),
        stage=stage,
        exchange=exchange,
        placed=placed,
    )


def hold(rows: Op) -> Op:
    """Returns the changes of a relation from inserted and deleted rows."""
    return replace(distinct(rows), spec=p.Multiplicity(Shown.HELD))


def difference(left: Op, right: Op) -> Op:
    """Returns the bag difference of changes, or of report rows."""
    keys = left.variables or HOME
    by_changes = left.weighted
    if by_changes:
        left, right = deltas(left, keys), deltas(right, keys)
    stage, exchange = place((left, right), keys)
    typed = frozenset(v for v in left.variables if v in left.typed and v in right.typed)
    spec = p.Multiplicity(Shown.EXCEPT) if by_changes else p.RExcept()
    maybe = left.maybe | right.maybe
    return Op(
        spec,
        (left, right),
        left.variables,
        None,
        stage,
        exchange,
        keys,
        maybe,
        weighted=by_changes,
        typed=typed,
    )


def snapshot(
    op: Op,
    nonempty_by: tuple[Op, ...],
    output: Output,
    level: tuple[int, ...],
    reports: Reporting,
    *,
    enumerated: bool,
    show_empty: bool,
) -> Op:
    """Returns a result kept by changes at the reports of its windows (``nonempty_by``), in one
    place.
    """
    op = deltas(op, op.variables)
    inputs = (op, *nonempty_by)
    stage, exchange = place(inputs, HOME)
    spec = p.Snapshot(output, level, reports, enumerated, show_empty)
    weighted = output is not Output.RSTREAM
    return replace(
        op, spec=spec, inputs=inputs, stage=stage, exchange=exchange, placed=HOME, weighted=weighted
    )


def standing(op: Op, by: tuple[str, ...] = (), stage: int = 0) -> Op:
    """Turns changes into report rows; ``by``, ``stage`` as in ``build_reports.report``."""
    next_stage, exchange, placed = place_as_input(op)
    if by and 0 < op.stage < stage:
        next_stage, exchange, placed = stage, (by,), by
    elif by:
        next_stage, exchange, placed = place_by_keys(op, by)
    return replace(
        op, spec=p.Standing(), inputs=(op,), stage=next_stage, exchange=exchange, placed=placed,
        weighted=False,
    )  # fmt: skip


def net(op: Op, output: Output) -> Op:
    """Returns insertions, deletions or both of changes."""
    stage, exchange, placed = place_by_keys(op, op.variables)
    return replace(
        op, spec=p.Net(output), inputs=(op,), stage=stage, exchange=exchange, placed=placed
    )
