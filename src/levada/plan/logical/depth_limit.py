"""Limits the depth of a query: the stages after the algebra walk it recursively.

A query that registration accepts must not stop the engine that runs thousands of others. So deeper
queries are refused at registration. Chains of ``||``, ``&&`` and UNION are balanced before, and a
basic graph pattern is one node. Cost: linear in the algebra, without recursion.
"""

from __future__ import annotations

from levada.core.expressions import Aggregate, Call, Expression
from levada.errors import QueryError
from levada.plan.logical.nodes import Node
from levada.plan.logical.traversal import children
from levada.plan.logical.variables import expressions

MOST_OPERATORS = 250
MOST_NODES = 50_000
"""Operators of a query, each as often as it stands in the algebra: planning takes half a minute."""
MOST_CALLS = 120
MOST_PARTS = 10_000
"""Operators, functions and operands of an expression, each as often as it is evaluated."""


def has_many_parts(expression: Expression) -> bool:
    """Returns whether an expression has more than ``MOST_PARTS`` parts. Cost: that many steps."""
    waiting, count = [expression], 0
    while waiting and count <= MOST_PARTS:
        part = waiting.pop()
        count += 1
        waiting += part.args if isinstance(part, Call) else ()
    return count > MOST_PARTS


def check_depth(pattern: Node, text: str) -> None:
    """Raises ``QueryError`` for a pattern with too many operators, or an expression nested too
    deeply.

    >>> from levada.plan.logical.nodes import Filter, Unit
    >>> from levada.core.expressions import Var
    >>> check_depth(Filter(Unit(), Var("x")), "")
    """
    waiting: list[tuple[Node, int]] = [(pattern, 1)]
    visited = 0
    while waiting:
        node, depth = waiting.pop()
        visited += 1
        if visited > MOST_NODES:
            hint = "Outer joins, and queries in Or, Case or Select, repeat the tables before them. "
            hint += "Split the query: let one write a stream that the other reads."
            message = f"The query takes more than {MOST_NODES:,} operators."
            raise QueryError(message, text=text, hint=hint)
        for expression in expressions(node):
            _check_expression(expression, text)
        if depth > MOST_OPERATORS:
            raise _too_deep(
                f"Say it with fewer than {MOST_OPERATORS} OPTIONAL, BIND, "
                "FILTER and the like one after the other.",
                text,
            )
        waiting += [(child, depth + 1) for child in children(node)]


def _check_expression(expression: Expression, text: str) -> None:
    waiting: list[tuple[Expression, int]] = [(expression, 1)]
    while waiting:
        part, depth = waiting.pop()
        if depth > MOST_CALLS:
            raise _too_deep(
                f"An expression has at most {MOST_CALLS} operators and "
                "functions one within the other.",
                text,
            )
        match part:
            case Call(_, args):
                waiting += [(arg, depth + 1) for arg in args]
            case Aggregate(_, arg, _) if arg is not None:
                waiting.append((arg, depth + 1))
            case _:
                pass


def _too_deep(hint: str, text: str) -> QueryError:
    return QueryError("The query is nested too deeply.", text=text, hint=hint)
