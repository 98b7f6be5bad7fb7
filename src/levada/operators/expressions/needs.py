"""Which facets of which variables an expression reads, so that a plan ships only these.

    "kind"   the kind alone (BOUND, isIRI, ...)
    "num"    kind and value facets; HARD numbers and times come with their texts by themselves
    "id"     the identity
    "text"   the canonical text

A comparison or an arithmetic operation with a number reads ``num`` only: whatever else the other side is, no text changes
the outcome. Other comparisons may meet dates, durations and unknown datatypes, whose texts decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from levada.algebra.expression import Call, Const, Expression, Function, Param, Var
from levada.model.term import Iri, Kind, Literal, Term
from levada.operators.expressions import arithmetic, logic
from levada.operators.expressions.compare import OPERATORS
from levada.operators.expressions.scalar.literals import facets

Facets = frozenset[str]
_NUM, _KIND = frozenset({"num"}), frozenset({"kind"})
_ID_KIND = frozenset({"id", "kind"})
_NUM_TEXT, _EVERYTHING = frozenset({"num", "text"}), frozenset({"id", "num", "text"})
_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE, Kind.HARD_NUMBER)
_ALWAYS_NUMBERS = (
    *(Function.ABS, Function.ROUND, Function.CEIL, Function.FLOOR, Function.MULTIPLY, Function.DIVIDE, Function.STRLEN),
    *(Function.YEAR, Function.MONTH, Function.DAY, Function.HOURS, Function.MINUTES, Function.SECONDS, Function.RAND),
)
_SUMS = (Function.ADD, Function.SUBTRACT, Function.PLUS, Function.MINUS)
_EQUALITIES = (Function.EQUAL, Function.NOT_EQUAL, Function.IN, Function.NOT_IN)


def needs(
    expression: Expression, want: Iterable[str] = ("id", "num", "text"), params: Sequence[Term | None] = ()
) -> dict[str, Facets]:
    """The facets that evaluation reads, per variable.

    ``want``: the facets wanted of the result (they matter for variables that are passed on as they are); ``{"truth"}`` for a
    condition. ``params``: what is known of the lifted constants.

    >>> from levada.model.term import XSD
    >>> needs(Call(Function.LESS, (Var("v"), Const(Literal("80", XSD + "integer")))))
    {'v': frozenset({'num'})}
    """
    found: dict[str, Facets] = {}
    wanted = frozenset(want)
    _visit(expression, _NUM_TEXT if wanted == {"truth"} else wanted, params, found)
    return found


def _visit(expression: Expression, want: Facets, params: Sequence[Term | None], found: dict[str, Facets]) -> None:
    match expression:
        case Var(name):
            found[name] = found.get(name, frozenset()) | want
        case Call(function, args):
            for arg, facets_wanted in zip(args, _of_arguments(function, args, want, params), strict=True):
                _visit(arg, facets_wanted, params, found)
        case _:
            return


def _of_arguments(
    function: Function, args: tuple[Expression, ...], want: Facets, params: Sequence[Term | None]
) -> list[Facets]:
    """What a call wants of each argument, if it is asked for ``want``."""
    if function in logic.TESTS or function is Function.BOUND:
        return [_KIND] * len(args)
    if function is Function.SAME_TERM:
        return [_ID_KIND] * len(args)
    if function in arithmetic.UNARY:
        return [_NUM_TEXT if function in _SUMS else _NUM]
    if function is Function.IF:
        return [_NUM_TEXT, want | _NUM, want | _NUM]
    if function is Function.COALESCE:
        return [want | _NUM] * len(args)
    if function is Function.BNODE:
        return [_ID_KIND] * len(args)
    if function in (*arithmetic.BINARY, *OPERATORS, Function.IN, Function.NOT_IN):
        return _of_operands(function, args, params)
    if function in (Function.AND, Function.OR, Function.NOT):
        return [_NUM_TEXT] * len(args)
    return [frozenset({"text"})] * len(args)


def _of_operands(function: Function, args: tuple[Expression, ...], params: Sequence[Term | None]) -> list[Facets]:
    """Each operand by what the operands that it meets are known to be."""
    kinds = [_known(arg, params) for arg in args]
    met = [kinds[1:] if i == 0 else kinds[:1] for i in range(len(args))]
    return [frozenset[str]().union(*(_operand(function, other) for other in others)) or _KIND for others in met]


def _operand(function: Function, other: str) -> Facets:
    if other == "number" or function in (Function.MULTIPLY, Function.DIVIDE):
        return _NUM
    if function in _EQUALITIES:
        return _ID_KIND if other == "node" else _EVERYTHING
    return _NUM_TEXT


def _known(expression: Expression, params: Sequence[Term | None]) -> str:
    """ "number" or "node" (IRI, blank node) if the value of an expression can be nothing else, else ""."""
    match expression:
        case Const(term):
            return _class(term)
        case Param(index):
            return _class(params[index]) if index < len(params) else ""
        case Call(function, _) if function in _ALWAYS_NUMBERS:
            return "number"
        case Call(function, args) if function in _SUMS and any(_known(arg, params) == "number" for arg in args):
            return "number"
        case Call(Function.IRI | Function.UUID | Function.BNODE | Function.DATATYPE, _):
            return "node"
        case _:
            return ""


def _class(term: Term | None) -> str:
    if not isinstance(term, Literal):
        return "node" if isinstance(term, Iri) or term is not None else ""
    return "number" if facets(term)[0] in _NUMBERS else ""
