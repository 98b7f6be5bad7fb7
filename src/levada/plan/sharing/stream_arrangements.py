"""Arrangements of rows of streams that are a side of several joins: stored once, by key
(differential dataflow, shared arrangements). ``shared_join_sides`` decides it.

    Join (?x :p ?y, ?x :q ?z)      Join (ArrangeStream (?x :p ?y), ?x :q ?z)
    Join (?x :p ?y, ?x :r ?w)      Join (the same one,             ?x :r ?w)

An arrangement can keep a side of a join if

    it has all windows of the join, so its rows count there exactly as long as here;
    its rows are only added and take no others back, so other joins of them do not matter;
    the join has a key whose variables place its rows, so all partners are in one place.

Relaxed joins share such sides with relaxed joins: the picks above any of them decide the rows and
their duration. Numbered rows stay with their join.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op

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
