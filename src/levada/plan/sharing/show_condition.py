"""Shows conditions as people write them, with ``?`` for each variable or column: in SPARQL's words,
or in those of CQL.
"""

from __future__ import annotations

from collections.abc import Sequence

from levada.core.expressions import Call, Const, Expression, Function, Param, Var, show
from levada.core.frozen import frozen
from levada.core.rdf_terms import XSD, Literal, Term

_PRECEDENCE = {
    Function.OR: 1,
    Function.AND: 2,
    Function.EQUAL: 4,
    Function.NOT_EQUAL: 4,
    Function.LESS: 4,
    Function.GREATER: 4,
    Function.LESS_EQUAL: 4,
    Function.GREATER_EQUAL: 4,
    Function.ADD: 5,
    Function.SUBTRACT: 5,
    Function.MULTIPLY: 6,
    Function.DIVIDE: 6,
    Function.REMAINDER: 6,
}
_CQL_WORDS = {
    Function.OR: "OR",
    Function.AND: "AND",
    Function.NOT_EQUAL: "<>",
    Function.REMAINDER: "%",
}
_NOT, _TEST = 3, 4
"""The precedence of a negation in CQL, and of a test such as IN."""


def show_condition(
    expression: Expression, constants: Sequence[Term | None] = (), *, cql: bool = False
) -> str:
    """Returns a condition without the names of its variables. ``constants``: of its parameters.

    >>> both = Call(Function.AND, (
    ...     Call(Function.BOUND, (Var("a"),)),
    ...     Call(Function.NOT, (Call(Function.EQUAL, (Var("a"), Param(0))),)),
    ... ))
    >>> show_condition(both, [Literal("x")])
    'BOUND(?) && !(? = "x")'
    >>> show_condition(both, [Literal("x")], cql=True)
    "? IS NOT NULL AND NOT ? = 'x'"
    """
    return _Printer(constants, cql).show(expression, 0)


@frozen
class _Printer:
    constants: Sequence[Term | None]
    cql: bool

    def show(self, expression: Expression, outer: int = 0) -> str:
        """Returns an expression below an operator of the precedence ``outer``."""
        match expression:
            case Var():
                return "?"
            case Param(index) if index < len(self.constants):
                term = self.constants[index]
                return "-" if term is None else self._show_term(term)
            case Const(term):
                return self._show_term(term)
            case Call(Function.IN | Function.NOT_IN as function, (inner, *values)):
                text = f"{self.show(inner, _TEST)} {function.value} ({self._list(values)})"
                return _close(text, _TEST, outer)
            case Call(function, args) if function in _PRECEDENCE and len(args) > 1:
                return self._show_operator(function, args, outer)
            case Call(Function.BOUND | Function.NOT) if self.cql:
                return self._show_cql_test(expression, outer)
            case Call(function, args):
                name = function.value.removeprefix("unary ").replace(" ", "_")
                return f"{name.upper() if self.cql else name}({self._list(args)})"
            case _:
                return show(expression)

    def _list(self, args: Sequence[Expression]) -> str:
        return ", ".join(map(self.show, args))

    def _show_operator(self, function: Function, args: Sequence[Expression], outer: int) -> str:
        level = _PRECEDENCE[function]
        word = _CQL_WORDS.get(function, function.value) if self.cql else function.value
        first = level + 1 if level == _TEST else level  # comparisons make no chain
        texts = [self.show(args[0], first), *(self.show(arg, level + 1) for arg in args[1:])]
        return _close(f" {word} ".join(texts), level, outer)

    def _show_cql_test(self, call: Call, outer: int) -> str:
        (inner,) = call.args
        if call.function is Function.BOUND:
            return _close(f"{self.show(inner, _TEST)} IS NOT NULL", _TEST, outer)
        if isinstance(inner, Call) and inner.function is Function.BOUND:
            return _close(f"{self.show(inner.args[0], _TEST)} IS NULL", _TEST, outer)
        return _close(f"NOT {self.show(inner, _NOT)}", _NOT, outer)

    def _show_term(self, term: Term) -> str:
        return _show_literal(term, cql=self.cql) if isinstance(term, Literal) else str(term)


def _close(text: str, level: int, outer: int) -> str:
    return f"({text})" if level < outer else text


def _show_literal(literal: Literal, *, cql: bool) -> str:
    """Returns a number without its datatype; in CQL a text in single quotes."""
    kind = literal.datatype.removeprefix(XSD)
    if literal.datatype != kind and kind in ("integer", "decimal", "double", "boolean"):
        return literal.lexical
    if cql and not literal.language:
        return "'" + literal.lexical.replace("'", "''") + "'"
    return str(literal)
