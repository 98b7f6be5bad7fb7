"""The comparisons that an index can evaluate: a variable with a constant, by an order of values.

    value    ``<``, ``>``, ``<=``, ``>=``, ``=`` with a number, or an instant that has a time zone
    string   ``?v < "m"``: plain strings, by their characters
    tagged   ``STRSTARTS(?v, "a")``: those with a language, too
    str      ``STR(?v) < "m"``, ``STRSTARTS(STR(?v), "a")``: the result of STR() for any term
    date     ``<`` and similar with an xsd:date without a time zone
    local    .. with an xsd:dateTime without one

The strings that start with "a" are the range from "a" up to the first string after them. Strings
that match REGEX with "^a" start with it, too, so few are tested. Other functions (CONTAINS) and
other constants (languages, durations, dates with a zone against dates without) have no such order.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from levada.core.expressions import Call, Const, Expression, Function, Var
from levada.core.rdf_terms import STRING, XSD, Literal
from levada.plan.execution.join_kinds import Order

TURNED = {
    Function.LESS: Function.GREATER,
    Function.GREATER: Function.LESS,
    Function.LESS_EQUAL: Function.GREATER_EQUAL,
    Function.GREATER_EQUAL: Function.LESS_EQUAL,
    Function.EQUAL: Function.EQUAL,
    Function.SAME_TERM: Function.SAME_TERM,
}
"""Comparisons with exchanged sides."""
_COMPARE = TURNED.keys() - {Function.SAME_TERM}
_VALUES = {
    XSD + t for t in ("integer", "decimal", "double", "int", "long", "short", "byte", "dateTime")
}
_BEGINS = re.compile(r"\^([\w:/#@, ;=~%&-]+)(?![*?+{])")
"""Plain letters at the start of a regular expression, without one before a quantifier."""
_ZONED = re.compile(r"(?:Z|[+-][0-9]{2}:[0-9]{2})\Z")


class RangePredicate(NamedTuple):
    """A condition that puts a variable into a range."""

    name: str
    order: Order
    function: Function
    term: Literal


def range_of_condition(part: Expression) -> RangePredicate | None:
    """Returns a part of a condition as a range, if it is one."""
    match part:
        case Call(_, (Const(), Const())):
            return None
        case Call(Function.STRSTARTS, (of, Const(Literal() as term))) if _plain(term):
            return _comparison_range(of, Order.TAGGED, Function.STRSTARTS, term)
        case Call(function, (Const(Literal() as term), of)) if function in _COMPARE:
            return range_of_condition(Call(TURNED[function], (of, Const(term))))
        case Call(function, (of, Const(Literal() as term))) if function in _COMPARE:
            order = _order(term)
            if order is Order.STRING and isinstance(of, Var) and function is Function.EQUAL:
                return None  # a key
            return None if order is None else _comparison_range(of, order, function, term)
        case _:
            return None


def necessary_range(part: Expression) -> RangePredicate | None:
    """Returns a range that a part of a condition implies, if there is one.

    A REGEX that begins with plain letters implies a STRSTARTS with these.
    """
    match part:
        case Call(Function.REGEX, (of, Const(Literal() as term))) if _plain(term):
            begins = _BEGINS.match(term.lexical)
            if begins is not None and "|" not in term.lexical:
                return _comparison_range(of, Order.TAGGED, Function.STRSTARTS, Literal(begins[1]))
    return None


def _comparison_range(
    of: Expression, order: Order, function: Function, term: Literal
) -> RangePredicate | None:
    match of:
        case Var(name):
            return RangePredicate(name, order, function, term)
        case Call(Function.STR, (Var(name),)) if order in (Order.STRING, Order.TAGGED):
            return RangePredicate(name, Order.STR, function, term)
        case _:
            return None


def _order(term: Literal) -> Order | None:
    """Returns the order in which values are compared with a constant; None: there is none for all
    values.
    """
    if _plain(term):
        return Order.STRING
    if term.datatype == XSD + "dateTime" and not _ZONED.search(term.lexical):
        return Order.LOCAL
    if term.datatype == XSD + "date":
        return Order.DATE
    return Order.VALUE if term.datatype in _VALUES else None


def _plain(term: Literal) -> bool:
    return term.datatype == STRING and not term.language
