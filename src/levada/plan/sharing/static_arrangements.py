"""Arrangements of static data that are joined with rows of streams: stored once, by key, for all
joins (differential dataflow, shared arrangements).

    Join (rows of streams, static data)      Join (rows of streams, Arrange (static data))
    .. relaxed, of which queries want        Join (.., RelaxedStatic (static data)), which has the
    other static rows                        rows that any of them wants (``parameterize``)
    OPTIONAL, MINUS, EXISTS                  likewise; existence tests read an ArrangeDistinct,
                                             which has equal rows once

An ``Arrange`` is in the stage of its join and placed like it, so matching rows are in one
partition. Joins that share it read it there, and keep nothing of it. It is added after all other
rewritings of a query, so these do not handle it.

Static data that may be replaced have weights and instants, and stay with their join. So do static
data that are joined without a key, since their rows are at the home of the join's member, and those
in the trees of a merge.
"""

from __future__ import annotations

from dataclasses import replace

from levada.core.expressions import random
from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op


def with_arrangements(root: Op) -> Op:
    """Returns a query whose joins read arrangements of static data."""
    return _arrange_below(root, {})


def _arrange_below(op: Op, done: dict[int, Op]) -> Op:
    if isinstance(op.spec, p.Applied):
        return op
    if id(op) not in done:
        inputs = [_arrange_below(child, done) for child in op.inputs]
        if (at := static_side(op)) >= 0:
            inputs[at] = _arrange(op, at, inputs[at])
        same = all(a is b for a, b in zip(inputs, op.inputs, strict=True))
        done[id(op)] = op if same else replace(op, inputs=tuple(inputs), exchange=_exchange(op, at))
    return done[id(op)]


def static_side(op: Op) -> int:
    """Returns the input of an operator that can be arranged; -1: none."""
    if any(isinstance(rows.spec, p.Arrange) for rows in op.inputs):
        return -1
    sides: tuple[int, ...] = (1,)
    match op.spec:
        case p.Join(keys) if op.windows and keys:
            sides = (0, 1)
        case p.ReportJoin(_, keys, _, condition, True) if keys and op.placed:
            if condition is not None and random(condition):
                return -1
        case _:
            return -1
    if op.placed == HOME or not {*op.placed} <= {*keys}:
        return -1
    for at in sides:
        rows = op.inputs[at]
        plain = rows.windows == () and not (rows.weighted or rows.raw)
        if plain and op.exchange[at] in (None, op.placed) and _reads_static(rows):
            return at
    return -1


def _reads_static(op: Op) -> bool:
    """Whether some rows are of static graphs, not all of VALUES."""
    if isinstance(op.spec, p.Match | p.Entailed):
        return op.spec.stream is None
    return any(map(_reads_static, op.inputs))


def _arrange(join: Op, at: int, rows: Op) -> Op:
    spec = join.spec
    assert isinstance(spec, p.Join | p.ReportJoin), "a join has a key"
    keys = tuple([v for v in rows.variables if v in spec.keys])
    asks = isinstance(spec, p.ReportJoin) and not spec.kind.returns_pairs and spec.condition is None
    keeping = p.ArrangeDistinct if asks else p.Arrange
    return _keeping(keeping(keys), join, at, rows)


def with_relaxed_static(join: Op, at: int) -> Op:
    """Returns a relaxed join that reads its static side ``at`` from a shared arrangement.

    The arrangement has the rows that any of its queries wants.
    """
    assert isinstance(join.spec, p.Join), "a join has a key"
    rows = join.inputs[at]
    keys = tuple([v for v in rows.variables if v in join.spec.keys])
    kept = _keeping(p.RelaxedStatic(keys), join, at, rows)
    inputs = tuple([kept if i == at else child for i, child in enumerate(join.inputs)])
    return replace(join, inputs=inputs, exchange=_exchange(join, at))


def _keeping(spec: p.Arrange, join: Op, at: int, rows: Op) -> Op:
    return Op(
        spec, (rows,), rows.variables, (), join.stage, (join.exchange[at],), join.placed,
        rows.maybe, typed=rows.typed,
    )  # fmt: skip


def _exchange(op: Op, at: int) -> tuple[tuple[str, ...] | None, ...]:
    """Returns the exchanges of an operator whose input ``at`` is arranged in place."""
    return tuple([None if i == at else by for i, by in enumerate(op.exchange)])
