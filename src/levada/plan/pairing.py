"""Smart constructors, as ``build``: rows that others decide on (MINUS, EXISTS, its value as a variable), and paths.

All of them need rows that can meet in one place: by the variables that both sides always bind, paths at the operator's home.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from levada.algebra.expression import Expression
from levada.model.term import Term
from levada.plan import physical as p
from levada.plan.partitioning import join_keys, place
from levada.plan.physical import HOME, Op


def minus(left_: Op, right: Op) -> Op:
    """MINUS on report rows; without a variable in common it takes nothing away."""
    if not set(left_.variables) & set(right.variables):
        return left_
    return _semi(p.Semi.MINUS, left_, right, None)


def exists(left_: Op, right: Op, condition: Expression | None, *, negated: bool) -> Op:
    """EXISTS and NOT EXISTS on report rows."""
    return _semi(p.Semi.NOT_EXISTS if negated else p.Semi.EXISTS, left_, right, condition)


def mark(left_: Op, right: Op, condition: Expression | None, variable: str) -> Op:
    """EXISTS inside an expression, on report rows: its value as one more variable."""
    op = _semi(p.Semi.MARK, left_, right, condition)
    return replace(op, variables=(*op.variables, variable), typed=op.typed | {variable})


def _semi(test: p.Semi, left_: Op, right: Op, condition: Expression | None) -> Op:
    shared, keys, placed = join_keys(left_, right)
    stage, exchange = place((left_, right), placed)
    spec = p.RSemi(test, keys, shared, condition)
    return Op(spec, (left_, right), left_.variables, None, stage, exchange, placed, left_.maybe, typed=left_.typed)


def closure(inputs: Sequence[Op], many: bool, ends: tuple[Term | None, Term | None]) -> Op:
    """The pairs that paths connect, at the operator's home: ``inputs`` are one step and what a path of none connects."""
    stage, exchange = place(tuple(inputs), HOME)
    step = inputs[0]
    return Op(p.Closure(many, ends), tuple(inputs), step.variables, step.windows, stage, exchange, HOME)
