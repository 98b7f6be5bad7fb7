"""The scalar functions of CQL: their names, the types of their arguments, their meaning.

Names and meaning are SQL's. Where engines differ, they are Spark's in ANSI mode, but an argument
for which Spark raises an error has no value here. A date or time is an event time: an integer, in
ms since 1970 (UTC).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from levada.core.expressions import Call, Const, Expression, Function
from levada.core.frozen import frozen
from levada.core.rdf_terms import XSD, Iri, Literal
from levada.language.cql.ast import LiteralType

_F = Function
_INTEGER, _DOUBLE = LiteralType.INTEGER, LiteralType.DOUBLE
_STRING, _BOOLEAN = LiteralType.STRING, LiteralType.BOOLEAN
NO_VALUE = Call(_F.COALESCE, ())
"""NULL."""

CAST_TYPES: dict[str, LiteralType] = {
    **dict.fromkeys(("integer", "int", "bigint", "long"), _INTEGER),
    **dict.fromkeys(("double", "float", "real"), _DOUBLE),
    **dict.fromkeys(("string", "varchar", "char", "text"), _STRING),
    **dict.fromkeys(("boolean", "bool"), _BOOLEAN),
}
"""The types of Cast by their names."""

PARTS: dict[str, str] = {
    "year": "year", "years": "year", "yr": "year", "quarter": "quarter", "qtr": "quarter",
    "month": "month", "months": "month", "mon": "month", "week": "week", "weeks": "week",
    "day": "day", "days": "day", "dayofmonth": "day", "dayofweek": "dayofweek",
    "dow": "dayofweek", "isodow": "isodow", "dow_iso": "isodow", "dayofweek_iso": "isodow",
    "doy": "doy", "dayofyear": "doy", "hour": "hour", "hours": "hour",
    "minute": "minute", "minutes": "minute", "min": "minute",
    "second": "second", "seconds": "second", "sec": "second",
    "millisecond": "millisecond", "milliseconds": "millisecond",
}  # fmt: skip
"""The parts of an instant by the words for them."""
UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")

Arguments = Sequence[Expression]


@frozen
class Signature:
    """A function: the types that its arguments may have, how many it needs, the type of its value
    (None: that of its arguments), and its meaning. ``repeats``: the last argument may be repeated.
    """

    takes: tuple[tuple[LiteralType, ...], ...]
    least: int
    gives: LiteralType | None
    of: Callable[[Arguments], Expression]
    repeats: bool = False


_I, _N, _S = (_INTEGER,), (_INTEGER, _DOUBLE), (_STRING,)
_ANY = (_INTEGER, _DOUBLE, _STRING, _BOOLEAN)


def text(value: str) -> Const:
    """Returns a text as a constant."""
    return Const(Literal(value))


def number(value: int) -> Const:
    """Returns an integer as a constant."""
    return Const(Literal(str(value), XSD + "integer"))


def cast(name: str, expression: Expression) -> Call:
    """Returns the cast of an expression to an XSD type by its local name."""
    return Call(_F.CAST, (Const(Iri(XSD + name)), expression))


def is_null(expression: Expression) -> Call:
    """Returns whether an expression has no value."""
    return Call(_F.NOT, (Call(_F.BOUND, (expression,)),))


def surely(condition: Expression) -> Expression:
    """Returns whether a condition is true: neither false nor without a value."""
    return Call(_F.COALESCE, (condition, Const(Literal("false", XSD + "boolean"))))


def choose(branches: Sequence[tuple[Expression, Expression]], other: Expression) -> Expression:
    """Returns SQL's Case: the value of the first condition that is true."""
    for condition, value in reversed(branches):
        other = Call(_F.IF, (surely(condition), value, other))
    return other


def cast_to(kind: LiteralType, was: LiteralType, value: Expression) -> Expression:
    """Returns a value as one of another type; one that the type does not have is NULL."""
    if kind is was or was is LiteralType.NULL:
        return value
    if kind is _STRING and was is _DOUBLE:
        return Call(_F.NUMBER_TEXT, (value,))
    if kind is _BOOLEAN and was is _STRING:
        word = Call(_F.LCASE, (Call(_F.TRIM, (value, text(" "))),))
        yes = Call(_F.IN, (word, *map(text, ("t", "true", "y", "yes", "1"))))
        no = Call(_F.IN, (word, *map(text, ("f", "false", "n", "no", "0"))))
        return choose(((yes, truth(True)), (no, truth(False))), NO_VALUE)
    return cast(kind.value, value)


