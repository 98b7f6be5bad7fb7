"""Smart constructors, as ``build``: rows that others decide on (MINUS, EXISTS, its value as a
variable, OPTIONAL), and paths.

All of them need rows that can meet in one place: by the variables that both sides always bind,
paths at the operator's home.

Right rows of static data alone (``windows`` is ()) are there at every report alike. So they are
kept as they are, and what a left row meets does not depend on the report: left rows with event
times stay such, and meet the right ones once, when they come.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from levada.core.expressions import Expression
from levada.core.rdf_terms import Term
from levada.plan.execution.join_kinds import JoinKind
from levada.plan.physical import build
from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op
from levada.plan.physical.partitioning import join_keys, place


def minus(left_: Op, right: Op) -> Op:
    """MINUS on report rows; without a variable in common it takes nothing away."""
    if not set(left_.variables) & set(right.variables):
        return left_
    return _semi(JoinKind.MINUS, left_, right, None)


def exists(left_: Op, right: Op, condition: Expression | None, *, negated: bool) -> Op:
    """EXISTS and NOT EXISTS on report rows."""
    return _semi(JoinKind.ANTI if negated else JoinKind.SEMI, left_, right, condition)


def mark(left_: Op, right: Op, condition: Expression | None, variable: str) -> Op:
    """EXISTS inside an expression, on report rows: its value as one more variable."""
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
    """OPTIONAL."""
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
    """The left side as it meets the right one, what both share, by what they meet, and where.

    Left rows with event times come up from the intake and become a set first, placed by what they
    are about to meet by.
    """
    assert left_.windows is None or right.windows == (), "rows with event times meet rows that last"
    left_ = build.hold(left_, join_keys(left_, right)[2])
    return left_, *join_keys(left_, right)


def static_subplan(rows: Op, reread_graphs: Collection[str | None], window: int) -> Op:
    """What a part answers that reads static data alone, as rows of static data; of the ``window``
    static if they may change.
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
    """The pairs that paths connect, at the operator's home: ``inputs`` are one step and what a path
    of none connects.

    ``seed``: the end of which only the values count that the last input has.
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
