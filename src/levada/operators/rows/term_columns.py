"""Slots as columns of terms for expressions, ranks, results; computed columns back into slots.

``column`` gives an expression the facets that the frame has; texts come from the pool when they are
asked for, or, for typed columns, from the values. ``slot`` turns a computed column into the facets
that a layout wants.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.core import column_names as col
from levada.core.array_types import Ints, Words
from levada.core.frame import Column as Array
from levada.core.frame import Frame
from levada.core.rdf_terms import Kind
from levada.core.size_thresholds import register
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_ids import Identity, identify_ints
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.expressions.term_values import Column
from levada.operators.rows.route_rows import value
from levada.plan.execution.row_layout import Facet, slot_columns


def by_value(values: Column, seed: int, identify: Callable[[pl.Series], Identity]) -> Identity:
    """Identities of the values of integers, doubles and booleans, as columns of tuples have them;
    ``identify``: of the texts of all others; null is (0, 0).
    """
    kind, dbl, man, _ = values.values()
    x, y = np.zeros(values.n, np.uint64), np.zeros(values.n, np.uint64)
    rest = kind != Kind.UNBOUND
    for tag in (Kind.INTEGER, Kind.DOUBLE, Kind.BOOLEAN):
        rows = np.flatnonzero(kind == tag)
        if len(rows):
            bits = (dbl[rows] + 0.0).view(np.int64) if tag == Kind.DOUBLE else man[rows]
            x[rows], y[rows] = identify_ints(bits, tag, seed)
            rest[rows] = False
    others = np.flatnonzero(rest)
    if len(others):
        x[others], y[others] = identify(values.texts().gather(others))
    return x, y


_REPEATED = register(f"{__name__}._REPEATED", 256)
"""Rows, from which on it is looked whether values repeat: where they do not that is 2 % more."""


def _distinct_values(values: Column) -> tuple[Column, Ints | None]:
    """Returns each value once, and the number of each row's value (None: the values are unchanged).
    Values computed for many queries are often equal, and printing a value is the main cost.
    """
    if values.n < _REPEATED or values.text is not None or values.man is None:
        return values, None
    kind, dbl, man, scale = values.values()
    bits = np.ascontiguousarray(dbl).view(np.uint64), np.ascontiguousarray(man).view(np.uint64)
    form = kind.astype(np.uint64) << np.uint64(8) | scale
    codes, first = group(*combine(*bits, form, np.zeros(values.n, np.uint64)))
    if 2 * len(first) > values.n:
        return values, None
    some = (kind[first], dbl[first], man[first], scale[first])
    return Column(len(first), None, None, *some), codes


def _identify_values(values: Column, facets: Facet, pool: TermLookup, *, tuples: bool) -> Identity:
    """Returns the identities of computed values, and adds their texts to the pool."""
    some, codes = _distinct_values(values)
    x, y = _known_by_value(some, facets, pool) if tuples else pool.identify(some.texts())
    return (x, y) if codes is None else (x[codes], y[codes])


def _known_by_value(values: Column, facets: Facet, pool: TermLookup) -> Identity:
    """These; their texts become known to the pool where they are wanted."""
    x, y = by_value(values, pool.seed, pool.identify)
    if Facet.TEXT in facets:
        pool.name(x, y, values.texts())
    return x, y


def column(frame: Frame, i: int, pool: TermLookup) -> Column:
    """Slot ``i`` as a column of terms."""
    get = frame.columns.get
    text: Callable[[], pl.Series] | None = None
    if col.x(i) in frame:
        text = partial(pool.texts, frame[col.x(i)], frame[col.y(i)])
    if col.kind(i) not in frame:
        return Column(frame.n, get(col.x(i)), get(col.y(i)), text=text)
    d, m, c = (value(frame, name, i) for name in "dmc")
    return Column(frame.n, get(col.x(i)), get(col.y(i)), frame[col.kind(i)], d, m, c, text)


def texts_of(pool: TermLookup, rows: Frame, i: int, at: npt.NDArray[np.int64]) -> list[str]:
    """The texts of the terms of slot ``i`` in rows ``at``."""
    texts: list[str] = column(rows.take(at), i, pool).texts().to_list()
    return texts


def slot(
    values: Column, i: int, facets: Facet, pool: TermLookup, *, tuples: bool = False
) -> dict[str, Array]:
    """Returns a computed column as the columns of slot ``i``, and adds wanted texts to the pool.

    ``tuples``: numbers and booleans get the identity of their values, as in tuple streams.
    """
    out: dict[str, Array] = {}
    if Facet.ID in facets or Facet.TEXT in facets:
        known = values.x is not None and values.y is not None and Facet.TEXT not in facets
        x: Words | None
        y: Words | None
        if known:
            x, y = values.x, values.y
        else:
            x, y = _identify_values(values, facets, pool, tuples=tuples)
        assert x is not None and y is not None, "an identified column has both halves"
        out[col.x(i)], out[col.y(i)] = x, y
    names = [n for n in slot_columns(i, facets) if n[0] in "kdmc"]
    if names:
        by_name: dict[str, Array] = dict(zip("kdmc", values.values(), strict=True))
        out.update({n: by_name[n[0]] for n in names})
    return {name: np.ascontiguousarray(a) for name, a in out.items()}
