"""Builds expressions (SPARQL 1.1, section 17, and the aggregates of section 11)."""

from __future__ import annotations

from typing import Any

from lark import Token

from levada.core.rdf_terms import Iri
from levada.language.sparql import ast
from levada.language.sparql.build.terms import Terms

_UNARY = {"!": "!", "+": "unary +", "-": "unary -"}


def _without_tokens(children: tuple[Any, ...]) -> tuple[ast.Expression, ...]:
    """Returns the built children, without kept tokens (NIL, DISTINCT) and empty places."""
    return tuple(child for child in children if child is not None and not isinstance(child, Token))


class Expressions(Terms):
    """Builds expressions; operators carry the spelling that ``core.expressions.Function`` uses."""

    def conditional_or(self, *operands: ast.Expression) -> ast.Operation:
        """``a || b || ...``."""
        return ast.Operation("||", operands)

    def conditional_and(self, *operands: ast.Expression) -> ast.Operation:
        """``a && b && ...``."""
        return ast.Operation("&&", operands)

    def comparison(
        self, left: ast.Expression, operator: Token, right: ast.Expression
    ) -> ast.Operation:
        """One of the six comparisons."""
        return ast.Operation(str(operator), (left, right))

    addition = comparison
    multiplication = comparison

    def signed_addition(self, left: ast.Expression, right: ast.Expression) -> ast.Operation:
        """``1 -2``: the sum with a number that brings its sign."""
        return ast.Operation("+", (left, right))

    def unary(self, operator: Token, operand: ast.Expression) -> ast.Operation:
        """``!a``, ``+a``, ``-a``."""
        return ast.Operation(_UNARY[operator], (operand,))

    def in_list(self, value: ast.Expression, *items: Any) -> ast.Operation:
        """``a IN (...)``."""
        return ast.Operation("IN", (value, *_without_tokens(items)))

    def not_in_list(self, value: ast.Expression, *items: Any) -> ast.Operation:
        """``a NOT IN (...)``."""
        return ast.Operation("NOT IN", (value, *_without_tokens(items)))

    def built_in(self, name: Token, *args: Any) -> ast.BuiltIn:
        """A built-in function; the grammar has checked the number of its arguments."""
        return ast.BuiltIn(name.upper(), _without_tokens(args), self._span(name))

    def bound(self, name: Token, variable: ast.Var) -> ast.BuiltIn:
        """``BOUND(?x)``."""
        return ast.BuiltIn("BOUND", (variable,), self._span(name))

    def function_call(self, name: ast.Constant, *args: Any) -> ast.FunctionCall:
        """A function named by an IRI."""
        assert isinstance(name.term, Iri), "a function's name is an IRI"
        distinct = any(isinstance(arg, Token) and arg.type == "DISTINCT" for arg in args)
        return ast.FunctionCall(name.term, _without_tokens(args), distinct, name.span)

    def exists(self, token: Token, group: ast.Group) -> ast.Exists:
        """``EXISTS {}``."""
        return ast.Exists(group, False, self._span(token))

    def not_exists(self, token: Token, group: ast.Group) -> ast.Exists:
        """``NOT EXISTS {}``."""
        return ast.Exists(group, True, self._span(token))

    def aggregate(
        self, name: Token, distinct: Token | None, arg: Any, separator: ast.Constant | None = None
    ) -> ast.Aggregate:
        """An aggregate; a star for an argument is COUNT's."""
        text = None if separator is None else getattr(separator.term, "lexical", "")
        argument = None if isinstance(arg, Token) else arg
        return ast.Aggregate(name.upper(), argument, distinct is not None, text, self._span(name))
