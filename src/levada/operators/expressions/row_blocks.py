"""Rows by kinds, and the general path.

An operator is vectorised over *blocks*: the rows whose arguments have the same kinds. Rows that a
block cannot decide (hard numbers, overflow, texts) take the *general path*: a Python function on
terms (``scalar``) evaluates each distinct combination of arguments once, and the results are
scattered back. ``Result`` collects the values of both paths into a column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl

from levada.core.array_types import Bytes, Doubles, Longs
from levada.core.frozen import frozen
from levada.core.rdf_terms import Kind, Term
from levada.operators.expressions import lexical_forms, numeric
from levada.operators.expressions.scalar.function_table import ScalarFunction, call
from levada.operators.expressions.scalar.literals import facets, term_of
from levada.operators.expressions.term_values import Column, gather, length

FALSE, TRUE, ERROR = 0, 1, 2
"""Three-valued truth, as uint8."""


@frozen
class Block:
    """Rows (None: all) on which each argument has one kind, and the arguments at these rows."""

    kinds: tuple[int, ...]
    rows: Longs | None
    columns: tuple[Column, ...]


def blocks(*columns: Column) -> list[Block]:
    """The rows of some columns (constants among them) by their combination of kinds."""
    n = length(columns)
    wide = [c for c in columns if c.n != 1]
    if n == 0:
        return []
    if len(wide) <= 1:
        parts = wide[0].parts() if wide else [(int(columns[0].kinds()[0]), None)]
        return [_block(columns, tuple(_kind(c, k) for c in columns), rows) for k, rows in parts]
    codes = np.zeros(n, np.uint32)
    for c in wide:
        codes = codes * 32 + c.kinds()
    if (codes == codes[0]).all():
        return [_block(columns, tuple(int(c.kinds()[0]) for c in columns), None)]
    distinct_codes = np.flatnonzero(np.bincount(codes)).tolist()
    groups = ((code, np.flatnonzero(codes == code)) for code in distinct_codes)
    return [
        _block(columns, tuple(int(c.kinds()[0 if c.n == 1 else r[0]]) for c in columns), r)
        for _, r in groups
    ]


def _kind(column: Column, kind: int) -> int:
    return int(column.kinds()[0]) if column.n == 1 else kind


def _block(columns: Sequence[Column], kinds: tuple[int, ...], rows: Longs | None) -> Block:
    return Block(kinds, rows, tuple(gather(c, rows) if c.n != 1 else c for c in columns))


def inner_rows(rows: Longs | None, inner: Longs | None) -> Longs | None:
    """The rows of a block's rows (None: all)."""
    if inner is None:
        return rows
    return inner if rows is None else rows[inner]


def combinations(
    columns: Sequence[Column], rows: Longs | None
) -> tuple[Longs, list[tuple[Term | None, ...]]]:
    """For each row (None: all) the number of its combination of arguments, and the distinct
    combinations.
    """
    n = length(columns) if rows is None else len(rows)
    wide = [i for i, c in enumerate(columns) if c.n != 1]
    fixed = [_terms(c.texts())[0] if c.n == 1 else None for c in columns]
    if not wide:
        return np.zeros(n, np.int64), [tuple(fixed)] if n else []
    texts = [columns[i].texts() for i in wide]
    codes, unique = lexical_forms.distinct(
        texts if rows is None else [t.gather(rows) for t in texts]
    )
    values = [fixed[i : i + 1] * len(unique[0]) for i in range(len(columns))]
    for i, series in zip(wide, unique, strict=True):
        values[i] = _terms(series)
    return codes, list(zip(*values, strict=True))


def _terms(texts: pl.Series) -> list[Term | None]:
    return [None if t is None else term_of(t) for t in texts.to_list()]


