"""Constructors (as ``build``) of MINUS, EXISTS, its value as a variable, OPTIONAL, and paths.

All of them need matching rows in one place: by the variables that both sides always bind, and for
paths at the operator's home.

Right rows of static data alone (``windows`` is ()) are equal at every report. So they stay as they
are, and the partners of a left row do not depend on the report. Left rows with event times keep
them, and are joined once, on arrival.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from levada.core.expressions import Expression
from levada.core.rdf_terms import Term
from levada.plan.execution.joins import JoinKind
from levada.plan.physical import build
from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op
from levada.plan.physical.partitioning import join_keys, place


def minus(left_: Op, right: Op) -> Op:
    """Returns MINUS on report rows; without a common variable it removes nothing."""
    if not set(left_.variables) & set(right.variables):
        return left_
    return _semi(JoinKind.MINUS, left_, right, None)


def exists(left_: Op, right: Op, condition: Expression | None, *, negated: bool) -> Op:
    """Returns EXISTS or NOT EXISTS on report rows."""
    return _semi(JoinKind.ANTI if negated else JoinKind.SEMI, left_, right, condition)


def mark(left_: Op, right: Op, condition: Expression | None, variable: str) -> Op:
    """Returns EXISTS inside an expression, on report rows: its value is one more variable."""
    op = _semi(JoinKind.MARK, left_, right, condition)
    return replace(op, variables=(*op.variables, variable), typed=op.typed | {variable})


def _semi(kind: JoinKind, left_: Op, right: Op, condition: Expression | None) -> Op:
    left_, shared, keys, placed = meet_sides(left_, right)
    stage, exchange = place((left_, right), placed)
    spec = p.ReportJoin(kind, keys, shared, condition, right.windows is not None)
    return Op(
        spec, (left_, right), left_.variables, left_.windows, stage, exchange, placed, left_.maybe,
        weighted=left_.weighted, typed=left_.typed,
    )  # fmt: skip


def left_join(left_: Op, right: Op, condition: Expression | None) -> Op:
    """Returns OPTIONAL on report rows."""
    left_, shared, keys, placed = meet_sides(left_, right)
    stage, exchange = place((left_, right), placed)
    names = (*left_.variables, *(v for v in right.variables if v not in shared))
    maybe = left_.maybe | (frozenset(right.variables) - set(shared))
    typed = (left_.typed | right.typed) - frozenset(
        v for v in shared if v not in left_.typed or v not in right.typed
    )
    spec = p.ReportJoin(JoinKind.LEFT, keys, shared, condition, right.windows is not None)
    return Op(
        spec,
        (left_, right),
        names,
        left_.windows,
        stage,
        exchange,
        placed,
        maybe,
        weighted=left_.weighted,
        typed=typed,
    )


def meet_sides(
    left_: Op, right: Op
) -> tuple[Op, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Returns the left side placed to meet the right one, the shared variables, the keys, and the
    place.

    Left rows with event times leave the intake and become a set first, placed by these keys.
    """
    assert left_.windows is None or right.windows == (), "rows with event times meet rows that last"
    left_ = build.hold(left_, join_keys(left_, right)[2])
    return left_, *join_keys(left_, right)


def static_subplan(rows: Op, reread_graphs: Collection[str | None], window: int) -> Op:
    """Returns the answer of a part that reads static data alone, as rows of static data.

    They are rows of the ``window`` static if they may change.
    """
    spec = p.StaticSubplan(tuple(sorted(reread_graphs, key=str)))
    return replace(
        rows,
        spec=spec,
        inputs=(rows,),
        windows=(window,) if reread_graphs else (),
        exchange=(None,),
        weighted=bool(reread_graphs),
        raw=False,
    )


def closure(
    inputs: Sequence[Op], many: bool, ends: tuple[Term | None, Term | None], seed: int | None = None
) -> Op:  # fmt: skip
    """Returns the pairs that paths connect, at the operator's home.

    ``inputs``: the pairs of one step, and the pairs of a path of no step. ``seed``: the end for
    which only the values of the last input count.
    """
    stage, exchange = place(tuple(inputs), HOME)
    step = inputs[0]
    return Op(
        p.Closure(many, ends, seed),
        tuple(inputs),
        step.variables,
        step.windows,
        stage,
        exchange,
        HOME,
    )
