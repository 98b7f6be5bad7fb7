"""Terms as N-Triples texts, their values, and how these are compared (SPARQL 1.1, 17.2 to 17.4)."""

from __future__ import annotations

import re
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

XSD = "http://www.w3.org/2001/XMLSchema#"
RANKS = {"integer": 0, "decimal": 1, "double": 2}
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\^\^<([^>]*)>|@(\S+))?$')


class BadError(Exception):
    """An expression without a value."""


class Value(NamedTuple):
    """What a term stands for. ``kind``: integer, decimal, double, string, boolean, instant, iri,
    blank, or other: a literal without a value.
    """

    kind: str
    of: Fraction | float | str | bool


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
        return Value("other", term)
    kind = "string" if datatype is None else datatype.removeprefix(XSD)
    if kind == "string":
        return Value("string", re.sub(r"\\(.)", r"\1", text))
    if kind in ("integer", "decimal"):
        return Value(kind, Fraction(text))
    if kind == "byte":
        return Value("integer", Fraction(text)) if -129 < int(text) < 128 else Value("other", term)
    if kind == "double":
        return Value(kind, float(text.replace("INF", "inf")))
    if kind == "boolean":
        return Value(kind, text in ("true", "1"))
    if kind == "dateTime":
        return Value("instant", Fraction(str(datetime.fromisoformat(text).timestamp())))
    return Value("other", term)


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
    assert not isinstance(left.of, str) and not isinstance(right.of, str)
    if "double" in (left.kind, right.kind):
        return float(left.of), float(right.of)
    return left.of, right.of


def equal(left: str, right: str) -> bool:
    """``=`` of two terms."""
    one, two = value(left), value(right)
    if one.kind in RANKS and two.kind in RANKS:
        a, b = promoted(one, two)
        return a == b
    if one.kind == two.kind and one.kind != "other":
        return one.of == two.of
    if left == right:
        return True
    if "iri" in (one.kind, two.kind) or "blank" in (one.kind, two.kind):
        return False
    if "other" in (one.kind, two.kind):
        raise BadError
    return False  # a number, a string, a boolean, an instant: values of other kinds


def less(left: str, right: str) -> bool:
    """``<`` of two terms."""
    one, two = value(left), value(right)
    if one.kind in RANKS and two.kind in RANKS:
        a, b = promoted(one, two)
        return a < b
    if one.kind != two.kind or one.kind in ("iri", "blank", "other"):
        raise BadError
    return one.of < two.of  # type: ignore[operator]


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
    if kind in RANKS:
        return (3, 0, float(of)) if of == of else (3, -1, 0)
    return ({"blank": 1, "iri": 2}.get(kind, 3), 1 if kind == "instant" else 2, of)


def normal(term: str) -> object:
    """What two texts of one number have in common."""
    kind, of = value(term)
    if kind == "double" and of != of:
        return "NaN"
    return (kind, of) if kind in RANKS else (kind, of) if kind == "string" else term