class Result:
    """A column in the making: blocks write numbers or terms at their rows; the rest is unbound."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.kind: Bytes = np.zeros(n, np.uint8)
        self.dbl: Doubles = np.zeros(n)
        self.man: Longs = np.zeros(n, np.int64)
        self.scale: Bytes = np.zeros(n, np.uint8)
        self._pool: list[pl.Series | Callable[[], pl.Series]] = []
        self._texts: list[tuple[Longs, Longs]] = []
        self._size = 0

    def put(
        self,
        rows: Longs | None,
        kind: Kind | Bytes,
        *,
        man: Longs | None = None,
        scale: Bytes | None = None,
        dbl: Doubles | None = None,
    ) -> None:
        """Values by their facets, at rows (None: all); doubles of exact numbers are worked out."""
        place = slice(None) if rows is None else rows
        self.kind[place] = kind
        if man is not None:
            self.man[place] = man
            if dbl is None and scale is not None:
                dbl = numeric.doubles(man, scale)
        if scale is not None:
            self.scale[place] = scale
        if dbl is not None:
            self.dbl[place] = dbl

    def put_texts(
        self, rows: Longs | None, kind: Kind | Bytes, texts: pl.Series, codes: Longs | None = None
    ) -> None:
        """Values by their texts: row i has text ``codes[i]`` (None: text i)."""
        self.kind[slice(None) if rows is None else rows] = kind
        self._put_text_codes(rows, texts, len(texts), codes)

    def put_hard(self, rows: Longs | None, dbl: Doubles, texts: Callable[[], pl.Series]) -> None:
        """Hard numbers by their nearest doubles and their texts, which are written if asked for."""
        none = np.zeros(len(dbl), np.int64)
        self.put(rows, Kind.HARD_NUMBER, man=none, scale=none.astype(np.uint8), dbl=dbl)
        self._put_text_codes(rows, texts, len(dbl), None)

    def _put_text_codes(
        self,
        rows: Longs | None,
        texts: pl.Series | Callable[[], pl.Series],
        size: int,
        codes: Longs | None,
    ) -> None:
        place = np.arange(self.n) if rows is None else rows
        self._texts.append((place, self._size + (np.arange(size) if codes is None else codes)))
        self._pool.append(texts)
        self._size += size

    def put_terms(self, rows: Longs | None, codes: Longs, terms: Sequence[Term | None]) -> None:
        """Values by terms (None: unbound): row i has term ``codes[i]``."""
        kind, dbl, man, scale = zip(*map(facets, terms), strict=True)
        kinds = np.array(kind, np.uint8)[codes]
        self.put_texts(
            rows,
            kinds,
            pl.Series([None if t is None else str(t) for t in terms], dtype=pl.String),
            codes,
        )
        values = (
            np.array(man, np.int64)[codes],
            np.array(scale, np.uint8)[codes],
            np.array(dbl, np.float64)[codes],
        )
        self.put(rows, kinds, man=values[0], scale=values[1], dbl=values[2])

    def column(self) -> Column:
        """The finished column; its texts are put together when asked for."""
        text = self._written_texts if self._texts else None
        return Column(self.n, None, None, self.kind, self.dbl, self.man, self.scale, text)

    def _written_texts(self) -> pl.Series:
        parts = [texts() if callable(texts) else texts for texts in self._pool]
        pool = pl.concat([*parts, pl.Series([None], dtype=pl.String)])
        codes = np.full(self.n, self._size)
        for rows, place in self._texts:
            codes[rows] = place
        return pool.gather(codes)


def general(
    function: ScalarFunction,
    columns: Sequence[Column],
    rows: Longs | None,
    result: Result,
    place: Longs | None = None,
) -> None:
    """Writes the function's values at rows (None: all) by the general path; an argument without
    value is an error.

    ``place``: the rows of ``result`` for all rows of the columns, if the columns are a block.
    """
    codes, distinct = combinations(columns, rows)
    if distinct:
        terms = [None if None in c else call(function, c) for c in distinct]
        result.put_terms(inner_rows(place, rows), codes, terms)


def general_truth(
    function: Callable[..., bool], columns: Sequence[Column], rows: Longs | None
) -> Bytes:
    """The truth of a function at rows (None: all) by the general path."""
    codes, distinct = combinations(columns, rows)
    truths = [ERROR if None in c else _truth(call(function, c)) for c in distinct]
    return np.array(truths, np.uint8)[codes]


def _truth(value: object) -> int:
    return ERROR if value is None else TRUE if value else FALSE


def strict(function: ScalarFunction, columns: Sequence[Column]) -> Column:
    """A function that is an error where an argument is unbound, by the general path."""
    result = Result(length(columns))
    rows: Longs | None = None
    for column in columns:
        bound = column.bound()
        if column.n == 1 and not bound[0]:
            return result.column()
        if not bound.all():
            rows = _intersect(rows, np.flatnonzero(bound))
    general(function, columns, rows, result)
    return result.column()


def _intersect(rows: Longs | None, others: Longs) -> Longs:
    return others if rows is None else np.intersect1d(rows, others, assume_unique=True)
