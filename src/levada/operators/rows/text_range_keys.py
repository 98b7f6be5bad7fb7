"""Texts in their order: the characters by which rows are found within ranges, and the places of
rows among the borders of the ranges.

    string, tagged, str    the characters of a string, by their code points, as SPARQL compares them
                           (UTF-8 keeps that order)
    date, local            the lexical form of a date or dateTime without a time zone, which is as
                           long for all years of four digits: in the order of the values; a fraction
                           of a second without zeros at its end

A term is *told* if it has such characters. A term without them either satisfies no condition of the
order (``none``), or might: a date with a time zone next to one without, the year 12026. For such a
term the caller evaluates the conditions.

Cost: each distinct term once, some 300 ns, and a search among the borders; a row a look-up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl

from levada.core import column_names as col
from levada.core.array_types import Bools, Doubles
from levada.core.expressions import Function
from levada.core.frame import Frame
from levada.core.rdf_terms import XSD, Kind
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.expressions import lexical_forms
from levada.operators.expressions.strings import string_function
from levada.operators.expressions.term_values import Column, gather
from levada.operators.rows.term_columns import column
from levada.plan.execution.joins import Order

BEHIND = b"\xff"
"""Behind a text and all that starts with it: no UTF-8 has this byte."""
_TIMES = (Kind.DATETIME, Kind.HARD_TIME, Kind.OTHER)
_NO_TEXT = (Kind.UNBOUND, Kind.BLANK)
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,18})?"
_WRITTEN = {
    Order.DATE: rf'^"({_DAY})"\^\^<{re.escape(XSD)}date>$',
    Order.LOCAL: rf'^"({_DAY}T{_CLOCK})"\^\^<{re.escape(XSD)}dateTime>$',
}


_Read = Callable[[Column, Order], pl.Series]
"""The characters of terms."""


class RangeTexts(NamedTuple):
    """The sort bytes of terms, null where they have none. ``none``: flags of terms that cannot
    satisfy any condition.
    """

    texts: pl.Series
    none: Bools

    @staticmethod
    def from_column(terms: Column, order: Order) -> RangeTexts:
        """Computes the sort bytes of a column of terms."""
        kinds = terms.kinds()
        if order in _WRITTEN:
            none = ~np.isin(kinds, _TIMES)
            return RangeTexts(_read_some(terms, ~none, _times, order), none)
        if order is Order.STR:
            some = ~np.isin(kinds, _NO_TEXT)
        else:
            some = (kinds == Kind.STRING) | ((kinds == Kind.LANG) & (order is Order.TAGGED))
        return RangeTexts(_read_some(terms, some, _characters, order), ~some)


def places(frame: Frame, slot: int, order: Order, borders: pl.Series, pool: TermLookup) -> Placed:
    """Where rows are among borders."""
    if col.x(slot) not in frame:
        return Placed.locate(RangeTexts.from_column(column(frame, slot, pool), order), borders)
    codes, first = group(frame[col.x(slot)], frame[col.y(slot)])
    names = [name for name in frame.columns if col.is_slot(name) and int(name[1:]) == slot]
    some = frame.select(names).take(first)
    d, exact, none = Placed.locate(RangeTexts.from_column(column(some, slot, pool), order), borders)
    return Placed(d[codes], exact[codes], none[codes])


class Placed(NamedTuple):
    """The position of each term: i is the i-th of the borders, half a number less is before it.
    ``exact``: flags of exact positions; ``none``: as in ``RangeTexts``.
    """

    d: Doubles
    exact: Bools
    none: Bools

    @staticmethod
    def locate(keys: RangeTexts, borders: pl.Series) -> Placed:
        """Computes the positions of terms from their sort bytes."""
        places = np.zeros(len(keys.texts))
        exact = keys.texts.is_not_null().to_numpy()
        at = np.flatnonzero(exact)
        if len(at):
            texts = keys.texts.gather(at)
            left = borders.search_sorted(texts, "left").to_numpy().astype(np.int64)
            right = borders.search_sorted(texts, "right").to_numpy().astype(np.int64)
            places[at] = left - 0.5 * (left == right)
        return Placed(places, exact, keys.none)


def none_of(n: int) -> pl.Series:
    """Returns n nulls."""
    return pl.Series([None], dtype=pl.Binary).new_from_index(0, n)


def _read_some(terms: Column, some: Bools, of: _Read, order: Order) -> pl.Series:
    """Reads some of the terms; null for the others."""
    at = np.flatnonzero(some)
    if not len(at):
        return none_of(terms.n)
    texts = of(terms if len(at) == terms.n else gather(terms, at), order).cast(pl.Binary)
    if len(at) == terms.n:
        return texts
    back = np.full(terms.n, -1, np.int64)
    back[at] = np.arange(len(at))
    rows = pl.Series(back)
    return texts.gather(rows.set(rows < 0, None))


def _characters(terms: Column, order: Order) -> pl.Series:
    """Returns the characters of strings, or of STR() of terms."""
    if order is not Order.STRING:
        terms = string_function(Function.STR, [terms])
    return lexical_forms.lexicals(terms.texts())


def _times(terms: Column, order: Order) -> pl.Series:
    """The lexical forms of dates and dateTimes that are ordered as these are."""
    text = terms.texts().str.extract(_WRITTEN[order], 1)
    day = text.str.slice(0, 10)
    there = (day.str.to_date("%Y-%m-%d", strict=False).is_not_null()) & (day >= "0001")
    fine = text.str.contains(".", literal=True).fill_null(False)
    short = text.str.strip_chars_end("0").str.strip_suffix(".").zip_with(fine, text)
    return pl.select(pl.when(there.fill_null(False)).then(short)).to_series()
