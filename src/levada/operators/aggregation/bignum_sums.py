"""Sums of numbers that do not fit in limbs: more than 18 fraction digits, or beyond 127 bits.

Such numbers are few, so they are added up one by one, exactly. A partial sum of them is a literal
like any other: columns ``x y`` of the aggregate contain its identity, and ``k`` flags its presence.
Its text is in the pool, travels with partials and is kept with them like the text of an input term.
Without such numbers there is no cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import numpy as np
import polars as pl

from levada.core.array_types import Ints
from levada.core.frame import Column, Frame
from levada.core.rdf_terms import XSD, Kind
from levada.kernels.terms.term_dictionary import Terms
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.expressions.scalar.literals import show_decimal, term_of, value_of
from levada.operators.expressions.scalar.numbers import EXACT, ExpressionError, check_length
from levada.plan.execution.steps import Aggregate

Sums = dict[int, Decimal]
"""By group, of those that have such numbers."""


def number(text: str) -> Decimal | None:
    """The value of a number that has one.

    >>> number('"0.5"^^<http://www.w3.org/2001/XMLSchema#decimal>')
    Decimal('0.5')
    """
    value = value_of(term_of(text))
    return Decimal(value) if isinstance(value, int | Decimal) else None


def literal(value: Decimal, kind: str) -> str | None:
    """The canonical text of a number of the type ``kind``; None if it is too long to have one."""
    try:
        check_length(value)
    except ExpressionError:
        return None
    return f'"{show_decimal(value)}"^^<{XSD}{kind}>'


def add_number(sums: Sums, group: int, value: Decimal) -> None:
    """Adds a number to its group's sum."""
    sums[group] = EXACT.add(sums.get(group, Decimal(0)), value)


def columns(sums: Mapping[int, Decimal], g: int, pool: TermLookup) -> dict[str, Column]:
    """The columns of g groups; their texts, of any length, become known to the pool."""
    x, y, kind = np.zeros(g, np.uint64), np.zeros(g, np.uint64), np.zeros(g, np.uint8)
    at = np.array([group for group, value in sums.items() if value], np.int64)
    if len(at):
        texts = [f'"{show_decimal(sums[i])}"{_TYPE}' for i in at.tolist()]
        x[at], y[at] = pool.identify(pl.Series(texts, dtype=pl.String))
        kind[at] = Kind.HARD_NUMBER
    return {"x": x, "y": y, "k": kind}


_TYPE = f"^^<{XSD}decimal>"


def merge_sums(partials: Mapping[str, Column], codes: Ints, pool: TermLookup) -> Sums:
    """Adds up partial sums; ``partials`` has their columns, ``codes`` the group of each."""
    sums: Sums = {}
    for i, value in read(partials, pool).items():
        add_number(sums, int(codes[i]), value)
    return sums


def read(partials: Mapping[str, Column], pool: TermLookup) -> Sums:
    """The sums of partials, by their place."""
    at = (
        np.flatnonzero(partials["k"] == Kind.HARD_NUMBER)
        if "k" in partials
        else np.empty(0, np.int64)
    )
    if not len(at):
        return {}
    texts = pool.texts(partials["x"][at], partials["y"][at]).to_list()
    return {i: Decimal(t[1 : -len(_TYPE) - 1]) for i, t in zip(at.tolist(), texts, strict=True)}


def own_terms(partials: Frame, specs: tuple[Aggregate, ...], pool: TermLookup) -> Terms:
    """The texts of the sums in partials, which are kept with them."""
    pairs = []
    for j in range(len(specs)):
        names = [f"a{j}.{name}" for name in ("k", "x", "y", "ih")]
        if all(name in partials for name in names):  # of sums; what wins has come with rows
            hard = partials[names[0]] == Kind.HARD_NUMBER
            pairs += [tuple(partials[name][hard] for name in names[1:3])] if hard.any() else []
    if not pairs:
        return Terms.empty()
    x, y = (np.concatenate(halves) for halves in zip(*pairs, strict=True))
    return pool.pick(x, y)