def truth(value: bool) -> Const:
    """Returns a boolean as a constant."""
    return Const(Literal(str(value).lower(), XSD + "boolean"))


def _call(function: Function) -> Callable[[Arguments], Expression]:
    return lambda args: Call(function, tuple(args))


def _whole(function: Function) -> Callable[[Arguments], Expression]:
    """A rounding, whose zero has no sign."""
    return lambda args: Call(_F.ADD, (Call(function, tuple(args)), number(0)))


def _trim(function: Function) -> Callable[[Arguments], Expression]:
    return lambda args: Call(function, (args[0], args[1] if len(args) > 1 else text(" ")))


def _pad(function: Function) -> Callable[[Arguments], Expression]:
    return lambda args: Call(function, (*args, *([] if len(args) > 2 else [text(" ")])))


def _extreme(comparison: Function) -> Callable[[Arguments], Expression]:
    """The greatest or least of some values; those without a value are left out."""

    def build(args: Arguments) -> Expression:
        if len(args) < 2:
            return args[0]
        halves = (build(args[: len(args) // 2]), build(args[len(args) // 2 :]))
        chosen = Call(_F.IF, (Call(comparison, halves), *halves))
        return Call(_F.COALESCE, (chosen, *halves))

    return build


def _date_part(word: str) -> Signature:
    return Signature((_I,), 1, _INTEGER, lambda args: Call(_F.DATE_PART, (text(word), *args)))


_DATE_PARTS = "year quarter month week day hour minute second dayofweek dayofmonth dayofyear"
_LENGTH = Signature((_S,), 1, _INTEGER, _call(_F.STRLEN))
_UPPER, _LOWER = (Signature((_S,), 1, _STRING, _call(f)) for f in (_F.UCASE, _F.LCASE))
_SUBSTRING = Signature((_S, _I, _I), 2, _STRING, _call(_F.SUBSTRING))
_POWER = Signature((_N, _N), 2, _DOUBLE, _call(_F.POWER))
_CEIL = Signature((_N,), 1, None, _whole(_F.CEIL))
_ROUND = Signature(
    (_N, _I), 1, None, lambda a: Call(_F.ROUND_DIGITS, (*a, *([] if len(a) > 1 else [number(0)])))
)

FUNCTIONS: dict[str, Signature] = {
    "abs": Signature((_N,), 1, None, _call(_F.ABS)),
    "ceil": _CEIL, "ceiling": _CEIL,
    "floor": Signature((_N,), 1, None, _whole(_F.FLOOR)),
    "round": _ROUND,
    "mod": Signature((_N, _N), 2, None, _call(_F.REMAINDER)),
    "power": _POWER, "pow": _POWER,
    "sqrt": Signature((_N,), 1, _DOUBLE, _call(_F.SQRT)),
    "exp": Signature((_N,), 1, _DOUBLE, _call(_F.EXP)),
    "ln": Signature((_N,), 1, _DOUBLE, _call(_F.LN)),
    "sign": Signature((_N,), 1, _DOUBLE, _call(_F.SIGN)),
    "greatest": Signature((_ANY, _ANY), 2, None, _extreme(_F.GREATER_EQUAL), True),
    "least": Signature((_ANY, _ANY), 2, None, _extreme(_F.LESS_EQUAL), True),
    "coalesce": Signature((_ANY,), 1, None, _call(_F.COALESCE), True),
    "ifnull": Signature((_ANY, _ANY), 2, None, _call(_F.COALESCE)),
    "nvl": Signature((_ANY, _ANY), 2, None, _call(_F.COALESCE)),
    "nullif": Signature(
        (_ANY, _ANY), 2, None, lambda a: choose(((Call(_F.EQUAL, tuple(a)), NO_VALUE),), a[0])
    ),
    "upper": _UPPER, "ucase": _UPPER, "lower": _LOWER, "lcase": _LOWER,
    "length": _LENGTH, "char_length": _LENGTH, "character_length": _LENGTH, "len": _LENGTH,
    "substring": _SUBSTRING, "substr": _SUBSTRING,
    "left": Signature(
        (_S, _I), 2, _STRING, lambda a: Call(_F.SUBSTRING, (a[0], number(1), a[1]))
    ),
    "right": Signature(
        (_S, _I), 2, _STRING,
        lambda a: Call(_F.SUBSTRING, (a[0], Call(_F.MINUS, (a[1],)), a[1])),
    ),
    "trim": Signature((_S, _S), 1, _STRING, _trim(_F.TRIM)),
    "btrim": Signature((_S, _S), 1, _STRING, _trim(_F.TRIM)),
    "ltrim": Signature((_S, _S), 1, _STRING, _trim(_F.LTRIM)),
    "rtrim": Signature((_S, _S), 1, _STRING, _trim(_F.RTRIM)),
    "replace": Signature(
        (_S, _S, _S), 2, _STRING,
        lambda a: Call(_F.REPLACE_TEXT, (*a, *([] if len(a) > 2 else [text("")]))),
    ),
    "concat": Signature((_S,), 1, _STRING, _call(_F.CONCAT), True),
    "position": Signature((_S, _S), 2, _INTEGER, _call(_F.POSITION)),
    "strpos": Signature((_S, _S), 2, _INTEGER, lambda a: Call(_F.POSITION, (a[1], a[0]))),
    "instr": Signature((_S, _S), 2, _INTEGER, lambda a: Call(_F.POSITION, (a[1], a[0]))),
    "lpad": Signature((_S, _I, _S), 2, _STRING, _pad(_F.LPAD)),
    "rpad": Signature((_S, _I, _S), 2, _STRING, _pad(_F.RPAD)),
    "split_part": Signature((_S, _S, _I), 3, _STRING, _call(_F.SPLIT_PART)),
    "reverse": Signature((_S,), 1, _STRING, _call(_F.REVERSE)),
    "starts_with": Signature((_S, _S), 2, _BOOLEAN, _call(_F.STRSTARTS)),
    "startswith": Signature((_S, _S), 2, _BOOLEAN, _call(_F.STRSTARTS)),
    "ends_with": Signature((_S, _S), 2, _BOOLEAN, _call(_F.STRENDS)),
    "endswith": Signature((_S, _S), 2, _BOOLEAN, _call(_F.STRENDS)),
    "contains": Signature((_S, _S), 2, _BOOLEAN, _call(_F.CONTAINS)),
    "date_part": Signature((_S, _I), 2, _INTEGER, _call(_F.DATE_PART)),
    "date_trunc": Signature((_S, _I), 2, _INTEGER, _call(_F.DATE_TRUNC)),
    **{word: _date_part(PARTS[word]) for word in _DATE_PARTS.split()},
}  # fmt: skip

HINTS: dict[str, str] = {
    **dict.fromkeys(
        ("now", "current_timestamp", "current_time", "localtimestamp", "current_date"),
        "A query follows event time, not a clock: write ts, the time of a row.",
    ),
    "isnull": "Write x Is Null.",
    "if": "Write Case When condition Then a Else b End.",
    "iif": "Write Case When condition Then a Else b End.",
    "to_timestamp": "Times are integers, ms since 1970: give the stream a column of times.",
    "string_agg": "A value of CQL is no list: write a row for each value.",
    "array_agg": "A value of CQL is no list: write a row for each value.",
    "collect_list": "A value of CQL is no list: write a row for each value.",
    "collect_set": "A value of CQL is no list: write a row for each value, with Select Distinct.",
    "listagg": "A value of CQL is no list: write a row for each value.",
    "any_value": "Write Min(x) or Max(x).",
    "log": "Write Ln(x), or Ln(x) / Ln(10).",
    "log10": "Write Ln(x) / Ln(10).",
    "regexp_like": "Write x Like 'a%'.",
    "rand": "A query gives the same result each time that it runs.",
    "random": "A query gives the same result each time that it runs.",
    "uuid": "A query gives the same result each time that it runs.",
}
"""Replacements for functions of other engines, as hints."""

_SPECIAL = frozenset("\\.+*?()|[]{}^$-")


def like_pattern(pattern: str, escape: str) -> str | None:
    r"""Returns a pattern of Like as a regular expression; None: nothing follows an escape.

    >>> like_pattern("a_%", "!"), like_pattern("5!%", "!")
    ('^a[\\s\\S][\\s\\S]*$', '^5%$')
    """
    out, characters = [], iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None:
                return None
            out.append("\\" + following if following in _SPECIAL else following)
        elif character == "%":
            out.append("[\\s\\S]*")
        elif character == "_":
            out.append("[\\s\\S]")
        else:
            out.append("\\" + character if character in _SPECIAL else character)
    return "^" + "".join(out) + "$"
