"""Constructors (as ``build``) of the operators that turn rows with event times into report rows,
and of those above (docs/architecture.md#a-querys-way).
"""

from __future__ import annotations

from collections.abc import Sequence

from levada.core.expressions import AggregateFunction, Expression
from levada.core.query_model import Output, StreamWindow
from levada.plan.execution.joins import JoinKind
from levada.plan.physical import operators as p
from levada.plan.physical.build import both_maybe, occur, rename
from levada.plan.physical.column_lineage import column_type
from levada.plan.physical.operators import HOME, Op
from levada.plan.physical.partitioning import join_keys, place, place_as_input, place_by_keys

_WHOLE = (AggregateFunction.GROUP_CONCAT,)  # it has no partial values that can be added


def report(
    op: Op, enumerated: bool, *, instant: bool = False, by: tuple[str, ...] = (), stage: int = 0
) -> Op:
    """Turns rows with event times into report rows.

    With weights (count windows) equal rows must meet to cancel. ``by``: the variables that the next
    operator needs together, in ``stage`` or a later one. Rows move there first: once, not once for
    each report.
    """
    if op.windows is None:
        return op
    by = () if by == HOME else by
    op = occur(op, by)
    next_stage, exchange, placed = place_as_input(op)
    if by and 0 < op.stage < stage:
        next_stage, exchange, placed = stage, (by,), by
    elif by or op.stage == 0 or op.weighted:
        next_stage, exchange, placed = place_by_keys(op, by or op.variables)
    return Op(
        p.Report(enumerated, instant),
        (op,),
        op.variables,
        None,
        next_stage,
        exchange,
        placed,
        op.maybe,
        typed=op.typed,
    )


def changes(op: Op, output: Output, enumerated: bool, certain: bool) -> Op:
    """Returns insertions, deletions or both.

    ``certain``: nothing can cancel (equal solutions have equal times), so no state is kept.
    """
    op = occur(op)
    if certain and op.stage > 0:
        stage, exchange, placed = place_as_input(op)
    else:
        stage, exchange, placed = place_by_keys(op, op.variables)
    spec = p.Changes(output, enumerated)
    certain_i = certain and output is Output.ISTREAM
    return Op(
        spec,
        (op,),
        op.variables,
        None,
        stage,
        exchange,
        placed,
        op.maybe,
        weighted=not certain_i,
        typed=op.typed,
    )


def group(
    op: Op,
    keys: tuple[str, ...],
    aggregates: tuple[p.AggregateSpec, ...],
    names: tuple[str, ...],
    enumerated: bool,
    *,
    windows: Sequence[StreamWindow],
) -> Op:
    """Returns GROUP BY: by panes if rows have event times of windows that report on close and every
    aggregate is incremental, else per report.
    """
    summable = not op.weighted and not any(s.distinct or s.function in _WHOLE for s in aggregates)
    on_close = bool(windows) and all(w.window.kind.on_close for w in windows)
    computed = frozenset(n for n, s in zip(names, aggregates, strict=True) if is_number(s, op))
    maybe = (op.maybe & set(keys)) | frozenset(
        n
        for n, s in zip(names, aggregates, strict=True)
        if s.function is not AggregateFunction.COUNT
    )
    typed = (op.typed & set(keys)) | computed
    if op.windows is not None and summable and on_close:
        op = occur(op)
        stage, exchange, placed = place_by_keys(op, keys)
        spec: p.Spec = p.Panes(keys, aggregates, enumerated)
    else:
        op = report(op, enumerated, by=keys)
        stage, exchange, placed = place_by_keys(op, keys)
        apart = not keys and op.stage > 0 and op.placed == _distinct(aggregates) != ()
        spec = p.RGroup(keys, aggregates, enumerated, apart)
    return Op(
        spec, (op,), (*keys, *names), None, stage, exchange, placed, frozenset(maybe), typed=typed
    )


def _distinct(aggregates: Sequence[p.AggregateSpec]) -> tuple[str, ...]:
    """Returns the one variable whose values DISTINCT aggregates count once.

    If rows with equal values are together, the aggregates of the tasks can be added.
    """
    among = {s.arg for s in aggregates if s.distinct}
    (name,) = among if len(among) == 1 else (None,)
    return () if name is None else (name,)


def is_number(s: p.AggregateSpec, op: Op) -> bool:
    """Whether the value facets represent a result completely.

    They do for counts, sums of doubles, sums of whole columns, and any typed winner.
    """
    if s.function is AggregateFunction.COUNT:
        return True
    if s.function is AggregateFunction.SUM_REST:
        return True
    if s.function in (AggregateFunction.SUM, AggregateFunction.AVG):
        kind = column_type(op, s.arg or "")
        return kind == "double" or (kind == "integer" and s.function is AggregateFunction.SUM)
    return s.function not in (*_WHOLE, AggregateFunction.USER) and s.arg in op.typed


def rjoin(left: Op, right: Op) -> Op:
    """Returns an inner join of report rows; static right rows count at every report."""
    shared, keys, placed = join_keys(left, right)
    stage, exchange = place((left, right), placed)
    names = (*left.variables, *(v for v in right.variables if v not in shared))
    typed = (left.typed | right.typed) - frozenset(
        v for v in shared if v not in left.typed or v not in right.typed
    )
    spec = p.ReportJoin(JoinKind.INNER, keys, shared, lasting=right.windows is not None)
    return Op(
        spec,
        (left, right),
        names,
        None,
        stage,
        exchange,
        placed,
        both_maybe(left, right, shared),
        typed=typed,
    )


def distinct(op: Op) -> Op:
    """Returns DISTINCT on report rows."""
    stage, exchange, placed = place_by_keys(op, op.variables)
    return Op(
        p.RDistinct(), (op,), op.variables, None, stage, exchange, placed, op.maybe, typed=op.typed
    )


def order(
    op: Op,
    keys: tuple[tuple[Expression, bool], ...],
    offset: int,
    limit: int | None,
    shown: tuple[str, ...] | None = None,
    *,
    in_order: bool = False,
) -> Op:
    """Returns ORDER BY, OFFSET, LIMIT at the operator's home; ``shown`` variables break ties first.

    ``in_order``: rows are sorted.
    """
    if shown is not None:
        rest = tuple(v for v in op.variables if v not in shown)
        op = rename(op, (*shown, *rest))
    stage, exchange, placed = place_by_keys(op, ())
    spec = p.ROrder(keys, offset, limit, in_order)
    return Op(spec, (op,), op.variables, None, stage, exchange, placed, op.maybe, typed=op.typed)


def number(
    op: Op,
    variable: str,
    function: str,
    partition: tuple[str, ...],
    keys: tuple[tuple[Expression, bool], ...],
) -> Op:
    """Returns rows whose ``variable`` is their number within the partition of a report."""
    stage, exchange, placed = place_by_keys(op, partition)
    spec = p.RNumber(variable, function, partition, keys)
    typed = op.typed - {variable}
    return Op(spec, (op,), op.variables, None, stage, exchange, placed, op.maybe, typed=typed)


def emit(op: Op) -> Op:
    """Returns the results; rows at the intake are exchanged once first."""
    assert op.windows is None, "results are report rows"
    return Op(
        p.Emit(),
        (op,),
        op.variables,
        None,
        op.stage,
        (None,),
        op.placed,
        op.maybe,
        weighted=op.weighted,
        typed=op.typed,
    )
