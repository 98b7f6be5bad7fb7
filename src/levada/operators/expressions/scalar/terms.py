"""Functions on RDF terms (SPARQL 1.1, 17.4.2), on parts of dates (17.4.5), and arithmetic on single
terms (17.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

import pyoxigraph

from levada.core.rdf_terms import LANG_STRING, Blank, Iri, Literal, Term
from levada.operators.expressions.scalar import numbers, times
from levada.operators.expressions.scalar.literals import literal_of, value_of
from levada.operators.expressions.scalar.numbers import ExpressionError, Number
from levada.operators.expressions.scalar.strings import simple_text
from levada.operators.expressions.scalar.times import SECOND, Duration, Timestamp

_IRI = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)


def lexical(a: Term) -> Literal:
    """``STR``: the lexical form of a literal, the characters of an IRI."""
    if isinstance(a, Blank):
        raise ExpressionError("a blank node has no lexical form")
    return Literal(a.lexical if isinstance(a, Literal) else a.value)


def language(a: Term) -> Literal:
    """``LANG``: the language tag, or "" without one."""
    return Literal(_literal(a).language)


def datatype(a: Term) -> Iri:
    """``DATATYPE``."""
    literal = _literal(a)
    return Iri(LANG_STRING if literal.language else literal.datatype)


def _literal(a: Term) -> Literal:
    if not isinstance(a, Literal):
        raise ExpressionError("a literal is expected")
    return a


def iri(a: Term, base: Term | None = None) -> Iri:
    """``IRI``: resolves a simple literal against the base IRI of the query, if there is one."""
    if isinstance(a, Iri):
        return a
    text = simple_text(a)
    resolved = resolve(text, base.value) if isinstance(base, Iri) else text
    try:
        return Iri(pyoxigraph.NamedNode(resolved).value)
    except ValueError as error:
        raise ExpressionError("not an absolute IRI") from error


def resolve(reference: str, base: str) -> str:
    """An IRI reference made absolute (RFC 3986, 5.2).

    >>> resolve("../z?q", "http://a/b/c/d")
    'http://a/b/z?q'
    """
    scheme, authority, path, query, fragment = _split(reference)
    b_scheme, b_authority, b_path, b_query, _ = _split(base)
    if scheme is None:
        if authority is None:
            authority = b_authority
            if not path:
                path, query = b_path, b_query if query is None else query
            elif not path.startswith("/"):
                path = (
                    "/" + path
                    if b_authority is not None and not b_path
                    else b_path[: b_path.rfind("/") + 1] + path
                )
        scheme = b_scheme
    head = (f"{scheme}:" if scheme else "") + (f"//{authority}" if authority is not None else "")
    tail = ("" if query is None else f"?{query}") + ("" if fragment is None else f"#{fragment}")
    return head + _without_dots(path) + tail


def _split(text: str) -> tuple[str | None, str | None, str, str | None, str | None]:
    match = _IRI.fullmatch(text)
    assert match is not None, "every string splits into the parts of an IRI"
    scheme, authority, path, query, fragment = match.groups()
    return scheme, authority, path or "", query, fragment


def _without_dots(path: str) -> str:
    """RFC 3986, 5.2.4."""
    if not path.startswith("/"):
        return path
    done: list[str] = []
    parts = path.split("/")[1:]
    for part in parts:
        if part == "..":
            done = done[:-1]
        elif part != ".":
            done.append(part)
    closed = "/" if parts[-1] in (".", "..") and done else ""
    return "/" + "/".join(done) + closed


def strdt(a: Term, b: Term) -> Literal:
    """``STRDT``: a literal of a datatype from a simple literal."""
    if not isinstance(b, Iri):
        raise ExpressionError("a datatype is an IRI")
    return Literal(simple_text(a), b.value)


def strlang(a: Term, b: Term) -> Literal:
    """``STRLANG``: a string with a language from two simple literals; the tag must be BCP 47's."""
    tag = simple_text(b).lower()
    try:
        pyoxigraph.Literal("", language=tag)
    except ValueError as error:
        raise ExpressionError("not a language tag") from error
    return Literal(simple_text(a), LANG_STRING, tag)


def part(name: str) -> Callable[[Term], Literal]:
    """``YEAR``, ``MONTH``, ``DAY`` of a value that has such a field."""

    def function(a: Term) -> Literal:
        value = getattr(_timestamp(a), name)
        if value is None:
            raise ExpressionError(f"a time without {name}")
        return literal_of(int(value))

    return function


def _timestamp(a: Term) -> Timestamp:
    value = value_of(a)
    if not isinstance(value, Timestamp):
        raise ExpressionError("a date or time is expected")
    return value


def _clock(a: Term) -> int:
    time = _timestamp(a).time
    if time is None:
        raise ExpressionError("a date has no time of day")
    return time


def hours(a: Term) -> Literal:
    """``HOURS``."""
    return literal_of(_clock(a) // (3600 * SECOND))


def minutes(a: Term) -> Literal:
    """``MINUTES``."""
    return literal_of(_clock(a) // (60 * SECOND) % 60)


def seconds(a: Term) -> Literal:
    """``SECONDS``: a decimal."""
    return literal_of(Decimal(times.show_seconds(_clock(a) % (60 * SECOND))))


def timezone(a: Term) -> Literal:
    """``TIMEZONE``: an xsd:dayTimeDuration; an error without a zone."""
    offset = _timestamp(a).offset
    if offset is None:
        raise ExpressionError("a time without zone")
    return literal_of(Duration(0, offset * 60 * SECOND, times.DAY_TIME))


def tz(a: Term) -> Literal:
    """``TZ``: the zone as text, or "" without one."""
    return Literal(_timestamp(a).zone())


def binary(operator: str) -> Callable[[Term, Term], Literal]:
    """``+ - * /`` on numbers; ``+`` and ``-`` also on dates, times and durations."""

    def function(a: Term, b: Term) -> Literal:
        x, y = value_of(a), value_of(b)
        if not (isinstance(x, Timestamp | Duration) and operator in "+-"):
            return literal_of(numbers.calculate(operator, number(a), number(b)))
        sign = 1 if operator == "+" else -1
        match x, y:
            case Timestamp(), Duration():
                return literal_of(times.shift(x, y, sign))
            case Duration(), Duration():
                return literal_of(times.add_durations(x, y, sign))
            case Timestamp(), Timestamp() if sign < 0:
                return literal_of(times.subtract(x, y))
        raise ExpressionError("operands that have no sum or difference")

    return function


def unary(operation: Callable[[Number], Number]) -> Callable[[Term], Literal]:
    """A function of one number, as ``ABS``."""

    def function(a: Term) -> Literal:
        return literal_of(operation(number(a)))

    return function


def plus(a: Term) -> Literal:
    """Unary ``+`` of a number or duration."""
    value = value_of(a)
    return literal_of(value if isinstance(value, Duration) else numbers.check_length(number(a)))


def minus(a: Term) -> Literal:
    """Unary ``-`` of a number or duration."""
    value = value_of(a)
    if isinstance(value, Duration):
        return literal_of(Duration(-value.months, -value.time, value.datatype))
    return literal_of(numbers.negate(number(a)))


def number(a: Term) -> Number:
    """The value of a numeric argument."""
    value = value_of(a)
    if isinstance(value, bool) or not isinstance(value, int | Decimal | float):
        raise ExpressionError("a number is expected")
    return value
