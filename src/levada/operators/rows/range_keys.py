"""Ranges as intervals of doubles, and rows as points: the coordinates of a range index.

The key of a row is its number as a double where that is exact, and its instant as a double beyond
all numbers: neither satisfies a comparison with the other. In the orders of texts
(``text_range_keys``) the key is the row's place among the borders of the ranges. For other rows,
and for constants that are not exact, the caller evaluates the conditions themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from levada.core import column_names as col
from levada.core.array_types import Bools, Bytes, Doubles, Ints, Longs
from levada.core.expressions import Function
from levada.core.frame import Frame
from levada.core.rdf_terms import Kind
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.expressions.term_values import Column
from levada.operators.rows import text_range_keys
from levada.operators.rows.filter_extend import parameters
from levada.operators.rows.route_rows import value
from levada.plan.execution import steps as s
from levada.plan.execution.joins import Order
from levada.plan.execution.plan import PlanNode

_Compared = tuple[Function, Column]
"""A comparison, with the constants of each row."""
NO_TEXTS = pl.Series([], dtype=pl.Binary)
END = 2.0**1000
"""Numbers are below; it stands for infinity itself. Instants are beyond."""
_DIGITS = 10**15
"""Numbers of so many digits are other doubles if they are other numbers."""
_INSTANTS = 2.0**960
"""An instant of m ms is (m + _ZERO) times this, which is exact."""
_ZERO = 2.0**51
_NEVER = [int(k) for k in (Kind.UNBOUND, Kind.IRI, Kind.BLANK, Kind.STRING, Kind.LANG)]
_FROM = (Function.GREATER, Function.GREATER_EQUAL, Function.EQUAL)
_TO = (Function.LESS, Function.LESS_EQUAL, Function.EQUAL)


class Numbers(NamedTuple):
    """Values as doubles, instants beyond all numbers; ``exact``: flags of exact values; ``none``:
    flags of values that are neither number nor instant.
    """

    d: Doubles
    exact: Bools
    none: Bools

    @staticmethod
    def from_facets(kind: Bytes, d: Doubles, man: Longs, scale: Bytes) -> Numbers:
        """From value facets."""
        few = np.abs(man) < _DIGITS
        instant = (kind == Kind.DATETIME) & few
        whole = (kind == Kind.INTEGER) | (kind == Kind.DECIMAL)
        power = np.where(kind == Kind.DECIMAL, scale, 0)
        number = np.where(whole, man / np.power(10.0, power), d)
        number = np.where(instant, (man + _ZERO) * _INSTANTS, number)
        real = (kind == Kind.DOUBLE) & ((np.abs(d) < END) | np.isinf(d))
        none = np.isin(kind, _NEVER) | ((kind == Kind.DOUBLE) & np.isnan(d))
        return Numbers(number, (whole & few) | real | instant, none)

    @staticmethod
    def from_slot(frame: Frame, slot: int) -> Numbers:
        """From a slot."""
        facets = (value(frame, name, slot) for name in "dmc")
        return Numbers.from_facets(frame[col.kind(slot)], *facets)


class RangeKey(NamedTuple):
    """The axis of ranges: a slot, and the order of its values."""

    slot: int
    order: Order

    def positions(self, rows: Frame, borders: pl.Series, pool: TermLookup) -> Numbers:
        """Returns the positions of rows on the axis; ``borders``: where it orders texts."""
        if self.order is Order.VALUE:
            return Numbers.from_slot(rows, self.slot)
        return Numbers(*text_range_keys.places(rows, self.slot, self.order, borders, pool))


class Bounds(NamedTuple):
    """Numbers from ``low`` to ``high``, without these where ``above``, ``below``.

    ``is_decided``: the bounds alone decide the condition. In an order of texts, numbers are places
    among the sorted ``borders``.
    """

    low: Doubles
    high: Doubles
    above: Bools
    below: Bools
    is_decided: Bools
    borders: pl.Series = NO_TEXTS

    def select_rows(self, rows: Ints | Longs) -> Bounds:
        """Returns the bounds at these places."""
        floats, flags = (self.low, self.high), (self.above, self.below, self.is_decided)
        low, high = (column[rows] for column in floats)
        above, below, is_decided = (column[rows] for column in flags)
        return Bounds(low, high, above, below, is_decided, self.borders)

    @staticmethod
    def concat(parts: Sequence[Bounds]) -> Bounds:
        """Concatenates bounds, among the borders of all."""
        borders = _sort_distinct([part.borders for part in parts])
        parts = [part._move_to_borders(borders) if len(part.borders) else part for part in parts]
        low, high = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        above, below, is_decided = (np.concatenate([part[i] for part in parts]) for i in (2, 3, 4))
        return Bounds(low, high, above, below, is_decided, borders)

    def _move_to_borders(self, borders: pl.Series) -> Bounds:
        at = borders.search_sorted(self.borders, "left").to_numpy().astype(np.float64)
        low, high = self.low.copy(), self.high.copy()
        for column in (low, high):
            is_finite = np.isfinite(column)
            column[is_finite] = at[column[is_finite].astype(np.int64)]
        return self._replace(low=low, high=high, borders=borders)


class _Edge(NamedTuple):
    """A comparison with the members' constants as numbers; where ``exact``, it says all."""

    function: Function
    d: Doubles
    exact: Bools


