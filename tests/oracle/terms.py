"""Terms as N-Triples texts, their values, and how these are compared (SPARQL 1.1, 17.2 to 17.4)."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from oracle.times import Time, compared, time

XSD = "http://www.w3.org/2001/XMLSchema#"
RANKS = {"integer": 0, "decimal": 1, "double": 2}
DIGITS = r"(\d+(\.\d*)?|\.\d+)"
NUMERALS = {
    "integer": re.compile(r"[+-]?\d+"),
    "decimal": re.compile(rf"[+-]?{DIGITS}"),
    "double": re.compile(rf"[+-]?{DIGITS}([eE][+-]?\d+)?|-?INF|NaN"),
}
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\^\^<([^>]*)>|@(\S+))?$')


class BadError(Exception):
    """An expression without a value."""


class Value(NamedTuple):
    """What a term stands for. ``kind``: integer, decimal, double, string, lang, boolean, dateTime,
    date, iri, blank, or other: a literal without a value.
    """

    kind: str
    of: Fraction | float | str | bool | Time


@lru_cache(maxsize=65536)
def value(term: str) -> Value:
    """The value of a term."""
    if term.startswith("<"):
        return Value("iri", term[1:-1])
    if term.startswith("_:"):
        return Value("blank", term)
    found = LITERAL.match(term)
    assert found is not None, f"a term: {term}"
    text, datatype, language = found.groups()
    if language is not None:
        return Value("lang", term)
    kind = "string" if datatype is None else datatype.removeprefix(XSD)
    if kind == "string":
        return Value("string", re.sub(r"\\(.)", r"\1", text))
    if kind == "boolean" and text in ("true", "false", "0", "1"):
        return Value(kind, text in ("true", "1"))
    if kind in ("dateTime", "date"):
        of = time(kind, text)
        return Value("other", term) if of is None else Value(kind, of)
    return _numeral(kind, text) or Value("other", term)


def _numeral(kind: str, text: str) -> Value | None:
    """What digits stand for, if they do. Of floats there are such as are the same as doubles."""
    own = {"byte": "integer", "int": "integer", "float": "double"}.get(kind, kind)
    if own not in NUMERALS or not NUMERALS[own].fullmatch(text):
        return None
    if own == "double":
        return Value(own, float(text.replace("INF", "inf")))
    if kind == "byte" and not -129 < int(text) < 128:
        return None
    return Value(own, Fraction(text))


def number(kind: str, of: Fraction | float) -> str:
    """The term of a number."""
    if kind == "double":
        text = repr(float(of)).replace("inf", "INF").replace("nan", "NaN")
    elif kind == "integer":
        text = str(int(of))
    else:
        text = decimal(Fraction(of))
    return f'"{text}"^^<{XSD}{kind}>'


def decimal(of: Fraction) -> str:
    """A decimal's digits: 18 behind the point, and no more."""
    scaled = abs(of.numerator) * 10**18 // of.denominator
    whole, rest = divmod(scaled, 10**18)
    sign = "-" if of < 0 and scaled else ""
    return f"{sign}{whole}.{rest:018d}".rstrip("0").rstrip(".")


def boolean(of: bool) -> str:
    """The term of a truth value."""
    return f'"{str(of).lower()}"^^<{XSD}boolean>'


def string(of: str) -> str:
    """The term of a string."""
    return '"' + of.replace("\\", "\\\\").replace('"', '\\"') + '"'


def promoted(left: Value, right: Value) -> tuple[Fraction | float, Fraction | float]:
    """Two numbers as they are compared and computed: exact, or both as doubles."""
    assert not isinstance(left.of, str | Time) and not isinstance(right.of, str | Time)
    if "double" in (left.kind, right.kind):
        return float(left.of), float(right.of)
    return left.of, right.of


def equal(left: str, right: str) -> bool:
    """``=`` of two terms."""
    one, two = value(left), value(right)
    if one.kind in RANKS and two.kind in RANKS:
        a, b = promoted(one, two)
        return a == b
    if isinstance(one.of, Time) and isinstance(two.of, Time) and one.kind == two.kind:
        return _order(one.of, two.of) == 0
    if one.kind == two.kind and one.kind != "other":
        return one.of == two.of
    if left == right:
        return True
    if {"iri", "blank", "lang"} & {one.kind, two.kind}:
        return False
    kinds = {one.kind, two.kind}
    if "other" in kinds or ("date" in kinds and kinds & {*RANKS}):
        raise BadError
    return False  # a number, a string, a boolean, a dateTime: values of other kinds


def less(left: str, right: str) -> bool:
    """``<`` of two terms."""
    one, two = value(left), value(right)
    if one.kind in RANKS and two.kind in RANKS:
        a, b = promoted(one, two)
        return a < b
    if one.kind != two.kind or one.kind in ("iri", "blank", "other"):
        raise BadError
    if isinstance(one.of, Time) and isinstance(two.of, Time):
        return _order(one.of, two.of) < 0
    return one.of < two.of  # type: ignore[operator]


def _order(one: Time, two: Time) -> int:
    found = compared(one, two)
    if found is None:
        raise BadError
    return found


def truth(term: str) -> bool:
    """The effective boolean value."""
    kind, of = value(term)
    if kind in ("boolean", "string") or kind in RANKS:
        return bool(of) and of == of
    raise BadError


def rank(term: str | None) -> tuple[int, int, Fraction | float | str]:
    """The place of a term in ORDER BY, where what is ordered is of one kind."""
    if term is None:
        return (0, 0, 0)
    kind, of = value(term)
    if isinstance(of, Time):
        return (3, 1, of.of)
    if kind in RANKS:
        return (3, 0, float(of)) if of == of else (3, -1, 0)
    return ({"blank": 1, "iri": 2}.get(kind, 3), 2, of)


def normal(term: str) -> object:
    """What two texts of one number have in common."""
    kind, of = value(term)
    if kind == "double" and of != of:
        return "NaN"
    return (kind, of) if kind in RANKS else (kind, of) if kind == "string" else term
