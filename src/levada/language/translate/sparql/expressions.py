"""Expressions of the syntax tree to expressions of the algebra (SPARQL 1.1, sections 17.3 to 17.5).

Chains of ``||`` and ``&&`` become balanced trees, so that a condition of a thousand terms is ten
levels deep; three-valued logic is associative, so this changes no value.
"""

from __future__ import annotations

from collections.abc import Sequence

from levada.core.expressions import (
    Aggregate,
    AggregateFunction,
    Call,
    Const,
    Expression,
    Function,
    Var,
)
from levada.core.rdf_terms import STRING, XSD, Iri, Literal
from levada.core.user_functions import HOW_TO_DECLARE, UserFunction, find_function, known_iris
from levada.errors import QueryError, UnknownNameError, near
from levada.language.dialects.csparql import TIMESTAMP
from levada.language.sparql import ast
from levada.language.sparql.iri import resolve
from levada.language.translate.sparql.context import Context, Marked, Stamp

CASTS = (
    *(
        "boolean",
        "double",
        "float",
        "decimal",
        "integer",
        "string",
        "dateTime",
        "date",
        "time",
        "duration",
    ),
    *("dayTimeDuration", "yearMonthDuration", "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay"),
)
"""The casts of SPARQL (17.5), and to the other types of its dates and times, as other engines."""
_BUILT_INS = {function.value.upper(): function for function in Function}
_BUILT_INS |= {"ISURI": Function.IS_IRI, "URI": Function.IRI}


def expression(node: ast.Expression, context: Context) -> Expression:
    """Translates an expression; aggregates stay in place (to be lifted later)."""
    match node:
        case ast.Var(name):
            return Var(name)
        case ast.Constant(term):
            return Const(term)
        case ast.Operation(operator, operands):
            return operation(
                Function(operator), [expression(operand, context) for operand in operands]
            )
        case ast.BuiltIn():
            return _built_in(node, context)
        case ast.FunctionCall():
            return _named_function(node, context)
        case ast.Aggregate():
            return _aggregate(node, context)
        case ast.Exists(_, negated, _):
            variable = Var(context.mark(node))
            return Call(Function.NOT, (variable,)) if negated else variable


def with_marks(node: ast.Expression, context: Context) -> tuple[Expression, list[Marked]]:
    """Translates an expression, and each EXISTS in it, which becomes a variable."""
    with context.marking() as marks:
        translated = expression(node, context)
    return translated, marks


def operation(function: Function, operands: Sequence[Expression]) -> Expression:
    """Applies an operator to its operands; AND and OR take any number of them.

    >>> from levada.core.expressions import show
    >>> show(operation(Function.AND, [Var("a"), Var("b"), Var("c")]))
    '(&& (&& ?a ?b) ?c)'
    """
    if function not in (Function.AND, Function.OR):
        return Call(function, tuple(operands))
    if len(operands) == 1:
        return operands[0]
    middle = (len(operands) + 1) // 2
    return Call(
        function, (operation(function, operands[:middle]), operation(function, operands[middle:]))
    )


def _built_in(node: ast.BuiltIn, context: Context) -> Expression:
    args = tuple(expression(arg, context) for arg in node.args)
    function = _BUILT_INS[node.name]
    if function is Function.IRI and context.base is not None:
        match args[0]:
            case Const(Literal(lexical, datatype, _)) if datatype == STRING:
                return Const(Iri(resolve(lexical, context.base)))
            case Const():
                return Call(function, args)
            case _:
                return Call(function, (*args, Const(Iri(context.base))))
    return Call(function, args)


def _named_function(node: ast.FunctionCall, context: Context) -> Expression:
    """Translates a function named by an IRI: a cast (section 17.5), or one that the user of the
    engine has declared (17.6).
    """
    known = [XSD + name for name in CASTS]
    if node.name.value == TIMESTAMP:
        return _timestamp(node, context)
    if isinstance(made := find_function(node.name.value), UserFunction):
        return _user_function(made, node, context)
    if node.name.value not in known:
        close = near(node.name.value, [*known, *known_iris()])
        hint = (
            f"{close} " if close.startswith("Did") else ""
        ) + f"Known: {', '.join('xsd:' + name for name in CASTS)}. {HOW_TO_DECLARE}"
        raise UnknownNameError(
            f"The function {node.name} is not known.", span=node.span, text=context.text, hint=hint
        )
    if len(node.args) != 1 or node.distinct:
        raise QueryError(
            f"The cast {node.name} takes one argument.", span=node.span, text=context.text
        )
    return Call(Function.CAST, (Const(node.name), expression(node.args[0], context)))


def _user_function(made: UserFunction, node: ast.FunctionCall, context: Context) -> Expression:
    if len(node.args) != len(made.arguments) or node.distinct:
        types = ", ".join(made.arguments)
        message = f"The function {node.name} takes {len(made.arguments)} arguments ({types})"
        message += ", and no DISTINCT." if node.distinct else f", not {len(node.args)}."
        raise QueryError(message, span=node.span, text=context.text)
    args = [expression(arg, context) for arg in node.args]
    return Call(Function.USER, (Const(node.name), *args))


def _timestamp(node: ast.FunctionCall, context: Context) -> Expression:
    """Translates ``f:timestamp(?v)``, ``f:timestamp(?v, <stream>)``, or ``f:timestamp(s, p, o)``.

    See docs/decisions/0012-latest-coming.md.
    """

    def wrong(message: str, hint: str) -> QueryError:
        return QueryError(message, span=node.span, text=context.text, hint=hint)

    if not context.streams:
        raise wrong("f:timestamp() needs a window.", "Static triples have no times.")
    args = tuple(expression(arg, context) for arg in node.args)
    windows = tuple(range(len(context.streams)))
    match args:
        case (Var(), Const(Iri(stream))):
            windows = tuple(i for i in windows if context.streams[i] == stream)
            if not windows:
                raise wrong(f"The query reads no stream <{stream}>.", near(stream, context.streams))
            args = args[:1]
        case (Var(),) | (Var() | Const(), Var() | Const(), Var() | Const()):
            pass
        case _:
            raise wrong(
                "f:timestamp() takes a variable, or the subject, predicate and object of a triple.",
                "",
            )
    terms = tuple(
        arg if isinstance(arg, Var) else arg.term for arg in args if isinstance(arg, (Var, Const))
    )
    return Var(context.stamp(Stamp(terms, windows), node.span))


def _aggregate(node: ast.Aggregate, context: Context) -> Aggregate:
    function = AggregateFunction(node.name)
    arg = None if node.arg is None else _argument(node.arg, context)
    if function is not AggregateFunction.GROUP_CONCAT:
        return Aggregate(function, arg, node.distinct, node.separator)
    return Aggregate(
        function, arg, node.distinct, " " if node.separator is None else node.separator
    )


def _argument(node: ast.Expression, context: Context) -> Expression:
    """Translates the argument of an aggregate: an EXISTS in it reads the grouped solutions."""
    arg, marks = with_marks(node, context)
    context.pass_on(mark._replace(below=True) for mark in marks)
    return arg
