"""The Python function of each strict SPARQL function, for one set of bound arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from levada.core.expressions import Function
from levada.core.rdf_terms import Term
from levada.operators.expressions.scalar import numbers, strings, terms
from levada.operators.expressions.scalar.casts import cast
from levada.operators.expressions.scalar.numbers import ExpressionError

ScalarFunction = Callable[..., Term]
Value = TypeVar("Value")

SCALAR: dict[Function, ScalarFunction] = {
    Function.ADD: terms.binary("+"),
    Function.SUBTRACT: terms.binary("-"),
    Function.MULTIPLY: terms.binary("*"),
    Function.DIVIDE: terms.binary("/"),
    Function.PLUS: terms.plus,
    Function.MINUS: terms.minus,
    Function.ABS: terms.unary(numbers.absolute),
    Function.ROUND: terms.unary(numbers.round_half_up),
    Function.CEIL: terms.unary(numbers.ceiling),
    Function.FLOOR: terms.unary(numbers.floor),
    Function.STR: terms.lexical,
    Function.LANG: terms.language,
    Function.DATATYPE: terms.datatype,
    Function.IRI: terms.iri,
    Function.STRDT: terms.strdt,
    Function.STRLANG: terms.strlang,
    Function.STRLEN: strings.strlen,
    Function.SUBSTR: strings.substr,
    Function.UCASE: strings.ucase,
    Function.LCASE: strings.lcase,
    Function.STRSTARTS: strings.strstarts,
    Function.STRENDS: strings.strends,
    Function.CONTAINS: strings.contains,
    Function.STRBEFORE: strings.strbefore,
    Function.STRAFTER: strings.strafter,
    Function.ENCODE_FOR_URI: strings.encode_for_uri,
    Function.CONCAT: strings.concat,
    Function.LANGMATCHES: strings.lang_matches,
    Function.REGEX: strings.regex_matches,
    Function.REPLACE: strings.regex_replace,
    Function.YEAR: terms.part("year"),
    Function.MONTH: terms.part("month"),
    Function.DAY: terms.part("day"),
    Function.HOURS: terms.hours,
    Function.MINUTES: terms.minutes,
    Function.SECONDS: terms.seconds,
    Function.TIMEZONE: terms.timezone,
    Function.TZ: terms.tz,
    Function.MD5: strings.digest("md5"),
    Function.SHA1: strings.digest("sha1"),
    Function.SHA256: strings.digest("sha256"),
    Function.SHA384: strings.digest("sha384"),
    Function.SHA512: strings.digest("sha512"),
    Function.CAST: cast,
}


def call(function: Callable[..., Value], args: tuple[Term | None, ...]) -> Value | None:
    """The function's value, or None if it is an error."""
    try:
        return function(*args)
    except ExpressionError:
        return None
