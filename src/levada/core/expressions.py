"""Expressions of the algebra: variables, constants, calls, aggregates. Immutable values (SPARQL
1.1, section 17).

``Function`` names every operator and built-in; its value is the SPARQL spelling. A cast is
``Call(Function.CAST, (Const(Iri( datatype)), arg))``, and so is a function of the user, ``USER``,
with its IRI (``user_functions``). ``EVENT_TIME``, which no text can call, is
that of a row of one triple (ms). The functions after it are SQL's, for CQL. ``Param(i)`` appears
only after planning: constants lifted out of a shape, so that queries that differ in constants are
one operator and a table of parameter rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum

from levada.core.frozen import frozen
from levada.core.rdf_terms import Literal, Term


class Function(StrEnum):
    """Operators and built-ins by their SPARQL spelling."""

    OR = "||"
    AND = "&&"
    NOT = "!"
    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    GREATER = ">"
    LESS_EQUAL = "<="
    GREATER_EQUAL = ">="
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    PLUS = "unary +"
    MINUS = "unary -"
    IN = "IN"
    NOT_IN = "NOT IN"
    BOUND = "BOUND"
    IF = "IF"
    COALESCE = "COALESCE"
    SAME_TERM = "sameTerm"
    IS_IRI = "isIRI"
    IS_BLANK = "isBLANK"
    IS_LITERAL = "isLITERAL"
    IS_NUMERIC = "isNUMERIC"
    STR = "STR"
    LANG = "LANG"
    DATATYPE = "DATATYPE"
    IRI = "IRI"
    BNODE = "BNODE"
    STRDT = "STRDT"
    STRLANG = "STRLANG"
    UUID = "UUID"
    STRUUID = "STRUUID"
    STRLEN = "STRLEN"
    SUBSTR = "SUBSTR"
    UCASE = "UCASE"
    LCASE = "LCASE"
    STRSTARTS = "STRSTARTS"
    STRENDS = "STRENDS"
    CONTAINS = "CONTAINS"
    STRBEFORE = "STRBEFORE"
    STRAFTER = "STRAFTER"
    ENCODE_FOR_URI = "ENCODE_FOR_URI"
    CONCAT = "CONCAT"
    LANGMATCHES = "langMatches"
    REGEX = "REGEX"
    REPLACE = "REPLACE"
    ABS = "ABS"
    ROUND = "ROUND"
    CEIL = "CEIL"
    FLOOR = "FLOOR"
    RAND = "RAND"
    NOW = "NOW"
    YEAR = "YEAR"
    MONTH = "MONTH"
    DAY = "DAY"
    HOURS = "HOURS"
    MINUTES = "MINUTES"
    SECONDS = "SECONDS"
    TIMEZONE = "TIMEZONE"
    TZ = "TZ"
    MD5 = "MD5"
    SHA1 = "SHA1"
    SHA256 = "SHA256"
    SHA384 = "SHA384"
    SHA512 = "SHA512"
    CAST = "CAST"
    USER = "user function"
    EVENT_TIME = "event time"
    REPORT_TIME = "report time"
    REMAINDER = "remainder"
    ROUND_DIGITS = "round to digits"
    POWER = "power"
    SQRT = "square root"
    EXP = "exponential"
    LN = "logarithm"
    SIGN = "sign"
    SUBSTRING = "substring"
    POSITION = "position"
    REPLACE_TEXT = "replace text"
    TRIM = "trim"
    LTRIM = "trim left"
    RTRIM = "trim right"
    LPAD = "pad left"
    RPAD = "pad right"
    SPLIT_PART = "split part"
    REVERSE = "reverse"
    NUMBER_TEXT = "text of a number"
    SQUARE_REST = "rest of the square"
    VARIANCE = "variance"
    DATE_PART = "date part"
    DATE_TRUNC = "date trunc"


class AggregateFunction(StrEnum):
    """The aggregates (SPARQL 1.1, 18.5.1), what a SUM of doubles loses by its rounding, and the
    user's (``user_functions``).
    """

    COUNT = "COUNT"
    SUM = "SUM"
    AVG = "AVG"
    MIN = "MIN"
    MAX = "MAX"
    SAMPLE = "SAMPLE"
    GROUP_CONCAT = "GROUP_CONCAT"
    SUM_REST = "rest of SUM"
    USER = "user aggregate"


@frozen
class Var:
    """A variable by its name, without ``?``."""

    name: str


@frozen
class Const:
    """A constant term."""

    term: Term


@frozen
class Param:
    """The i-th lifted constant of a shape."""

    index: int


@frozen
class Call:
    """A function or operator applied to arguments."""

    function: Function
    args: tuple[Expression, ...]


@frozen
class Aggregate:
    """An aggregate; ``arg`` None is ``COUNT(*)``. ``separator`` is that of GROUP_CONCAT, or the IRI
    of the user's aggregate.
    """

    function: AggregateFunction
    arg: Expression | None
    distinct: bool = False
    separator: str | None = None


Expression = Var | Const | Param | Call | Aggregate


def variables(expression: Expression) -> Iterator[str]:
    """The names of the variables in an expression, with repetitions, in order of appearance."""
    match expression:
        case Var(name):
            yield name
        case Call(_, args):
            for arg in args:
                yield from variables(arg)
        case Aggregate(_, arg, _) if arg is not None:
            yield from variables(arg)
        case _:
            return


RANDOM = frozenset((Function.RAND, Function.UUID, Function.STRUUID, Function.BNODE))
PER_REPORT = RANDOM | {Function.NOW, Function.REPORT_TIME}


def conjunction(conditions: Sequence[Expression]) -> Expression | None:
    """Returns the condition that all of these are true; None for an empty list.

    >>> show(conjunction([Var("a"), Var("b"), Var("c")]))
    '(&& (&& ?a ?b) ?c)'
    """
    whole: Expression | None = None
    for one in conditions:
        whole = one if whole is None else Call(Function.AND, (whole, one))
    return whole


def random(expression: Expression) -> bool:
    """Whether an expression draws a value anew in each solution (RAND, UUID, STRUUID, BNODE)."""
    return calls(expression, RANDOM)


def per_report(expression: Expression) -> bool:
    """Whether an expression depends on the report at which it is evaluated: it draws, or NOW."""
    return calls(expression, PER_REPORT)


def calls(expression: Expression, functions: Collection[Function]) -> bool:
    """Whether one of these functions occurs in an expression."""
    match expression:
        case Call(function, args):
            return function in functions or any(calls(arg, functions) for arg in args)
        case Aggregate(_, arg, _) if arg is not None:
            return calls(arg, functions)
        case _:
            return False


def requires_values(condition: Expression) -> bool:
    """Whether a condition only requires variables to be bound, as CQL does of columns.

    >>> requires_values(Call(Function.BOUND, (Var("x"),)))
    True
    """
    match condition:
        case Call(Function.BOUND):
            return True
        case Call(Function.AND, args):
            return all(map(requires_values, args))
        case _:
            return False


def show(expression: Expression) -> str:
    """The stable text form of an expression.

    >>> show(Call(Function.LESS, (Var("a"), Param(0))))
    '(< ?a $0)'
    """
    match expression:
        case Var(name):
            return f"?{name}"
        case Const(term):
            return str(term)
        case Param(index):
            return f"${index}"
        case Call(Function.USER, args):
            return f"({' '.join(map(show, args))})"
        case Call(function, args):
            return "(" + " ".join([function.value, *map(show, args)]) + ")"
        case Aggregate(function, arg, distinct, separator):
            inner = "*" if arg is None else show(arg)
            if function is AggregateFunction.USER:
                return f"(<{separator}>{' DISTINCT' if distinct else ''} {inner})"
            between = "" if separator is None else f" {Literal(separator)}"
            return f"({function.value}{' DISTINCT' if distinct else ''} {inner}{between})"
