"""Rows of streams that several joins have as a side, kept once by key, whoever joins with them
(differential dataflow, shared arrangements; decided by ``plan/install/shared/sides``).

    Join (?x :p ?y, ?x :q ?z)      Join (ArrangeStream (?x :p ?y), ?x :q ?z)
    Join (?x :p ?y, ?x :r ?w)      Join (the same one,             ?x :r ?w)

A side can be kept by another operator than its join where

    it has the join's windows, all of them: so its rows matter there exactly as long as here;
    its rows only come, and none takes others back: so it does not matter who else has met them;
    the join has a key, by whose variables its rows are placed: so all that meet are in one place.

Relaxed joins have such sides in common with relaxed joins: what is kept, and how long, follows from
the picks above any of them. Rows by number stay with their join.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op

_APART = (p.Applied, p.SubqueryWindow, p.StaticSubplan)
"""What is below these is of another level, or is planned otherwise."""


def joins_of(root: Op) -> dict[int, list[tuple[Op, tuple[int, ...]]]]:
    """The joins of a query that have sides which can be kept elsewhere, and these, by how many such
    joins are on the way down: those below others first.
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
    """Which inputs of a join can be kept elsewhere."""
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
    if not other.isdisjoint(spec.keys):  # a typed column meets another way
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
    """What keeps side ``at`` of a join."""
    assert isinstance(join.spec, p.Join), "a join has a key"
    rows, raw = join.inputs[at], join.spec.raw[at]
    keeping = p.RelaxedStream if join.spec.relaxed else p.ArrangeStream
    keys = tuple([v for v in rows.variables if v in join.spec.keys])
    return Op(
        keeping(keys, raw), (rows,), rows.variables, rows.windows, join.stage,
        (join.exchange[at],), join.placed, rows.maybe, typed=rows.typed,
    )  # fmt: skip


def read_arrangement(join: Op, at: int, side: Op) -> Op:
    """A join that reads its side ``at`` where it is kept."""
    assert isinstance(join.spec, p.Join), "a join"
    raw = tuple([is_raw and i != at for i, is_raw in enumerate(join.spec.raw)])
    return replace(
        join,
        spec=replace(join.spec, raw=(raw[0], raw[1])),
        inputs=tuple([side if i == at else rows for i, rows in enumerate(join.inputs)]),
        exchange=tuple([None if i == at else by for i, by in enumerate(join.exchange)]),
    )


def rebuild_tree(root: Op, by: Mapping[int, Op]) -> Op:
    """The tree with others in the place of these operators, which stand above what they read."""
    done = dict(by)

    def visit(op: Op) -> Op:
        if id(op) not in done:
            below = () if isinstance(op.spec, _APART) else op.inputs
            inputs = tuple([visit(child) for child in below]) or op.inputs
            same = all(a is b for a, b in zip(inputs, op.inputs, strict=True))
            done[id(op)] = op if same else replace(op, inputs=inputs)
        return done[id(op)]

    return visit(root) if by else root
