"""EXISTS and NOT EXISTS as whole conditions of FILTER (SPARQL 1.1, 18.6): joins that keep the left side, where that is the same.

18.6 evaluates the inner group anew for each solution of the outer one, its variables replaced by their values. Evaluating the
inner group once and looking for a compatible solution is the same for patterns, joins and unions; and for whatever looks at a
variable of the outer group, only if that variable is bound before it is looked at. The exception that people write are
filters at the end of the inner group: they become the condition of the join, which sees both sides. What is left is refused
by name, since substitution and join would differ: an inner OPTIONAL, MINUS, BIND, GROUP BY, LIMIT, sub-select, or nested
filter or EXISTS that uses a variable of the outer group too early.
"""

from __future__ import annotations

from levada.algebra.expression import Call, Expression, Function, variables
from levada.algebra.nodes import Closure, Exists, Extend, Filter, Group, LeftJoin, Minus, Node, Project, Slice
from levada.algebra.show import children
from levada.algebra.translate_context import Context
from levada.algebra.translate_expressions import operation
from levada.algebra.variables import certain, expressions, mentioned, possible
from levada.errors import Span
from levada.syntax import ast

Tested = tuple[Node, bool, Span]
"""The inner pattern of an EXISTS, whether it is NOT EXISTS, and its place."""


def conjuncts(condition: ast.Expression) -> list[ast.Expression]:
    """The parts of a conjunction: a filter keeps a solution iff all are true."""
    if isinstance(condition, ast.Operation) and condition.operator == Function.AND:
        return [part for operand in condition.operands for part in conjuncts(operand)]
    return [condition]


def as_exists(condition: ast.Expression) -> ast.Exists | None:
    """The condition, if it is EXISTS or NOT EXISTS, or one of them below ``!``."""
    if isinstance(condition, ast.Exists):
        return condition
    if isinstance(condition, ast.Operation) and condition.operator == Function.NOT:
        inner = as_exists(condition.operands[0])
        return None if inner is None else ast.Exists(inner.pattern, not inner.negated, inner.span)
    return None


def exists(left: Node, tested: Tested, context: Context) -> Node:
    """The solutions of ``left`` that the condition keeps. Raises ``UnsupportedError`` where a join is not what 18.6 says."""
    right, negated, span = tested
    outer = possible(left)
    right, condition = _correlated(right, outer)
    found = _obstacle(right, outer)
    if found is not None:
        word, name = found
        hint = f"In EXISTS, use ?{name} in a triple pattern first, or in a FILTER at the end of its group."
        raise context.unsupported(f"{word} within EXISTS that uses ?{name} of the outer group", span, hint=hint)
    return Exists(left, right, condition, negated)


def within_optional(left: Node, right: Node, tested: Tested, context: Context) -> Node:
    """The right side of OPTIONAL with an EXISTS among its own filters, which may see the left side (18.2.2.6)."""
    unseen = sorted(mentioned(tested[0]) & possible(left) - certain(right))
    if unseen:
        feature = f"EXISTS in the FILTER of an OPTIONAL that uses ?{unseen[0]} of what stands before"
        raise context.unsupported(feature, tested[2])
    return exists(right, tested, context)


def _correlated(node: Node, outer: frozenset[str]) -> tuple[Node, Expression | None]:
    """The inner pattern without those of its own filters that need the outer solution, and these."""
    kept: list[Expression] = []
    lifted: list[Expression] = []
    while isinstance(node, Filter):
        here = _unbound(node, outer)
        for condition in _all_of(node.condition):
            (lifted if here & set(variables(condition)) else kept).append(condition)
        node = node.child
    inner = Filter(node, operation(Function.AND, kept)) if kept else node
    return inner, operation(Function.AND, lifted) if lifted else None


def _all_of(condition: Expression) -> list[Expression]:
    if isinstance(condition, Call) and condition.function is Function.AND:
        return [part for arg in condition.args for part in _all_of(arg)]
    return [condition]


def _obstacle(node: Node, outer: frozenset[str]) -> tuple[str, str] | None:
    """What makes substitution differ from a join: the construct's word and a variable of the outer group that it uses."""
    names = _unbound(node, outer)
    if names:
        return _WORDS[type(node)], min(names)
    return next((found for child in children(node) if (found := _obstacle(child, outer)) is not None), None)


_WORDS: dict[type[Node], str] = {
    LeftJoin: "An OPTIONAL",
    Minus: "A MINUS",
    Exists: "An EXISTS",
    Filter: "A FILTER in a nested group",
    Extend: "BIND or AS",
    Group: "GROUP BY or an aggregate",
    Project: "A sub-SELECT",
    Closure: "A path that may have no step",
    Slice: "LIMIT or OFFSET",
}


def _unbound(node: Node, outer: frozenset[str]) -> frozenset[str]:
    """The outer variables that a node looks at where its solutions might not bind them yet."""
    seen = outer & {name for e in expressions(node) for name in variables(e)}
    match node:
        case LeftJoin(left, right, _) | Exists(left, right, _, _):
            return (seen | outer & mentioned(right)) - certain(left)
        case Minus(_, right):
            return outer & mentioned(right)
        case Filter(child, _):
            return seen - certain(child)
        case Extend(child, variable, _):
            return (seen - certain(child)) | (outer & {variable})
        case Closure(_, zero, start, end, _, ends):
            return outer & {start, end} if zero is not None and ends == (None, None) else frozenset()
        case Group(child, keys, _):
            return (outer & mentioned(node)) - (certain(child) & frozenset(keys))
        case Project(child, names):
            return (outer & mentioned(child)) - frozenset(names)
        case Slice():
            return outer & mentioned(node)
        case _:
            return frozenset()
