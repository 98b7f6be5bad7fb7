"""Combines parts of a conjunction into one join step of several inputs, if the requested join form
has such a step.

``replicated`` combines all chains and circles; ``auto`` combines those for which it costs less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from levada.core.expressions import Call, Function, Var
from levada.plan.execution.joins import JoinForm
from levada.plan.physical.build import filter_, join, rename, require, union
from levada.plan.physical.operators import Op
from levada.plan.physical.replicated_join import (
    can_replicate,
    count_variables,
    link_parts,
    linked_join,
)
from levada.plan.statistics.choose_join_strategy import TWO, Chosen, JoinStrategyRequest, choose
from levada.plan.statistics.input_statistics import problem_of, values_of


def apply_strategy(
    parts: Sequence[Op], wanted: JoinStrategyRequest, two: Callable[[Sequence[Op]], Op]
) -> list[Op]:
    """Returns the parts, with one operator in the place of the parts that form one step.

    ``two`` joins some parts two at a time.
    """
    if wanted.form is JoinForm.REPLICATED:
        return link_parts(parts, lambda group: _requested_hub(group, wanted))
    return link_parts(parts, lambda group: _cheapest_hub(group, wanted, two))


def spread_join(left: Op, right: Op, wanted: JoinStrategyRequest) -> Op | None:
    """Joins two parts without a key over all partitions; None: the join runs at one home.

    If the parts share a variable that may be unbound, rows are split by whether it is bound. Bound
    rows are joined by it, and rows without it go to all partitions. Each pair of rows belongs to
    exactly one of these joins. Without such a variable the smaller part goes to all partitions, if
    the sizes are known.
    """
    shared = [v for v in right.variables if v in left.variables]
    if not can_replicate([_as_always_bound(left, shared), _as_always_bound(right, shared)]):
        return None
    if shared:
        return _join_optional_side(left, right, shared[0], wanted)
    hub = _cheapest_hub((left, right), wanted, lambda group: join(group[0], group[1]), least=2)
    return linked_join((left, right), hub) if hub else None


def _as_always_bound(op: Op, names: Sequence[str]) -> Op:
    """Returns the operator with these variables marked as always bound."""
    return replace(op, maybe=op.maybe - set(names))


def _join_optional_side(left: Op, right: Op, by: str, wanted: JoinStrategyRequest) -> Op:
    """Joins two parts, one of which may lack the variable ``by``."""
    pairs = [
        (one, other, with_it, also_with_it)
        for one, with_it in _split_by_binding(left, by)
        for other, also_with_it in _split_by_binding(right, by)
    ]
    wanted.notes.append(
        f"The join by ?{by}, which may be unbound, is spread: rows that have it are joined by it, "
        "and those without it go to all partitions."
    )
    names = list(dict.fromkeys((*left.variables, *right.variables)))
    made = [_join_split_sides(*pair, by) for pair in pairs]
    return union(*(rename(op, names) if op.variables != tuple(names) else op for op in made))


def _split_by_binding(op: Op, by: str) -> list[tuple[Op, bool]]:
    """Splits rows into those that bind a variable and those that do not (without the variable)."""
    if by not in op.maybe:
        return [(op, True)]
    lacking = filter_(op, Call(Function.NOT, (Call(Function.BOUND, (Var(by),)),)))
    return [
        (require(op, [by]), True),
        (rename(lacking, [v for v in op.variables if v != by]), False),
    ]


def _join_split_sides(one: Op, other: Op, with_it: bool, also_with_it: bool, by: str) -> Op:
    """Joins two split sides: rows with the variable stay, rows without it go to all partitions.

    If both sides lack it, the rows of the right side go to where the left ones are.
    """
    both = set(one.variables) & set(other.variables)
    if both or (with_it and also_with_it):
        return join(one, other)
    if with_it or also_with_it:
        return linked_join((one, other), by)
    hub = next((v for op in (one, other) for v in op.variables if v not in op.maybe), "")
    return linked_join((one, other), hub) if hub else join(one, other)


def _requested_hub(group: Sequence[Op], wanted: JoinStrategyRequest) -> str:
    """Returns the hub variable of a requested step: the variable that most parts share.

    Ties go to the most even variable if statistics are known, else to the first. A star has no hub
    ("").
    """
    uses = count_variables(group)
    most = max(uses.values())
    if len(group) < 3 or most == len(group):
        return ""
    names = [name for name, many in uses.items() if many == most]
    if wanted.measures is None or len(names) == 1:
        return names[0]
    values = [values_of(part, wanted.measures) for part in group]
    having = [
        [of for of, part in zip(values, group, strict=True) if v in part.variables] for v in names
    ]
    if any(v not in of for v, each in zip(names, having, strict=True) for of in each):
        return names[0]
    many = wanted.measures.partitions
    shares = [
        max(of[v].busiest(many) for of in each) for v, each in zip(names, having, strict=True)
    ]
    return names[shares.index(min(shares))]


def _cheapest_hub(
    group: Sequence[Op],
    wanted: JoinStrategyRequest,
    two: Callable[[Sequence[Op]], Op],
    least: int = 3,
) -> str:
    """Returns the hub variable of the cheapest step; "" if binary joins win or statistics are
    unknown.

    A star by its own variable is left to ``multiway``.
    """
    if wanted.measures is None or len(group) < least:
        return ""
    problem = problem_of(group, two(group), wanted.measures, wanted.windows)
    if problem is None:
        return ""
    choice = choose(problem)
    parts = tuple([" ".join(f"?{name}" for name in part.variables) for part in group])
    star = next((v for v, of in problem.uses.items() if len(of) == len(group)), "")
    wanted.chosen.append(Chosen(parts, problem.partitions, choice, star))
    return choice.chosen.by if choice.chosen.copied else TWO
