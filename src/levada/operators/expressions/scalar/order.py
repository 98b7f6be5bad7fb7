"""Equality, order and effective boolean value of two terms (SPARQL 1.1, 17.2.2, 17.3, 17.4.1.7).

The operator mapping is SPARQL's, extended to the dates, times and durations of XML Schema and to
language-tagged strings of one language, as the judge does. Two literals of recognised types whose
values cannot be equal (a string and a number) are unequal; a literal of an unrecognised datatype or
an ill-typed one is equal to itself and an error against any other literal. Against a number every
literal of another type than string, boolean or dateTime is an error, so that a comparison with a
number never needs a text.
"""

from __future__ import annotations

from levada.core.rdf_terms import Literal, Term
from levada.operators.expressions.scalar import numbers, times
from levada.operators.expressions.scalar.literals import Text, Value, is_number, read, value_of
from levada.operators.expressions.scalar.numbers import ExpressionError
from levada.operators.expressions.scalar.times import Duration, Timestamp

_NUMERIC_LITERALS = ("integer", "decimal", "float", "double", "boolean")


def order(a: Term, b: Term) -> int | None:
    """-1, 0 or 1 for ``<``, ``=``, ``>``; None if all comparisons are false (NaN); an error if the
    two have no order.
    """
    x, y = value_of(a), value_of(b)
    if is_number(x) and is_number(y):
        return numbers.order(x, y)  # type: ignore[arg-type]
    result = None
    match x, y:
        case bool(), bool():
            result = int(x > y) - int(x < y)
        case Text(), Text() if x.language == y.language:
            result = int(x.lexical > y.lexical) - int(x.lexical < y.lexical)
        case Timestamp(), Timestamp():
            result = times.order(x, y)
        case Duration(), Duration():
            result = times.order_durations(x, y)
    if result is None:
        raise ExpressionError("two terms without an order")
    return result


def equal(a: Term, b: Term) -> bool:
    """``=``: by value for recognised datatypes, else the same term; an error where RDF does not
    decide.
    """
    if not isinstance(a, Literal) or not isinstance(b, Literal):
        return a == b
    x, y = value_of(a), value_of(b)
    if is_number(x) and is_number(y):
        return numbers.order(x, y) == 0  # type: ignore[arg-type]
    if a == b:
        return True
    if is_number(x) or is_number(y):
        return _against_number(y if is_number(x) else x)
    return _equal_values(a, b, x, y)


def _against_number(other: Value | None) -> bool:
    known = isinstance(other, Text | bool) or (
        isinstance(other, Timestamp) and other.datatype == "dateTime"
    )
    if not known:
        raise ExpressionError("a number and a literal of another datatype")
    return False


def _equal_values(a: Literal, b: Literal, x: Value | None, y: Value | None) -> bool:
    if x is None or y is None:
        if a.language or b.language:
            return False
        raise ExpressionError("two literals, one of an unrecognised datatype or ill-typed")
    match x, y:
        case Timestamp(), Timestamp():
            return _same_instant(x, y)
        case Duration(), Duration():
            return (x.months, x.time) == (y.months, y.time)
    return type(x) is type(y) and x == y


def _same_instant(x: Timestamp, y: Timestamp) -> bool:
    """An error where only one has a zone and the other, in some zone, could be the same (W3C's test
    open-world/date-2).
    """
    comparison = times.order(x, y)
    if comparison is None and x.datatype == y.datatype:
        raise ExpressionError("a time with and one without a zone, less than 14 hours apart")
    return comparison == 0


def effective_boolean(term: Term) -> bool:
    """The effective boolean value; ill-typed numbers and booleans are false, others are errors.

    >>> effective_boolean(Literal("abc", "http://www.w3.org/2001/XMLSchema#integer"))
    False
    """
    value = value_of(term)
    if isinstance(value, bool):
        return value
    if is_number(value):
        return value == value and value != 0
    if isinstance(value, Text):
        return value.lexical != ""
    if value is None and isinstance(term, Literal) and _could_be_number(term):
        return False
    raise ExpressionError("a term without an effective boolean value")


def _could_be_number(term: Literal) -> bool:
    name = term.datatype.rpartition("#")[2]
    return not term.language and (name in _NUMERIC_LITERALS or read("1", name) == 1)
