"""Translates EXISTS and NOT EXISTS (SPARQL 1.1, 18.6) to joins that keep the left side, if these
are equivalent.

18.6 evaluates the inner group for each solution of the outer one, with its variables replaced by
their values. Evaluating the inner group once and finding a compatible solution is equivalent for
patterns, joins and unions. For expressions with a variable of the outer group it is equivalent only
if that variable is bound before. The filters at the end of the inner group become the condition of
the join, which reads both sides. Elsewhere the outer values are joined where they are read
(``correlated_exists``), or the query is refused with the name. As a whole condition of a FILTER it
is ``Exists``; inside an expression it is a variable that ``Mark`` adds to the solutions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from levada.core.expressions import Call, Expression, Function, Var, variables
from levada.errors import Span, UnsupportedError
from levada.language.sparql import ast
from levada.language.translate.sparql.context import Context, Marked
from levada.language.translate.sparql.correlated_exists import (
    Early,
    TooEarlyError,
    domain,
    unbound_outer_variables,
)
from levada.language.translate.sparql.expressions import operation
from levada.language.translate.sparql.timestamps import stamp_solutions
from levada.plan.logical.nodes import (
    Distinct,
    Exists,
    Filter,
    Join,
    Mark,
    Node,
    OrderBy,
    Slice,
    Union,
)
from levada.plan.logical.variables import (
    certain_variables,
    draws_values,
    mentioned_variables,
    never_bound_variables,
    possible_variables,
)

Tested = tuple[Node, bool, Span]
"""The inner pattern of an EXISTS, whether it is NOT EXISTS, and its place."""

Joined = Callable[[Node, Node, Expression | None], Node]
"""Builds the join of an EXISTS from outer solutions, an inner pattern and a condition."""

MOST_SPLITS = 2  # each doubles the evaluated patterns


def conjuncts(condition: ast.Expression) -> list[ast.Expression]:
    """Returns the parts of a conjunction: a filter keeps a solution iff all are true."""
    if isinstance(condition, ast.Operation) and condition.operator == Function.AND:
        return [part for operand in condition.operands for part in conjuncts(operand)]
    return [condition]


def as_exists(condition: ast.Expression) -> ast.Exists | None:
    """Returns the condition, if it is EXISTS or NOT EXISTS, or one of them below ``!``."""
    if isinstance(condition, ast.Exists):
        return condition
    if isinstance(condition, ast.Operation) and condition.operator == Function.NOT:
        inner = as_exists(condition.operands[0])
        return None if inner is None else ast.Exists(inner.pattern, not inner.negated, inner.span)
    return None


def exists(left: Node, tested: Tested, context: Context) -> Node:
    """Returns the solutions of ``left`` that the condition keeps.

    Raises ``UnsupportedError`` if a join is not equivalent to 18.6.
    """
    inner, negated, span = tested
    return _apply_to_outer(
        left,
        inner,
        span,
        context,
        lambda part, right, condition: Exists(part, right, condition, negated),
    )


def add_marks(left: Node, marks: Sequence[Marked], context: Context) -> Node:
    """Adds the value of each EXISTS and stamp to the solutions of ``left``. Raises as
    ``exists``.
    """
    for mark in marks:
        if mark.stamp is not None:
            left = stamp_solutions(left, mark, context)
            continue
        left = _apply_to_outer(left, mark.pattern, mark.span, context, _marking(mark.variable))
    return left


def _marking(variable: str) -> Joined:
    return lambda part, right, condition: Mark(part, right, condition, variable)


def optional_side(left: Node, right: Node, mark: Marked, context: Context) -> Node:
    """Returns the right side of OPTIONAL with the left values that an EXISTS or a stamp in its
    filters reads.

    These read both sides (18.2.2.6). Raises ``TooLittleError`` if only some solutions of the left
    bind it.
    """
    unseen = mentioned_variables(mark.pattern) & possible_variables(left) - certain_variables(
        right
    ) - never_bound_variables(left)
    if not unseen:
        return right
    if draws_values(left) or (mark.stamp is not None and not unseen <= certain_variables(left)):
        word = "EXISTS" if mark.stamp is None else "f:timestamp()"
        feature = (
            f"{word} in the FILTER of an OPTIONAL that uses ?{min(unseen)} of what stands before"
        )
        raise context.unsupported_error(feature, mark.span)
    if maybe := unseen - certain_variables(left):
        raise TooLittleError(min(maybe), mark.span)
    return Join(domain(left, unseen), right)


class TooLittleError(Exception):
    """A variable that only some outer solutions bind, where it must be known whether they do."""

    def __init__(self, name: str, span: Span) -> None:
        super().__init__(name)
        self.name, self.span = name, span


def split_by_binding(left: Node, name: str) -> tuple[Node, Node]:
    """Returns the solutions that bind a variable, and those that do not."""
    bound = Call(Function.BOUND, (Var(name),))
    return Filter(left, bound), Filter(left, Call(Function.NOT, (bound,)))


def _apply_to_outer(left: Node, inner: Node, span: Span, context: Context, join: Joined) -> Node:
    """Applies ``join`` to the outer solutions, the inner pattern joined with them, and the
    condition.

    If the inner pattern reads a variable early that only some outer solutions bind, solutions with
    and without it are joined separately. For the latter it is a variable of the inner group alone.
    """
    parts = [(left, 0)]
    joined: list[Node] = []
    while parts:
        part, splits = parts.pop()
        outer = possible_variables(part) - never_bound_variables(part)
        known = frozenset() if draws_values(left) else certain_variables(part)
        right, condition = _split_correlated(_reduce_to_existence(inner), outer)
        try:
            joined.append(join(part, Early(part, outer, known, outer).bind(right), condition))
        except TooEarlyError as found:
            if found.name in known or splits == MOST_SPLITS or draws_values(left):
                raise _refuse(found, span, context) from None
            parts += [(half, splits + 1) for half in reversed(split_by_binding(part, found.name))]
    return reduce(Union, joined)


def _refuse(error: TooEarlyError, span: Span, context: Context) -> UnsupportedError:
    hint = (
        f"In EXISTS, use ?{error.name} in a triple pattern first, "
        "or in a FILTER at the end of its group."
    )
    return context.unsupported_error(
        f"{error.word} within EXISTS that uses ?{error.name} of the outer group", span, hint=hint
    )


def _reduce_to_existence(node: Node) -> Node:
    """Returns a pattern that has a solution iff this one has, without counts and order."""
    while True:
        match node:
            case Slice(child, 0, limit) if limit != 0:
                node = child
            case OrderBy(child, _) | Distinct(child):
                node = child
            case _:
                return node


def _split_correlated(node: Node, outer: frozenset[str]) -> tuple[Node, Expression | None]:
    """Splits off the filters of the inner pattern that need the outer one."""
    kept: list[Expression] = []
    lifted: list[Expression] = []
    while isinstance(node, Filter):
        here = unbound_outer_variables(node, outer)
        for condition in _all_of(node.condition):
            (lifted if here & set(variables(condition)) else kept).append(condition)
        node = node.child
    inner = Filter(node, operation(Function.AND, kept)) if kept else node
    return inner, operation(Function.AND, lifted) if lifted else None


def _all_of(condition: Expression) -> list[Expression]:
    if isinstance(condition, Call) and condition.function is Function.AND:
        return [part for arg in condition.args for part in _all_of(arg)]
    return [condition]
