"""Translates CQL expressions to expressions of the algebra, with types.

CQL has four types: integer, double, string, boolean. They are checked here, where the position is
known, so a query whose comparison could never hold is refused at registration. Differences between
SQL and SPARQL are translated explicitly:

    integer / integer    truncates towards zero            a cast of the quotient to xsd:integer
    Avg of integers      is a double                       a cast of the average to xsd:double
    Sum, Avg of no row   is NULL, not 0 (if no Group By)   IF(COUNT > 0, .., an error: unbound)

NULL is unbound. An operation on it is an error, hence NULL, and a condition that is an error drops
the row, as in SQL. Cost: linear in the expression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyoxigraph

from levada.core.expressions import (
    Aggregate,
    AggregateFunction,
    Call,
    Const,
    Expression,
    Function,
    Var,
)
from levada.core.frozen import frozen
from levada.core.rdf_terms import XSD, Iri, Literal
from levada.errors import QueryError, Span, UnknownNameError, near
from levada.language.cql import ast as ast
from levada.language.cql.ast import LiteralType
from levada.language.translate.cql.scope import Scope

_NUMBERS = (LiteralType.INTEGER, LiteralType.DOUBLE)
_SPARQL_ONLY = (AggregateFunction.SAMPLE, AggregateFunction.GROUP_CONCAT)
AGGREGATES = {
    word.value.capitalize(): word for word in AggregateFunction if word not in _SPARQL_ONLY
}
_ARITHMETIC = {
    "+": Function.ADD,
    "-": Function.SUBTRACT,
    "*": Function.MULTIPLY,
    "/": Function.DIVIDE,
}
_COMPARISON = {
    "=": Function.EQUAL,
    "<>": Function.NOT_EQUAL,
    "<": Function.LESS,
    ">": Function.GREATER,
    "<=": Function.LESS_EQUAL,
    ">=": Function.GREATER_EQUAL,
    "in": Function.IN,
}
_GREATEST = 2**63 - 1  # its negative and one less is written as a difference, as in SQL
_LOGIC = {"or": Function.OR, "and": Function.AND, "not": Function.NOT}


@frozen
class Typed:
    """An expression of the algebra and its CQL type."""

    expression: Expression
    type: LiteralType


@frozen
class Translator:
    """Translates the expressions of one query.

    ``variables``: the variable of each column. ``grouped``: the query has Group By, so no group is
    empty.
    """

    scope: Scope
    variable: Callable[[ast.Column], str]
    grouped: bool

    def value(self, node: ast.Expression, aggregates: str = "") -> Typed:
        """Translates an expression; ``aggregates``: the clause that allows no aggregates, if any
        ("Where").
        """
        match node:
            case ast.Column():
                return Typed(Var(self.variable(node)), self.scope.type_of(self.scope.resolve(node)))
            case ast.Constant(kind, text):
                self._check_size(kind, text, node.span)
                return Typed(Const(constant(kind, text)), kind)
            case ast.Operation():
                return self._operation(node, aggregates)
            case ast.Call():
                if aggregates:
                    raise self._error(f"{node.function} cannot stand in {aggregates}.", node.span)
                return self._aggregate(node)

    def condition(self, node: ast.Expression, aggregates: str = "") -> Expression:
        """Translates an expression that must be a condition."""
        typed = self.value(node, aggregates)
        if typed.type is not LiteralType.BOOLEAN:
            raise self._error(
                f"A condition is needed here, this is of the type {typed.type}.", node.span
            )
        return typed.expression

    def _operation(self, node: ast.Operation, aggregates: str) -> Typed:
        if node.operator in _LOGIC:
            args = tuple(self.condition(operand, aggregates) for operand in node.operands)
            return Typed(Call(_LOGIC[node.operator], args), LiteralType.BOOLEAN)
        operands = [self.value(operand, aggregates) for operand in node.operands]
        types = [operand.type for operand in operands]
        args = tuple(operand.expression for operand in operands)
        if node.operator in _COMPARISON:
            for kind in types[1:]:
                self._check_comparable(types[0], kind, node.span)
            return Typed(Call(_COMPARISON[node.operator], args), LiteralType.BOOLEAN)
        if wrong := [kind for kind in types if kind not in _NUMBERS]:
            raise self._error(
                f"{node.operator} needs numbers, this is of the type {wrong[0]}.", node.span
            )
        kind = LiteralType.DOUBLE if LiteralType.DOUBLE in types else LiteralType.INTEGER
        if len(args) == 1:
            return Typed(_sign(node.operator, args[0]), kind)
        result = Call(_ARITHMETIC[node.operator], args)
        truncates = node.operator == "/" and kind is LiteralType.INTEGER
        return Typed(cast("integer", result) if truncates else result, kind)

    def _aggregate(self, node: ast.Call) -> Typed:
        name = node.function.capitalize()
        if name not in AGGREGATES:
            hint = near(name, AGGREGATES)
            raise UnknownNameError(
                f"There is no function {node.function}.",
                span=node.span,
                text=self.scope.text,
                hint=hint,
            )
        function = AGGREGATES[name]
        if node.argument is None:
            if function is not AggregateFunction.COUNT:
                raise self._error(f"{name}(*) does not exist, only Count(*) does.", node.span)
            return Typed(Aggregate(function, None), LiteralType.INTEGER)
        arg = self.value(node.argument, f"the argument of {name}")
        counted = function is AggregateFunction.COUNT
        if function in (AggregateFunction.SUM, AggregateFunction.AVG) and arg.type not in _NUMBERS:
            raise self._error(f"{name} needs numbers, this is of the type {arg.type}.", node.span)
        result: Expression = Aggregate(function, arg.expression, node.distinct)
        kind = LiteralType.INTEGER if counted else arg.type
        if function is AggregateFunction.AVG:
            result = result if kind is LiteralType.DOUBLE else cast("double", result)
            kind = LiteralType.DOUBLE
        needs_rows = function in (AggregateFunction.SUM, AggregateFunction.AVG) and not self.grouped
        return Typed(_unless_empty(arg.expression, result) if needs_rows else result, kind)

    def _check_comparable(self, one: LiteralType, other: LiteralType, span: Span) -> None:
        if one != other and not {one, other} <= set(_NUMBERS):
            message = f"A value of the type {one} is compared with one of the type {other}."
            raise self._error(message, span)

    def _check_size(self, kind: LiteralType, text: str, span: Span) -> None:
        if kind is LiteralType.INTEGER and int(text) > _GREATEST:
            message = f"An integer has 64 bits, so {text} is none: write {text}.0 for a double."
            raise self._error(message, span)

    def _error(self, message: str, span: Span) -> QueryError:
        return QueryError(message, span=span, text=self.scope.text)


def constant(kind: LiteralType, text: str) -> Literal:
    """Returns the term of a constant; numbers in the canonical form of their type.

    >>> str(constant(LiteralType.INTEGER, "007")), constant(LiteralType.DOUBLE, "1.50").lexical
    ('"7"^^<http://www.w3.org/2001/XMLSchema#integer>', '1.5')
    """
    match kind:
        case LiteralType.INTEGER:
            return Literal(str(int(text)), XSD + "integer")
        case LiteralType.DOUBLE:
            return Literal(pyoxigraph.Literal(float(text)).value, XSD + "double")
        case LiteralType.BOOLEAN:
            return Literal(text, XSD + "boolean")
        case LiteralType.STRING:
            return Literal(text)


def cast(name: str, expression: Expression) -> Call:
    """Returns the cast of an expression to an XSD type by its local name."""
    return Call(Function.CAST, (Const(Iri(XSD + name)), expression))


def _sign(operator: str, arg: Expression) -> Expression:
    """Applies a sign to an operand; a number includes it."""
    if operator == "+":
        return arg
    if (
        isinstance(arg, Const)
        and isinstance(arg.term, Literal)
        and not arg.term.lexical.startswith("-")
    ):
        return Const(Literal("-" + arg.term.lexical, arg.term.datatype))
    return Call(Function.MINUS, (arg,))


def _unless_empty(arg: Expression, result: Expression) -> Expression:
    """Returns ``result`` if some value was aggregated, else an error (1/0), which makes the column
    NULL.
    """
    zero, one = Const(Literal("0", XSD + "integer")), Const(Literal("1", XSD + "integer"))
    some = Call(Function.GREATER, (Aggregate(AggregateFunction.COUNT, arg), zero))
    return Call(Function.IF, (some, result, Call(Function.DIVIDE, (one, zero))))


def aggregates_in(expression: Expression) -> list[Aggregate]:
    """Returns the distinct aggregates in an expression, in order."""
    match expression:
        case Aggregate():
            return [expression]
        case Call(_, args):
            return list(dict.fromkeys(inner for arg in args for inner in aggregates_in(arg)))
        case _:
            return []


def above_group(
    expression: Expression, keys: Mapping[Expression, str], aggregates: Mapping[Aggregate, str]
) -> Expression:
    """Rewrites an expression over a group's rows by the group's keys and aggregates.

    Raises ``KeyError`` with the name of a variable that is neither.
    """
    if expression in keys:
        return Var(keys[expression])
    match expression:
        case Aggregate():
            return Var(aggregates[expression])
        case Var(name):
            raise KeyError(name)
        case Call(function, args):
            return Call(function, tuple(above_group(arg, keys, aggregates) for arg in args))
        case _:
            return expression
