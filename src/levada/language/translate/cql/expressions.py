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

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

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
from levada.core.user_functions import (
    UserAggregate,
    UserFunction,
    ValueType,
    declared_for_cql,
)
from levada.errors import QueryError, Span, UnknownNameError, near
from levada.language.cql import ast as ast
from levada.language.cql.ast import LiteralType
from levada.language.translate.cql.functions import (
    CAST_TYPES,
    FUNCTIONS,
    HINTS,
    NO_VALUE,
    PARTS,
    UNITS,
    Signature,
    cast,
    cast_to,
    choose,
    is_null,
    like_pattern,
    number,
    surely,
    text,
)
from levada.language.translate.cql.scope import Scope
from levada.plan.logical.depth_limit import MOST_PARTS, has_many_parts

_NUMBERS = (LiteralType.INTEGER, LiteralType.DOUBLE)
_INTERNAL = (
    AggregateFunction.SAMPLE, AggregateFunction.GROUP_CONCAT, AggregateFunction.SUM_REST,
    AggregateFunction.USER,
)  # fmt: skip
AGGREGATES = {word.value.capitalize(): word for word in AggregateFunction if word not in _INTERNAL}
_ARITHMETIC = {
    "+": Function.ADD,
    "-": Function.SUBTRACT,
    "*": Function.MULTIPLY,
    "/": Function.DIVIDE,
    "%": Function.REMAINDER,
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
_MOST_ARGUMENTS = 255
_LOGIC = {"or": Function.OR, "and": Function.AND, "not": Function.NOT}


@frozen
class Typed:
    """An expression of the algebra and its CQL type."""

    expression: Expression
    type: LiteralType


@frozen
class Place:
    """The number of a row in its group, as ``variable``, by a key; rows that differ in ``apart``
    are numbered apart. ``function``: as of ``nodes.Number``, or ``count``.
    """

    variable: str
    function: str
    key: Expression
    descending: bool
    apart: Expression


@frozen
class Translator:
    """Translates the expressions of one query.

    ``variables``: the variable of each column. ``grouped``: the query has Group By, so no group is
    empty. ``nested`` translates a query within an expression, ``over``
    a function with Over. ``places``: the places of rows that aggregates have asked for.
    """

    scope: Scope
    variable: Callable[[ast.Column], str]
    grouped: bool
    nested: Callable[[ast.Nested], Typed]
    over: Callable[[ast.Call], Typed]
    places: list[Place]

    def value(self, node: ast.Expression, aggregates: str = "") -> Typed:
        """Translates an expression; ``aggregates``: the clause that allows no aggregates, if any
        ("Where"). Raises ``QueryError`` where it has too many parts.
        """
        typed = self._value(node, aggregates)
        if has_many_parts(typed.expression):
            message = f"This takes more than {MOST_PARTS:,} steps, since it repeats its parts."
            hint = "Compute the parts in a query in brackets, which gives each a name."
            raise self._error(message, node.span, hint)
        return typed

    def _value(self, node: ast.Expression, aggregates: str) -> Typed:
        match node:
            case ast.Column():
                return Typed(Var(self.variable(node)), self.scope.type_of(self.scope.resolve(node)))
            case ast.Constant(LiteralType.NULL):
                return Typed(NO_VALUE, LiteralType.NULL)
            case ast.Constant(kind):
                return Typed(Const(constant(kind, node.text)), kind)
            case ast.Operation():
                return self._operation(node, aggregates)
            case ast.Cast():
                return self._cast(node, aggregates)
            case ast.Nested():
                return self.nested(node)
            case ast.Call() if node.over is not None:
                if aggregates:
                    message = f"{node.function} (..) Over (..) cannot stand in {aggregates}."
                    hint = "Give it a name in a query in brackets, and put the condition around it."
                    raise self._error(message, node.span, hint)
                return self.over(node)
            case ast.Call() if is_aggregate(node):
                if aggregates:
                    raise self._error(f"{node.function} cannot stand in {aggregates}.", node.span)
                return self._aggregate(node)
            case ast.Call():
                return self._function(node, aggregates)

    def condition(self, node: ast.Expression, aggregates: str = "") -> Expression:
        """Translates an expression that must be a condition."""
        typed = self.value(node, aggregates)
        if typed.type not in (LiteralType.BOOLEAN, LiteralType.NULL):
            raise self._error(
                f"A condition is needed here, this is of the type {typed.type}.", node.span
            )
        return typed.expression

    def _operation(self, node: ast.Operation, aggregates: str) -> Typed:
        if node.operator in _LOGIC:
            args = tuple(self.condition(operand, aggregates) for operand in node.operands)
            return Typed(Call(_LOGIC[node.operator], args), LiteralType.BOOLEAN)
        if node.operator == "case":
            return self._case(node, aggregates)
        operands = [self.value(operand, aggregates) for operand in node.operands]
        args = tuple(operand.expression for operand in operands)
        match node.operator:
            case "is null":
                return Typed(is_null(args[0]), LiteralType.BOOLEAN)
            case "like" | "ilike":
                return self._like(node, operands)
            case "||":
                return Typed(Call(Function.CONCAT, self._texts(operands)), LiteralType.STRING)
            case "is distinct":
                self._check_comparable(operands[0].type, operands[1].type, node.span)
                return Typed(_is_distinct(*args), LiteralType.BOOLEAN)
        if node.operator in _COMPARISON:
            for operand in operands[1:]:
                self._check_comparable(operands[0].type, operand.type, node.span)
            return Typed(Call(_COMPARISON[node.operator], args), LiteralType.BOOLEAN)
        return self._arithmetic(node, operands)

    def _arithmetic(self, node: ast.Operation, operands: Sequence[Typed]) -> Typed:
        types = [operand.type for operand in operands]
        args = tuple(operand.expression for operand in operands)
        if wrong := [kind for kind in types if kind not in (*_NUMBERS, LiteralType.NULL)]:
            hint = "Write a || b for texts." if node.operator == "+" else ""
            message = f"{node.operator} needs numbers, this is of the type {wrong[0]}."
            raise self._error(message, node.span, hint)
        kind = LiteralType.DOUBLE if LiteralType.DOUBLE in types else LiteralType.INTEGER
        if len(args) == 1:
            return Typed(_sign(node.operator, args[0]), kind)
        result = Call(_ARITHMETIC[node.operator], args)
        truncates = node.operator == "/" and kind is LiteralType.INTEGER
        return Typed(cast("integer", result) if truncates else result, kind)

    def _case(self, node: ast.Operation, aggregates: str) -> Typed:
        """Translates Case: the value of the first condition that is true, else NULL."""
        pairs = list(zip(node.operands[::2], node.operands[1::2], strict=False))
        values = [self.value(value, aggregates) for _, value in pairs]
        if len(node.operands) % 2:
            values.append(self.value(node.operands[-1], aggregates))
        kind, args = self._alike(values, node.span)
        other = args[-1] if len(node.operands) % 2 else NO_VALUE
        conditions = [self.condition(condition, aggregates) for condition, _ in pairs]
        return Typed(choose(list(zip(conditions, args, strict=False)), other), kind)

    def _alike(
        self, values: Sequence[Typed], span: Span
    ) -> tuple[LiteralType, tuple[Expression, ...]]:
        """Returns the type that holds all these values, and the values in it."""
        kinds = {value.type for value in values} - {LiteralType.NULL}
        if kinds == set(_NUMBERS):
            kinds = {LiteralType.DOUBLE}
        if len(kinds) > 1:
            shown = " and ".join(sorted(kinds))
            message = f"These values are of the types {shown}; they must be of one type."
            raise self._error(message, span, "Write Cast(x As String) where they differ.")
        kind = kinds.pop() if kinds else LiteralType.NULL
        return kind, tuple(cast_to(kind, value.type, value.expression) for value in values)

    def _texts(self, operands: Sequence[Typed]) -> tuple[Expression, ...]:
        return tuple(cast_to(LiteralType.STRING, o.type, o.expression) for o in operands)

    def _like(self, node: ast.Operation, operands: Sequence[Typed]) -> Typed:
        value, pattern = operands[0], node.operands[1]
        if value.type not in (LiteralType.STRING, LiteralType.NULL):
            message = f"Like needs a text, this is of the type {value.type}."
            raise self._error(message, node.span, "Write Cast(x As String) Like ..")
        if not isinstance(pattern, ast.Constant) or pattern.type is not LiteralType.STRING:
            message = "The pattern of Like is a text between quotes."
            raise self._error(message, node.span, "Write Position(part In x) > 0 for a column.")
        first_constant = node.operands[2] if len(node.operands) > 2 else None
        escape = first_constant.text if isinstance(first_constant, ast.Constant) else "\\"
        regex = like_pattern(pattern.text, escape) if len(escape) == 1 else None
        if regex is None:
            message = "Escape is one character, which stands before another one."
            raise self._error(message, node.span)
        flags = (Const(Literal("i")),) if node.operator == "ilike" else ()
        call = Call(Function.REGEX, (value.expression, Const(Literal(regex)), *flags))
        return Typed(call, LiteralType.BOOLEAN)

    def _cast(self, node: ast.Cast, aggregates: str) -> Typed:
        operand = self.value(node.operand, aggregates)
        if node.kind not in CAST_TYPES:
            hint = near(node.kind, CAST_TYPES)
            if node.kind in ("decimal", "numeric"):
                hint = "Write Cast(x As Double)."
            elif node.kind in ("timestamp", "date", "time"):
                hint = "Times are integers, ms since 1970: write Timestamp '2026-01-31 12:00:00'."
            raise self._error(f"Cast has no type {node.kind}.", node.span, hint)
        kind = CAST_TYPES[node.kind]
        return Typed(cast_to(kind, operand.type, operand.expression), kind)

    def _function(self, node: ast.Call, aggregates: str) -> Typed:
        name = node.function.lower()
        self._check_name(node, name in FUNCTIONS)
        signature = FUNCTIONS.get(name) or _user_signature(name)
        if signature is None:
            hint = HINTS.get(name) or near(name.capitalize(), self._function_names())
            raise UnknownNameError(
                f"There is no function {node.function}.",
                span=node.span,
                text=self.scope.text,
                hint=hint,
            )
        if node.arguments is None or node.distinct or node.where is not None:
            what = "*" if node.arguments is None else "Distinct" if node.distinct else "Filter"
            raise self._error(f"{node.function} is no aggregate: it takes no {what}.", node.span)
        values = [self.value(argument, aggregates) for argument in node.arguments]
        if name == "concat":
            return Typed(Call(Function.CONCAT, self._texts(values)), LiteralType.STRING)
        self._check_arguments(node, signature, values)
        args = self._words(name, [value.expression for value in values], node)
        if signature.gives is not None:
            return Typed(signature.of(args), signature.gives)
        if name == "round":
            return Typed(signature.of(args), values[0].type)
        kind, alike = self._alike(values, node.span)
        return Typed(signature.of(alike), kind)

    def _check_name(self, node: ast.Call, is_built_in: bool) -> None:
        if is_built_in and (made := declared_for_cql(node.function)) is not None:
            message = f"CQL has a function {node.function}, and {made.place} is declared as one."
            raise self._error(message, node.span, "Give the declared function another name=.")

    def _check_arguments(
        self, node: ast.Call, signature: Signature, values: Sequence[Typed]
    ) -> None:
        most = _MOST_ARGUMENTS if signature.repeats else len(signature.takes)
        if not signature.least <= len(values) <= most:
            least = signature.least
            needs = str(least) if most == least else f"{least} to {most}"
            needs = f"{least} or more" if signature.repeats else needs
            message = f"{node.function} takes {needs} arguments, not {len(values)}."
            raise self._error(message, node.span)
        for i, value in enumerate(values):
            allowed = signature.takes[min(i, len(signature.takes) - 1)]
            if value.type not in (*allowed, LiteralType.NULL):
                message = (
                    f"The argument {i + 1} of {node.function} is of the type {value.type}; "
                    f"it takes {' or '.join(allowed)}."
                )
                raise self._error(message, node.span)

    def _function_names(self) -> list[str]:
        return [name.capitalize() for name in (*FUNCTIONS, *AGGREGATES, *SPREADS, *PLACED)]

    def _words(self, name: str, args: Sequence[Expression], node: ast.Call) -> Sequence[Expression]:
        """Checks the first argument of a function that takes a part of an instant."""
        if name not in ("date_part", "date_trunc"):
            return args
        known = PARTS if name == "date_part" else UNITS
        first_constant = args[0].term if isinstance(args[0], Const) else None
        word = first_constant.lexical.lower() if isinstance(first_constant, Literal) else ""
        if word not in known:
            hint = near(word, known) or f"Known: {', '.join(dict.fromkeys(PARTS.values()))}."
            raise self._error(f"{word or 'This'} is no part of an instant.", node.span, hint)
        return [text(PARTS[word]), *args[1:]]

    def _aggregate(self, node: ast.Call) -> Typed:
        name = node.function.capitalize()
        self._check_name(node, name in (*AGGREGATES, *SPREADS, *PLACED))
        if name in ("First", "Last") and len(node.arguments or ()) == 2:
            return self._at_end(node)
        if (made := user_aggregate(name)) is not None:
            return self._user_aggregate(node, made)
        one = self._count_argument(node)
        if one is None:
            return Typed(Aggregate(AggregateFunction.COUNT, None), LiteralType.INTEGER)
        arg = self.value(one, f"the argument of {name}")
        if arg.type is LiteralType.NULL:
            arg = Typed(arg.expression, LiteralType.INTEGER)
        if node.where is not None:
            condition = self.condition(node.where, "Filter")
            arg = Typed(choose([(condition, arg.expression)], NO_VALUE), arg.type)
        if name not in ("Count", "Min", "Max") and arg.type not in _NUMBERS:
            raise self._error(f"{name} needs numbers, this is of the type {arg.type}.", node.span)
        if name in AGGREGATES:
            return self._plain_aggregate(AGGREGATES[name], arg, node.distinct)
        if node.distinct:
            raise self._error(f"{name} takes no Distinct.", node.span)
        double = cast("double", arg.expression)
        return Typed(
            self._median(double) if name == "Median" else spread(name, double), LiteralType.DOUBLE
        )

    def _user_aggregate(self, node: ast.Call, made: UserAggregate) -> Typed:
        if node.arguments is None or node.where is not None or len(node.arguments) != 1:
            hint = "Write Case When condition Then a End for Filter (Where condition)."
            message = f"{node.function} takes one argument, and neither * nor Filter."
            raise self._error(message, node.span, hint)
        arg = self.value(node.arguments[0], f"the argument of {node.function}")
        self._check_arguments(node, _signature(made), [arg])
        result = Aggregate(AggregateFunction.USER, arg.expression, node.distinct, made.iri)
        return Typed(result, LiteralType(made.returns))

    def _count_argument(self, node: ast.Call) -> ast.Expression | None:
        """Returns the argument of an aggregate; None: all rows count."""
        name = node.function.capitalize()
        if node.arguments is None:
            if name != "Count":
                raise self._error(f"{name}(*) does not exist, only Count(*) does.", node.span)
            return None if node.where is None else ast.Constant(LiteralType.INTEGER, "1")
        if len(node.arguments) != 1:
            raise self._error(f"{name} takes one argument.", node.span)
        return node.arguments[0]

    def _plain_aggregate(self, function: AggregateFunction, arg: Typed, distinct: bool) -> Typed:
        counted = function is AggregateFunction.COUNT
        result: Expression = Aggregate(function, arg.expression, distinct)
        kind = LiteralType.INTEGER if counted else arg.type
        if function is AggregateFunction.AVG:
            result = result if kind is LiteralType.DOUBLE else cast("double", result)
            kind = LiteralType.DOUBLE
        needs_rows = function in (AggregateFunction.SUM, AggregateFunction.AVG) and not self.grouped
        return Typed(_unless_empty(arg.expression, result) if needs_rows else result, kind)

    def _place(self, function: str, key: Expression, apart: Expression, down: bool = False) -> Var:
        """Returns the place of a row in its group."""
        wanted = Place(f".m{len(self.places)}", function, key, down, apart)
        same = (p for p in self.places if replace(p, variable=wanted.variable) == wanted)
        place = next(same, None)
        if place is None:
            self.places.append(wanted)
        return Var((place or wanted).variable)

    def _at_end(self, node: ast.Call) -> Typed:
        """Translates First and Last: the value of the row with the least or greatest event time."""
        assert node.arguments is not None, "it has two arguments"
        inside = f"the argument of {node.function}"
        value, time = (self.value(argument, inside) for argument in node.arguments)
        if node.distinct:
            raise self._error(f"{node.function} takes no Distinct.", node.span)
        counts: Expression = Const(Literal("true", XSD + "boolean"))
        if node.where is not None:
            counts = surely(self.condition(node.where, "Filter"))
        down = node.function.lower() == "last"
        place = self._place("row_number", time.expression, counts, down)
        first = Call(Function.AND, (counts, Call(Function.EQUAL, (place, number(1)))))
        chosen = choose([(first, value.expression)], NO_VALUE)
        return Typed(Aggregate(AggregateFunction.MAX, chosen), value.type)

    def _median(self, value: Expression) -> Expression:
        """Translates Median: the mean of the one or two values in the middle of their order."""
        place = self._place("row_number", value, is_null(value))
        count = self._place("count", value, is_null(value))
        double = Call(Function.MULTIPLY, (number(2), place))
        above = Call(Function.GREATER_EQUAL, (double, count))
        below = Call(Function.LESS_EQUAL, (double, Call(Function.ADD, (count, number(2)))))
        middle = Call(Function.AND, (above, below))
        return Aggregate(AggregateFunction.AVG, choose([(middle, value)], NO_VALUE))

    def _check_comparable(self, one: LiteralType, other: LiteralType, span: Span) -> None:
        either = {one, other} - {LiteralType.NULL}
        if len(either) > 1 and not either <= set(_NUMBERS):
            message = f"A value of the type {one} is compared with one of the type {other}."
            raise self._error(message, span)

    def _error(self, message: str, span: Span, hint: str = "") -> QueryError:
        return QueryError(message, span=span, text=self.scope.text, hint=hint)


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
        case LiteralType.STRING | LiteralType.NULL:
            return Literal(text)


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


def _is_distinct(a: Expression, b: Expression) -> Expression:
    """Whether two values differ, or only one of them exists."""
    both = Call(Function.AND, (Call(Function.BOUND, (a,)), Call(Function.BOUND, (b,))))
    either = Call(Function.OR, (Call(Function.BOUND, (a,)), Call(Function.BOUND, (b,))))
    return choose([(both, Call(Function.NOT_EQUAL, (a, b)))], either)


def is_aggregate(node: ast.Expression) -> bool:
    """Whether an expression is a call of an aggregate."""
    if not isinstance(node, ast.Call) or node.over is not None:
        return False
    name = node.function.capitalize()
    return name in (*AGGREGATES, *SPREADS, *PLACED) or user_aggregate(name) is not None


def user_aggregate(name: str) -> UserAggregate | None:
    """Returns the aggregate that the user of the engine has declared by this name."""
    made = declared_for_cql(name)
    return made if isinstance(made, UserAggregate) else None


def _user_signature(name: str) -> Signature | None:
    made = declared_for_cql(name)
    return _signature(made) if isinstance(made, UserFunction) else None


def _signature(made: UserFunction | UserAggregate) -> Signature:
    takes = tuple(
        _NUMBERS if kind is ValueType.DOUBLE else (LiteralType(kind),) for kind in made.arguments
    )
    iri = Const(Iri(made.iri))
    return Signature(
        takes, len(takes), LiteralType(made.returns), lambda args: Call(Function.USER, (iri, *args))
    )


PLACED = ("First", "Last", "Median")
"""Aggregates that follow from the places of rows in their group."""
SPREADS: dict[str, tuple[bool, bool]] = {
    "Stddev": (True, True), "Stddev_samp": (True, True), "Stddev_pop": (False, True),
    "Variance": (True, False), "Var_samp": (True, False), "Var_pop": (False, False),
}  # fmt: skip
"""Variances by name: whether of a sample, and whether the root is taken."""


def spread(name: str, value: Expression) -> Expression:
    """Returns a variance or its root from exact sums of a double, its square and what that lost."""
    square = Call(Function.MULTIPLY, (value, value))
    lost = Call(Function.SQUARE_REST, (value,))
    sums = [Aggregate(AggregateFunction.COUNT, value)]
    for summed in (value, square):
        sums += [Aggregate(f, summed) for f in (AggregateFunction.SUM, AggregateFunction.SUM_REST)]
    sums.append(Aggregate(AggregateFunction.SUM, lost))
    sample, root = SPREADS[name]
    result = Call(Function.VARIANCE, (number(int(sample)), *sums))
    return Call(Function.SQRT, (result,)) if root else result


def aggregates_in(expression: Expression) -> list[Aggregate]:
    """Returns the distinct aggregates in an expression, in order."""
    match expression:
        case Aggregate():
            return [expression]
        case Call(_, args):
            return list(dict.fromkeys(inner for arg in args for inner in aggregates_in(arg)))
        case _:
            return []


def at_most_one(expression: Expression, names: Collection[str]) -> Expression:
    """Returns an expression in which these variables, which have one value in a report, are
    aggregates of it.
    """
    match expression:
        case Var(name) if name in names:
            return Aggregate(AggregateFunction.MIN, expression)
        case Call(function, args):
            return Call(function, tuple(at_most_one(arg, names) for arg in args))
        case _:
            return expression


def above_group(
    expression: Expression,
    keys: Mapping[Expression, Expression],
    aggregates: Mapping[Aggregate, str],
) -> Expression:
    """Rewrites an expression over a group's rows by the group's keys and aggregates.

    Raises ``KeyError`` with the name of a variable that is neither.
    """
    if expression in keys:
        return keys[expression]
    match expression:
        case Aggregate():
            return Var(aggregates[expression])
        case Var(name):
            raise KeyError(name)
        case Call(function, args):
            return Call(function, tuple(above_group(arg, keys, aggregates) for arg in args))
        case _:
            return expression
