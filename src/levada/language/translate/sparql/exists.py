"""Translates EXISTS and NOT EXISTS (SPARQL 1.1, 18.6) to joins that keep the left side, if these
are equivalent.

18.6 evaluates the inner group for each solution of the outer one, with its variables replaced by
their values. Evaluating the inner group once and finding a compatible solution is equivalent for
patterns, joins and unions. For expressions with a variable of the outer group it is equivalent only
if that variable is bound before. The filters at the end of the inner group become the condition of
the join, which reads both sides. Elsewhere the outer values are joined where they are read
(``exists``), or the query is refused with the name. As a whole condition of a FILTER it
is ``Exists``; inside an expression it is a variable that ``Mark`` adds to the solutions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from levada.core.expressions import Call, Expression, Function, Var, variables
from levada.core.frozen import frozen
from levada.errors import Span, UnsupportedError
from levada.language.sparql import ast
from levada.language.translate.sparql.context import Context, Marked
from levada.language.translate.sparql.expressions import operation
from levada.language.translate.sparql.timestamps import stamp_solutions
from levada.plan.logical.nodes import (
    Closure,
    Distinct,
    Exists,
    Extend,
    Filter,
    Group,
    Join,
    LeftJoin,
    Mark,
    Minus,
    Node,
    OrderBy,
    Project,
    Slice,
    Union,
)
from levada.plan.logical.traversal import children, memoize
from levada.plan.logical.variables import (
    certain_variables,
    draws_values,
    expressions,
    mentioned_variables,
    never_bound_variables,
    possible_variables,
)

# Joins outer values early: for an EXISTS whose inner pattern reads a variable of the outer group
# before it has bound it.
#
# Substitution (SPARQL 1.1, 18.6) gives the inner pattern the outer values at once. Joining the
# *domain*, the distinct values of the outer solutions, is equivalent where they are read: below the
# filter, on the left of the OPTIONAL, under the BIND, among the terms that a path of no step
# connects with themselves. A variable that some outer solution leaves unbound would not be
# substituted, so only variables that are always bound can be joined. For a sub-select only shown
# variables can be outer ones: a hidden variable that it binds is another one by the scope of
# variables (18.2.1), as SPARQL 1.2's draft defines; for hidden ones that it only reads, engines
# differ. The sides of a MINUS share some variable of the inner group. LIMIT counts the rows of one
# outer solution. Otherwise ``TooEarlyError`` names the construct.


_WORDS: dict[type[Node], str] = {
    LeftJoin: "An OPTIONAL",
    Minus: "A MINUS",
    Exists: "An EXISTS",
    Mark: "An EXISTS",
    Filter: "A FILTER in a nested group",
    Extend: "BIND or AS",
    Group: "GROUP BY or an aggregate",
    Project: "A sub-SELECT",
    OrderBy: "ORDER BY",
    Slice: "LIMIT or OFFSET",
    Closure: "A path that may have no step",
}


class TooEarlyError(Exception):
    """A construct for which substitution differs from a join: its word, its variable."""

    def __init__(self, node: Node, name: str) -> None:
        super().__init__(name)
        self.word, self.name = _WORDS[type(node)], name


def domain(left: Node, names: frozenset[str]) -> Node:
    """Returns the distinct values of these variables in the solutions of ``left``."""
    return Distinct(Project(left, tuple(sorted(names))))


@frozen
class Early:
    """Binds the outer variables that an inner pattern reads.

    ``left`` has the outer solutions, ``every`` are their variables, ``outer`` those that the
    pattern can read, ``known`` those of them that are always bound.
    """

    left: Node
    outer: frozenset[str]
    known: frozenset[str]
    every: frozenset[str]

    def bind(self, node: Node) -> Node:
        """Returns an inner pattern whose join with the outer solutions is equivalent to
        substitution.

        Raises ``TooEarlyError``.
        """
        if isinstance(node, Slice) and (unbound_names := unbound_outer_variables(node, self.outer)):
            raise TooEarlyError(node, min(unbound_names))
        if isinstance(node, Project):
            return replace(node, child=self._visible_values(node).bind(node.child))
        inner: dict[str, Any] = {
            name: self.bind(child)
            for name in _CHILDREN
            if (child := getattr(node, name, None)) is not None
        }
        same = all(getattr(node, name) is child for name, child in inner.items())
        bound = node if same else replace(node, **inner)
        match node, bound:
            case (Slice(), _):
                return bound
            case (Group(_, keys, _), Group(child, _, _)):
                return self._bind_all(
                    bound,
                    (self.outer & mentioned_variables(node))
                    - (certain_variables(child) & frozenset(keys)),
                )
            case (Minus(), Minus(left, _)):
                return replace(
                    bound,
                    left=self._with_values(left, unbound_outer_variables(node, self.outer), node),
                )
            case (OrderBy(), OrderBy(child, _)) if unbound_outer_variables(node, self.outer):
                return child  # without LIMIT an order changes nothing
            case _:
                return self._bind_early(bound)

    def _visible_values(self, node: Project) -> Early:
        """Returns the outer values for a sub-select: those that it shows.

        Hidden variables must be bound by its own patterns.
        """
        shown = frozenset(node.variables)
        if strange := self.every & mentioned_variables(node.child) - shown - _bind(node.child):
            raise TooEarlyError(node, min(strange))
        return replace(self, outer=self.outer & shown, known=self.known & shown)

    def _bind_all(self, node: Node, names: frozenset[str]) -> Node:
        if names:
            raise TooEarlyError(node, min(names))
        return node

    def _with_values(self, left: Node, names: frozenset[str], minus: Minus) -> Node:
        """Returns the left side of a MINUS joined with the outer values that the right side reads.

        So both bind them, as substitution gives both their values. Substitution removes a variable
        of the outer group; so another variable must connect the sides.
        """
        if not names:
            return left
        if (
            not (certain_variables(minus.left) & certain_variables(minus.right)) - self.outer
            or not names <= self.known
        ):
            raise TooEarlyError(minus, min(names - self.known or names))
        return Join(domain(self.left, names), left)

    def _bind_early(self, node: Node) -> Node:
        """Returns a node joined with the outer values that it reads."""
        names = unbound_outer_variables(node, self.outer)
        if not names:
            return node
        if names <= self.known:
            node = self._join_domain(node, domain(self.left, names), names)
        if (
            left_over := unbound_outer_variables(node, self.outer)
            if not isinstance(node, Closure)
            else names - self.known
        ):
            raise TooEarlyError(node, min(left_over - self.known or left_over))
        return node

    def _join_domain(self, node: Node, values: Node, names: frozenset[str]) -> Node:
        match node:
            case LeftJoin() | Exists() | Mark():
                return replace(node, left=Join(values, node.left))
            case Filter() | Extend():
                return replace(node, child=Join(values, node.child))
            case Closure():
                assert node.zero is not None, "a path of a step or more looks at nothing"
                return replace(node, zero=Union(node.zero, self._starts(node, values, names)))
            case _:
                return node

    def _starts(self, node: Closure, values: Node, names: frozenset[str]) -> Node:
        """Returns the outer values of the ends of a path, as its start: it connects each with
        itself.
        """
        ends = [
            Project(Extend(Project(values, (node.end,)), node.start, Var(node.end)), (node.start,))
        ]
        starts = [Project(values, (node.start,))]
        return (
            Union(*starts, *ends)
            if len(names) == 2
            else (starts if node.start in names else ends)[0]
        )


@memoize
def _bind(node: Node) -> frozenset[str]:
    """Returns the variables that some part of a pattern binds, hidden ones of
    sub-selects excluded.
    """
    below = () if isinstance(node, Project) else children(node)
    return possible_variables(node).union(*map(_bind, below))


_CHILDREN = ("left", "right", "child", "zero")


def unbound_outer_variables(node: Node, outer: frozenset[str]) -> frozenset[str]:
    """Returns the outer variables that a node reads and that its solutions might not bind."""
    seen = outer & {name for e in expressions(node) for name in variables(e)}
    match node:
        case LeftJoin(left, right, _) | Exists(left, right, _, _):
            return (seen | outer & mentioned_variables(right)) - certain_variables(left)
        case Mark(left, right, _, variable):
            return (seen | outer & mentioned_variables(right)) - certain_variables(left) | (
                outer & {variable}
            )
        case Minus(left, right):
            both = certain_variables(left) & certain_variables(right)
            return (
                outer & mentioned_variables(right) - both
                if both - outer
                else outer & mentioned_variables(right)
            )
        case Filter(child, _):
            return seen - certain_variables(child)
        case Extend(child, variable, _):
            return (seen - certain_variables(child)) | (outer & {variable})
        case Closure(_, zero, start, end, _, ends):
            return (
                outer & {start, end} if zero is not None and ends == (None, None) else frozenset()
            )
        case Group(child, keys, _):
            return (outer & mentioned_variables(node)) - (
                certain_variables(child) & frozenset(keys)
            )
        case OrderBy():
            return seen
        case Slice():
            return outer & mentioned_variables(node)
        case _:
            return frozenset()


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
