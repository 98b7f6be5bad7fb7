"""Columns: the values of a variable or subexpression for n rows, as facets
(``core.rdf_terms.Kind``, ``core.frame``).

A column has the facets that were shipped: identities ``x, y``; the kind with the value facets
``dbl, man, scale``; the canonical N-Triples texts, fetched at the first request. Missing facets are
derived from the others where that is possible:

* the text of a number, boolean or dateTime from its value facets (canonical form: right for
  computed values, and equal in value for input whose own text was not shipped);
* kind and value facets from the text, once per distinct text;
* the identity from the text, by the injected hash.

A column of length 1 represents any number of rows (constants). Columns are immutable but for these
caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.core.array_types import Bools, Bytes, Doubles, Longs, Words
from levada.core.rdf_terms import Kind, Term
from levada.core.size_thresholds import register
from levada.operators.expressions import lexical_forms
from levada.operators.expressions.scalar.literals import facets, term_of

Identify = Callable[[pl.Series], tuple[Words, Words]]
# texts; finding the distinct ones takes about a millisecond however few there are
MAX_PARSED_TEXTS = register(f"{__name__}.MAX_PARSED_TEXTS", 256)
_NAMED = (Kind.IRI, Kind.BLANK, Kind.STRING, Kind.LANG)


@dataclass(eq=False)
class Column:
    """``n`` values; None is a facet that was not shipped. ``text`` is null where unbound (or not
    shipped: see above).
    """

    n: int
    x: Words | None = None
    y: Words | None = None
    kind: Bytes | None = None
    dbl: Doubles | None = None
    man: Longs | None = None
    scale: Bytes | None = None
    text: Callable[[], pl.Series] | None = None
    _shipped: pl.Series | None = field(default=None, repr=False)
    _texts: pl.Series | None = field(default=None, repr=False)
    _parts: list[tuple[int, Longs | None]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for facet in (self.x, self.y, self.kind, self.dbl, self.man, self.scale):
            assert facet is None or facet.size == self.n, "the facets of a column have its length"

    def shipped_texts(self) -> pl.Series | None:
        """Returns the texts as they were received: null may also mean that this row's text was not
        shipped.
        """
        if self._shipped is None and self.text is not None:
            self._shipped = self.text()
            assert len(self._shipped) == self.n, "a column has a text for each row"
        return self._shipped

    def texts(self) -> pl.Series:
        """The canonical text of each row, null where unbound."""
        if self._texts is None:
            self._texts = self._complete(self.shipped_texts())
        return self._texts

    def _complete(self, shipped: pl.Series | None) -> pl.Series:
        if shipped is not None and (self.man is None or shipped.null_count() == 0):
            return shipped
        _, dbl, man, scale = self.values()
        kinds = self.kinds()
        if shipped is None:
            return lexical_forms.texts(kinds, dbl, man, scale)
        lacking = np.flatnonzero(shipped.is_null().to_numpy() & (kinds != Kind.UNBOUND))
        if len(lacking) == 0:
            return shipped
        derived = lexical_forms.texts(kinds[lacking], dbl[lacking], man[lacking], scale[lacking])
        return lexical_forms.patch(shipped, lacking, derived)

    def kinds(self) -> Bytes:
        """The kind of each row."""
        return self.values()[0] if self.kind is None else self.kind

    def values(self) -> tuple[Bytes, Doubles, Longs, Bytes]:
        """Kind, double, mantissa and scale of each row; from the texts if they were not shipped."""
        if self.kind is None or self.man is None or self.dbl is None or self.scale is None:
            shipped = self.shipped_texts()
            assert shipped is not None, (
                "a column whose values are read has its value facets or its texts"
            )
            self.kind, self.dbl, self.man, self.scale = classify(shipped)
        return self.kind, self.dbl, self.man, self.scale

    def bound(self) -> Bools:
        """Whether each row is bound."""
        if self.kind is not None:
            return np.asarray(self.kind != Kind.UNBOUND)
        if self.x is not None and self.y is not None:
            return np.asarray((self.x | self.y) != 0)
        return self.texts().is_not_null().to_numpy()

    def identify(self, identify: Identify) -> tuple[Words, Words]:
        """The identity of each row, (0, 0) where unbound; ``identify`` hashes texts with the
        checkpoint's seed.
        """
        if self.x is None or self.y is None:
            self.x, self.y = identify(self.texts())
        return self.x, self.y

    def parts(self) -> list[tuple[int, Longs | None]]:
        """The rows of each kind that occurs; None is all rows."""
        if self._parts is None:
            kinds = self.kinds()
            if self.n and (kinds == kinds[0]).all():
                self._parts = [(int(kinds[0]), None)]
            else:
                occurring = np.flatnonzero(np.bincount(kinds, minlength=32)).tolist()
                self._parts = [(k, np.flatnonzero(kinds == k)) for k in occurring]
        return self._parts


def constant(term: Term | None) -> Column:
    """Returns a term as a column of length 1, for any number of rows; None is unbound."""
    kind, dbl, man, scale = facets(term)
    zero = np.zeros(1, np.uint64)
    return Column(
        1,
        zero if term is None else None,
        zero if term is None else None,
        np.array([kind], np.uint8),
        np.array([dbl]),
        np.array([man], np.int64),
        np.array([scale], np.uint8),
        lambda: pl.Series([None if term is None else str(term)], dtype=pl.String),
    )


def from_texts(texts: pl.Series) -> Column:
    """A column of canonical texts (null: unbound); all else is derived when needed."""
    return Column(len(texts), text=lambda: texts)


def rows_of(column: Column, start: int, stop: int) -> Column:
    """Returns neighbouring rows of a column of texts, without a copy."""
    kind, dbl, man, scale = column.values()
    texts = column.texts()
    return Column(
        stop - start, None, None, kind[start:stop], dbl[start:stop], man[start:stop],
        scale[start:stop], lambda: texts[start:stop],
    )  # fmt: skip


def gather(column: Column, rows: Longs | None) -> Column:
    """Returns the rows at these positions (None: all). A column of length 1 keeps its length."""
    if rows is None or column.n == 1:
        return column
    if column.kind is None and column.x is None and column.n < len(rows):
        column.values()  # a small table of parameters is read once, not in each row
    source = column.shipped_texts if column.text is not None else None

    def pick() -> pl.Series:
        texts = source() if source else None
        assert texts is not None, "a column with texts has texts"
        return texts.gather(rows)

    return _gather_columns(column, rows, pick if source else None)


def broadcast(column: Column, n: int) -> Column:
    """The column with n rows: a constant is repeated."""
    if column.n == n:
        return column
    assert column.n == 1, "a column has the rows of its scope, or one"
    rows = np.zeros(n, np.int64)
    return _gather_columns(column, rows, lambda: column.texts().gather(rows))


def _gather_columns(column: Column, rows: Longs, text: Callable[[], pl.Series] | None) -> Column:
    x = None if column.x is None else column.x[rows]
    y = None if column.y is None else column.y[rows]
    kind = None if column.kind is None else column.kind[rows]
    dbl = None if column.dbl is None else column.dbl[rows]
    man = None if column.man is None else column.man[rows]
    scale = None if column.scale is None else column.scale[rows]
    return Column(len(rows), x, y, kind, dbl, man, scale, text)


def stack(columns: Sequence[Column], n: int, identify: Identify | None) -> Column:
    """``n`` rows of each column, one column after the other; constants are repeated. With
    ``identify`` all terms that compare by identity get theirs.
    """
    if any(c.n != 1 for c in columns):
        columns, n = [broadcast(c, n) for c in columns], 1
    facets_of = (c.values() for c in columns)
    kind, dbl, man, scale = (np.repeat(np.concatenate(f), n) for f in zip(*facets_of, strict=True))
    x = y = None
    if identify is not None:
        _identify_all(columns, identify)
        none = np.zeros(columns[0].n, np.uint64)
        x, y = (
            np.repeat(np.concatenate([none if i is None else i for i in ids]), n)
            for ids in zip(*((c.x, c.y) for c in columns), strict=True)
        )
    rows = np.repeat(np.arange(len(kind) // max(n, 1)), n)
    return Column(
        len(kind), x, y, kind, dbl, man, scale,
        lambda: pl.concat([c.texts() for c in columns]).gather(rows),
    )  # fmt: skip


def _identify_all(columns: Sequence[Column], identify: Identify) -> None:
    """Identifies the columns that have terms that compare by identity, by one call."""
    lacking = [c for c in columns if c.x is None and any(k in _NAMED for k, _ in c.parts())]
    if lacking:
        x, y = identify(pl.concat([c.texts() for c in lacking]))
        ends = np.cumsum([c.n for c in lacking])[:-1]
        for column, of_x, of_y in zip(lacking, np.split(x, ends), np.split(y, ends), strict=True):
            column.x, column.y = of_x, of_y


def length(columns: Sequence[Column]) -> int:
    """The number of rows of columns of which some may be constants; 1 if all are."""
    return next((c.n for c in columns if c.n != 1), 1)


def choose(which: npt.NDArray[np.int8], columns: Sequence[Column]) -> Column:
    """Row by row the value of column ``which``; -1 is unbound."""
    n = len(which)
    kind, dbl, man, scale = (
        np.zeros(n, np.uint8),
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros(n, np.uint8),
    )
    x, y = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
    identified = True
    for i, column in enumerate(columns):
        mask = which == i
        facets_of = column.values()
        np.copyto(kind, facets_of[0], where=mask)
        np.copyto(dbl, facets_of[1], where=mask)
        np.copyto(man, facets_of[2], where=mask)
        np.copyto(scale, facets_of[3], where=mask)
        if column.x is None or column.y is None:
            identified = False
        else:
            np.copyto(x, column.x, where=mask)
            np.copyto(y, column.y, where=mask)
    ids = (x, y) if identified else (None, None)
    return Column(n, ids[0], ids[1], kind, dbl, man, scale, lambda: _choose(which, columns))


def _choose(which: npt.NDArray[np.int8], columns: Sequence[Column]) -> pl.Series:
    everything = pl.concat([*(c.texts() for c in columns), pl.Series([None], dtype=pl.String)])
    starts = np.cumsum([0, *(c.n for c in columns)])
    rows = np.arange(len(which))
    at = np.full(len(which), starts[-1])
    for i, column in enumerate(columns):
        np.copyto(at, starts[i] + (rows if column.n > 1 else 0), where=which == i)
    return everything.gather(at)


def classify(texts: pl.Series) -> tuple[Bytes, Doubles, Longs, Bytes]:
    """Kind and value facets of canonical texts, once per distinct text (of a few: one by one)."""
    if len(texts) <= MAX_PARSED_TEXTS:
        return _facets(texts)
    codes, distinct = lexical_forms.distinct([texts])
    kind, dbl, man, scale = _facets(distinct[0])
    return kind[codes], dbl[codes], man[codes], scale[codes]


def _facets(texts: pl.Series) -> tuple[Bytes, Doubles, Longs, Bytes]:
    values = [facets(None if t is None else term_of(t)) for t in texts.to_list()]
    kind, dbl, man, scale = zip(*values, strict=True) if values else ((), (), (), ())
    return (
        np.array(kind, np.uint8),
        np.array(dbl, np.float64),
        np.array(man, np.int64),
        np.array(scale, np.uint8),
    )
