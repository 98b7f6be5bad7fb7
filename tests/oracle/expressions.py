"""Expressions over one solution, and aggregates over several (SPARQL 1.1, 17 and 18.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from oracle.queries import AGGREGATES, Call, Expression, aggregates
from oracle.terms import (
    RANKS,
    BadError,
    boolean,
    equal,
    less,
    number,
    promoted,
    rank,
    string,
    truth,
    value,
)

Solution = Mapping[str, str]


def evaluate(expression: Expression, solution: Solution) -> str:
    """The term of an expression. Raises ``BadError`` where it has none."""
    if isinstance(expression, str):
        if not expression.startswith("?"):
            return expression
        if expression not in solution:
            raise BadError
        return solution[expression]
    op, args = expression.op, expression.args
    if op in LAZY:
        return LAZY[op](args, solution)
    terms = [evaluate(a, solution) for a in args]
    return STRICT[op](*terms)


def holds(condition: Expression, solution: Solution) -> bool:
    """Whether a filter keeps a solution."""
    try:
        return truth(evaluate(condition, solution))
    except BadError:
        return False


def _tried(condition: Expression, solution: Solution) -> bool | None:
    try:
        return truth(evaluate(condition, solution))
    except BadError:
        return None


def _or(args: Sequence[Expression], solution: Solution) -> str:
    found = [_tried(a, solution) for a in args]
    if True in found:
        return boolean(True)
    if None in found:
        raise BadError
    return boolean(False)


def _and(args: Sequence[Expression], solution: Solution) -> str:
    found = [_tried(a, solution) for a in args]
    if False in found:
        return boolean(False)
    if None in found:
        raise BadError
    return boolean(True)


def _in(args: Sequence[Expression], solution: Solution) -> str:
    first, *others = args
    return _or([Call("=", (first, o)) for o in others], solution)


def _not_in(args: Sequence[Expression], solution: Solution) -> str:
    return boolean(not truth(_in(args, solution)))


def _bound(args: Sequence[Expression], solution: Solution) -> str:
    return boolean(args[0] in solution)


def _coalesce(args: Sequence[Expression], solution: Solution) -> str:
    for arg in args:
        try:
            return evaluate(arg, solution)
        except BadError:
            continue
    raise BadError


def _if(args: Sequence[Expression], solution: Solution) -> str:
    chosen = args[1] if truth(evaluate(args[0], solution)) else args[2]
    return evaluate(chosen, solution)


LAZY: dict[str, Callable[[Sequence[Expression], Solution], str]] = {
    "||": _or, "&&": _and, "in": _in, "notin": _not_in, "bound": _bound, "coalesce": _coalesce,
    "if": _if,
}  # fmt: skip


def compute(op: str, left: str, right: str) -> str:
    """A sum, difference or product."""
    one, two = value(left), value(right)
    if one.kind not in RANKS or two.kind not in RANKS:
        raise BadError
    a, b = promoted(one, two)
    kind = max(one.kind, two.kind, key=RANKS.__getitem__)
    return number(kind, a + b if op == "+" else a - b if op == "-" else a * b)


def _text(term: str) -> str:
    kind, of = value(term)
    if kind != "string":
        raise BadError
    return str(of)


def _str(term: str) -> str:
    if term.startswith("_:"):
        raise BadError
    return string(term[1:-1] if term.startswith("<") else term[1 : term.rindex('"')])


STRICT: dict[str, Callable[..., str]] = {
    "=": lambda a, b: boolean(equal(a, b)),
    "!=": lambda a, b: boolean(not equal(a, b)),
    "<": lambda a, b: boolean(less(a, b)),
    ">": lambda a, b: boolean(less(b, a)),
    "<=": lambda a, b: boolean(less(a, b) or equal(a, b)),
    ">=": lambda a, b: boolean(less(b, a) or equal(a, b)),
    "!": lambda a: boolean(not truth(a)),
    "+": lambda a, b: compute("+", a, b),
    "-": lambda a, b: compute("-", a, b),
    "*": lambda a, b: compute("*", a, b),
    "str": _str,
    "strlen": lambda a: number("integer", Fraction(len(_text(a)))),
    "contains": lambda a, b: boolean(_text(b) in _text(a)),
    "strstarts": lambda a, b: boolean(_text(a).startswith(_text(b))),
    "isiri": lambda a: boolean(a.startswith("<")),
    "isnumeric": lambda a: boolean(value(a).kind in RANKS),
}


def aggregated(expression: Expression, rows: Sequence[Solution], group: Solution) -> str:
    """An expression whose aggregates are over the rows of a group."""
    if isinstance(expression, str) or not aggregates(expression):
        return evaluate(expression, group)
    if expression.op in AGGREGATES:
        return _aggregate(expression.op, expression.args[0], rows)
    args = [aggregated(a, rows, group) for a in expression.args]
    return evaluate(Call(expression.op, tuple(args)), group)


def _aggregate(op: str, of: Expression, rows: Sequence[Solution]) -> str:
    """One aggregate. COUNT passes over what has no value; for the others that is an error."""
    if op == "count" and of == "*":
        return number("integer", Fraction(len(rows)))
    found = [_value(of, row) for row in rows]
    if op in ("count", "countd"):
        terms = [t for t in found if t is not None]
        return number("integer", Fraction(len(set(terms) if op == "countd" else terms)))
    if None in found:
        raise BadError
    terms = [t for t in found if t is not None]
    if op in ("min", "max"):
        if not terms:
            raise BadError
        return min(terms, key=rank) if op == "min" else max(terms, key=rank)
    total = number("integer", Fraction(0))
    for term in terms:
        total = compute("+", total, term)
    return total if op == "sum" or not terms else _divided(total, len(terms))


def _divided(total: str, n: int) -> str:
    kind, of = value(total)
    assert isinstance(of, Fraction | float)
    if kind == "double":
        return number("double", float(of) / n)
    return number("decimal", Fraction(of) / n)


def _value(of: Expression, row: Solution) -> str | None:
    try:
        return evaluate(of, row)
    except BadError:
        return None
