"""Replaces binary joins over one another by one step of all inputs, if all are joined by the same
variables (a star): intermediate rows are not state, and the order is chosen in each epoch.

    ((A join B) join C) by ?x   ->   multiway join of A, B, C by ?x

The binary tree still decides the stage of rows and their exchanges; it is only flattened. A tree
with a condition between its joins (on two of three parts), or of another shape than a star, stays
as it is, and ``why_binary`` returns the reason. (CQELS Cloud, C24 to C29.)

Invariant: the rows are those of the binary joins, with the same times.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from levada.core.size_thresholds import register
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op

_JOINS = (p.Join, p.MultiwayJoin)


MAX_ADAPTIVE_INPUTS = register(f"{__name__}.MAX_ADAPTIVE_INPUTS", 6, least=2)
"""The maximum number of inputs of an adaptive join: figures are kept for their subsets."""


def multiway(root: Op, *, adaptive: bool = False) -> Op:
    """Returns the operators of a query with one step in place of the joins of each star.

    ``adaptive``: or two at a time, whichever costs less.
    """
    return _rewrite(root, {}, adaptive=adaptive)


def describe_either_form(root: Op) -> Iterator[str]:
    """Returns a sentence for each join whose form is chosen while it runs."""
    for op in p.all_operators(root):
        if isinstance(op.spec, p.AdaptiveJoin):
            by = " ".join(f"?{name}" for name in op.spec.keys)
            yield (
                f"The join of {len(op.inputs)} parts by {by} is in one step or two at a time, "
                "as costs less: that is measured while it runs, and levada status tells."
            )


def why_binary(root: Op) -> Iterator[str]:
    """Returns a sentence for each binary join over joins, with the reason."""
    for op in p.all_operators(root):
        if isinstance(op.spec, _JOINS):
            by = " ".join(f"?{name}" for name in op.spec.keys) or "nothing"
            reasons = (_why(op, below) for below in op.inputs)
            yield from (f"The join by {by} has a join as input: {r}." for r in reasons if r)


def _rewrite(op: Op, done: dict[int, Op], *, adaptive: bool) -> Op:
    """Rewrites an operator and those below it; shared ones stay shared."""
    if id(op) not in done:
        inputs = [_rewrite(child, done, adaptive=adaptive) for child in op.inputs]
        done[id(op)] = _flatten_join(_with_inputs(op, tuple(inputs)), adaptive=adaptive)
    return done[id(op)]


def _with_inputs(op: Op, inputs: tuple[Op, ...]) -> Op:
    same = all(a is b for a, b in zip(inputs, op.inputs, strict=True))
    return op if same else replace(op, inputs=inputs)


def _flatten_join(op: Op, *, adaptive: bool) -> Op:
    """Returns a join with the inputs of the joins below in place of these."""
    if not isinstance(op.spec, p.Join) or all(_why(op, below) != "" for below in op.inputs):
        return op
    inputs: list[Op] = []
    exchange: list[tuple[str, ...] | None] = []
    raw: list[bool] = []
    for below, by, is_raw in zip(op.inputs, op.exchange, op.spec.raw, strict=True):
        apart = _why(op, below) == ""
        inputs += below.inputs if apart else (below,)
        exchange += below.exchange if apart else (by,)
        raw += below.spec.raw if apart and isinstance(below.spec, _JOINS) else (is_raw,)
    kind = p.AdaptiveJoin if adaptive and len(inputs) <= MAX_ADAPTIVE_INPUTS else p.MultiwayJoin
    spec = kind(op.spec.keys, tuple(raw))
    return replace(op, spec=spec, inputs=tuple(inputs), exchange=tuple(exchange))


def _why(op: Op, below: Op) -> str | None:
    """Returns why a join and one below it are not one step; "": they are; None: there is none
    below.
    """
    within = below
    while isinstance(within.spec, p.Filter | p.Extend | p.Rename):
        within = within.inputs[0]
    if not isinstance(within.spec, _JOINS):
        return None
    if within is not below:
        return f"a {type(below.spec).__name__.lower()} stands between them"
    return _why_not_both(op) or _why_not_both(below) or _why_apart(op, below)


def _why_not_both(op: Op) -> str:
    """Returns why a join itself stays binary."""
    spec = op.spec
    if op.weighted or any(rows.weighted for rows in op.inputs):
        return "rows of it are taken back"
    if not op.windows:
        return "it joins static data alone"
    if not isinstance(spec, p.Join):
        return ""
    left, right = op.inputs
    shared = set(left.variables) & set(right.variables)
    if not spec.keys:
        return "its inputs have no variable in common that is always bound"
    if shared != set(spec.keys):
        return "its inputs share a variable that may be unbound"
    return ""


def _why_apart(op: Op, below: Op) -> str:
    """Returns why two joins are not one step."""
    assert isinstance(op.spec, _JOINS), "a join"
    assert isinstance(below.spec, _JOINS), "a join"
    if set(op.spec.keys) != set(below.spec.keys):
        return "they are by other variables"
    if (op.stage, op.placed) != (below.stage, below.placed):
        return "their rows are in other places"
    return ""