def bounds_of(node: PlanNode[s.Pick], number: int) -> Bounds:
    """The interval of each member's range, and whether it says all."""
    tests = [test for test in node.step.tests if test.range == number]
    order = tests[0].order if tests else Order.VALUE
    constants = node.compute_once(parameters)
    compared = [(test.function, constants[test.param]) for test in tests]
    return interval_bounds(compared, order, len(node.members))


def interval_bounds(compared: Sequence[_Compared], order: Order, n: int) -> Bounds:
    """The intervals of n rows of constants in comparisons of one order."""
    return _of_values(compared, n) if order is Order.VALUE else _of_texts(compared, order, n)


def _of_values(compared: Sequence[_Compared], n: int) -> Bounds:
    """Returns the bounds of comparisons with numbers and instants. Infinity is not a border,
    because an unbounded range ends there. A range of numbers ends where instants begin, and vice
    versa; conditions on both leave the range undecided.
    """
    values = [Numbers.from_facets(*constants.values()) for _, constants in compared]
    times = [numbers.d > END for numbers in values]
    time = times[0] if times else np.zeros(n, np.bool_)
    low, high = np.where(time, END, -np.inf), np.where(time | (not compared), np.inf, END)
    is_decided = np.logical_and.reduce(
        [np.ones(n, np.bool_), *(numbers == time for numbers in times)]
    )
    edges = [
        _Edge(function, numbers.d, numbers.exact & np.isfinite(numbers.d))
        for (function, _), numbers in zip(compared, values, strict=True)
    ]
    return _intersect_edges(edges, Bounds(low, high, time, np.zeros(n, np.bool_), is_decided))


def _of_texts(compared: Sequence[_Compared], order: Order, n: int) -> Bounds:
    """Returns the bounds of comparisons with texts. The prefix range of a text goes from the text
    to a border behind all texts with this prefix.
    """
    edges = list[tuple[Function, pl.Series]]()
    for function, constants in compared:
        range_texts = text_range_keys.RangeTexts.from_column(constants, order).texts
        if function is Function.STRSTARTS:
            edges.append((Function.GREATER_EQUAL, range_texts))
            edges.append(
                (Function.LESS, pl.select(range_texts + pl.lit(text_range_keys.BEHIND)).to_series())
            )
        else:
            edges.append((function, range_texts))
    borders = _sort_distinct([range_texts_.drop_nulls() for _, range_texts_ in edges])
    placed = [_place_edge(function, range_texts_, borders) for function, range_texts_ in edges]
    low, high, never = np.full(n, -np.inf), np.full(n, np.inf), np.zeros(n, np.bool_)
    return _intersect_edges(placed, Bounds(low, high, never, never, ~never, borders))


def _place_edge(function: Function, texts: pl.Series, borders: pl.Series) -> _Edge:
    d, exact, _ = text_range_keys.Placed.locate(
        text_range_keys.RangeTexts(texts, np.zeros(len(texts), np.bool_)), borders
    )
    return _Edge(function, d, exact)


def _intersect_edges(edges: Sequence[_Edge], whole: Bounds) -> Bounds:
    """Returns the part of a whole that satisfies all comparisons, as far as these are exact."""
    low, high, above, below, is_decided, borders = whole
    for function, d, exact in edges:
        is_decided = is_decided & exact
        strict = function in (Function.LESS, Function.GREATER)
        if function in _FROM:
            more = exact & ((d > low) | ((d == low) & strict))
            low, above = np.where(more, d, low), np.where(more, strict, above)
        if function in _TO:
            more = exact & ((d < high) | ((d == high) & strict))
            high, below = np.where(more, d, high), np.where(more, strict, below)
    return Bounds(low, high, above, below, is_decided, borders)


def _sort_distinct(parts: Sequence[pl.Series]) -> pl.Series:
    """Texts once each, in order."""
    return pl.concat([NO_TEXTS, *parts]).unique().sort()
