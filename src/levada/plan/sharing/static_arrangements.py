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

from collections.abc import Mapping
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


# Arrangements of rows of streams that are a side of several joins: stored once, by key
# (differential dataflow, shared arrangements). ``shared_join_sides`` decides it.
#
#     Join (?x :p ?y, ?x :q ?z)      Join (ArrangeStream (?x :p ?y), ?x :q ?z)
#     Join (?x :p ?y, ?x :r ?w)      Join (the same one,             ?x :r ?w)
#
# An arrangement can keep a side of a join if
#
#     it has all windows of the join, so its rows count there exactly as long as here;
#     its rows are only added and take no others back, so other joins of them do not matter;
#     the join has a key whose variables place its rows, so all partners are in one place.
#
# Relaxed joins share such sides with relaxed joins: the picks above any of them decide the rows and
# their duration. Numbered rows stay with their join.


_APART = (p.Applied, p.SubqueryWindow, p.StaticSubplan)
"""Operators whose inputs belong to another level, or are planned in another way."""


def joins_of(root: Op) -> dict[int, list[tuple[Op, tuple[int, ...]]]]:
    """Returns the joins of a query with sides that can be arranged, with these sides.

    They are grouped by the number of such joins below them, lower joins first.
    """
    joins_by_height: dict[int, list[tuple[Op, tuple[int, ...]]]] = {}
    heights: dict[int, int] = {}

    def visit(op: Op) -> int:
        height = 0
        for child in () if isinstance(op.spec, _APART) else op.inputs:
            below = heights.get(id(child))
            if below is None:
                below = visit(child)
            if below > height:
                height = below
        if isinstance(op.spec, p.Join) and (sides := _sides(op, op.spec)):
            height += 1
            joins_by_height.setdefault(height, []).append((op, sides))
        heights[id(op)] = height
        return height

    visit(root)
    return dict(sorted(joins_by_height.items()))


def _sides(op: Op, spec: p.Join) -> tuple[int, ...]:
    """Returns the inputs of a join that can be arranged."""
    if not op.windows or not spec.keys or op.weighted or spec.negative:
        return ()
    if min(op.windows) < 0:  # by number
        return ()
    if op.placed == HOME or not {*spec.keys}.issuperset(op.placed):
        return ()
    left, right = op.inputs
    if isinstance(left.spec, p.Arrange) or isinstance(right.spec, p.Arrange):
        return ()
    other = (left.typed ^ right.typed) | (left.mixed ^ right.mixed)
    if not other.isdisjoint(spec.keys):  # a typed column is compared in another way
        return ()
    return tuple([at for at in (0, 1) if _fits(op, at)])


def _fits(join: Op, at: int) -> bool:
    rows = join.inputs[at]
    return (
        rows.windows == join.windows
        and not rows.weighted
        and join.exchange[at] in (None, join.placed)
    )


def arrangement_of_side(join: Op, at: int) -> Op:
    """Returns the arrangement of side ``at`` of a join."""
    assert isinstance(join.spec, p.Join), "a join has a key"
    rows, raw = join.inputs[at], join.spec.raw[at]
    keeping = p.RelaxedStream if join.spec.relaxed else p.ArrangeStream
    keys = tuple([v for v in rows.variables if v in join.spec.keys])
    return Op(
        keeping(keys, raw), (rows,), rows.variables, rows.windows, join.stage,
        (join.exchange[at],), join.placed, rows.maybe, typed=rows.typed,
    )  # fmt: skip


def read_arrangement(join: Op, at: int, side: Op) -> Op:
    """Returns a join that reads its side ``at`` from an arrangement."""
    assert isinstance(join.spec, p.Join), "a join"
    raw = tuple([is_raw and i != at for i, is_raw in enumerate(join.spec.raw)])
    return replace(
        join,
        spec=replace(join.spec, raw=(raw[0], raw[1])),
        inputs=tuple([side if i == at else rows for i, rows in enumerate(join.inputs)]),
        exchange=tuple([None if i == at else by for i, by in enumerate(join.exchange)]),
    )


def rebuild_tree(root: Op, by: Mapping[int, Op]) -> Op:
    """Returns the tree with these operators replaced; replacements contain the operators below."""
    done = dict(by)

    def visit(op: Op) -> Op:
        if id(op) not in done:
            below = () if isinstance(op.spec, _APART) else op.inputs
            inputs = tuple([visit(child) for child in below]) or op.inputs
            same = all(a is b for a, b in zip(inputs, op.inputs, strict=True))
            done[id(op)] = op if same else replace(op, inputs=inputs)
        return done[id(op)]

    return visit(root) if by else root
