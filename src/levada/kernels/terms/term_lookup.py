"""The texts that a task can look up: terms of blobs, of runs, and computed in this epoch.

Frames carry identities; code that needs texts (general expressions, ORDER BY, results) asks the
pool. Tables are probed one after the other, newest first, for the missing texts: the cost of a
look-up is by the requested rows, not by the state. Texts computed for rows that are gone can be
released before the epoch ends (``release``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from levada.core.array_types import Words
from levada.core.expression_budget import ExpressionBudget, Part
from levada.core.size_thresholds import register
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_dictionary import Terms
from levada.kernels.terms.term_ids import identify

_REPEATED = register(f"{__name__}._REPEATED", 4)
"""Mean rows of a text from which on texts are stored once and rows are views of them."""


class TermLookup:
    """Terms by identity; ``seed`` is the checkpoint's, by which texts are identified.

    ``wall``: the epoch's wall time (ms), NOW() of a query without windows. ``fleeting``: tables of
    the state are opened one at a time for each look-up, and not kept. ``spent``: the cost of
    computing texts.
    """

    def __init__(
        self,
        seed: int,
        older: Callable[[], Iterable[Terms]] = tuple,
        wall: int = 0,
        *,
        fleeting: bool = False,
        spent: ExpressionBudget | None = None,
    ) -> None:
        self.seed = seed
        self.wall = wall
        self.spent = ExpressionBudget() if spent is None else spent
        self.size = 0  # bytes of the texts that were identified here
        self._fleeting = fleeting
        self.tables: list[Terms] = []
        self._older = older
        self._loaded = False
        self._first = 0  # how many of the tables, the first ones, are of the state

    def add(self, terms: Terms) -> None:
        """Makes a table available."""
        if len(terms):
            self.tables.append(terms)

    def _load(self) -> None:
        """The state's tables are opened only if the epoch's own do not suffice."""
        if not self._loaded:
            self._loaded = True
            self.tables[:0] = older = [t for t in self._older() if len(t)]
            self._first = len(older)

    @property
    def table_count(self) -> int:
        """Returns the number of tables in addition to those of the state."""
        return len(self.tables) - self._first

    def release(self, after: int, wanted: Sequence[tuple[Words, Words]]) -> None:
        """Releases texts that are not ``wanted``, in all tables except the state's and the first
        ``after`` others.
        """
        start = self._first + after
        some, none = self.tables[start:], np.empty(0, np.uint64)
        x, y = (np.concatenate([none, *(pair[i] for pair in wanted)]) for i in (0, 1))
        x, y = _distinct(x, y)
        picked, parts = list[Terms](), list[Part]()
        for table in some:
            if len(terms := table.pick(x, y)):
                picked.append(terms)
                parts += self.spent.parts_of(table.data, terms.nbytes)
        kept = Terms.merge(picked)
        if parts:
            self.spent.hold_texts(kept.data, kept.nbytes, parts)
        self.tables[start:] = [kept] if len(kept) else []

    def identify(self, texts: Any) -> tuple[Words, Words]:
        """Identities of texts (null: unbound); the texts become available here."""
        array = texts.to_arrow() if isinstance(texts, pl.Series) else texts
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        array = array.cast(pa.large_string())
        x, y = identify(array, self.seed)
        self._name(x, y, array)
        return x, y

    def name(self, x: Words, y: Words, texts: Any) -> None:
        """Makes texts available under identities that are not their own hashes: those of values."""
        array = texts.to_arrow() if isinstance(texts, pl.Series) else texts
        self._name(x, y, array.cast(pa.large_string()))

    def _name(self, x: Words, y: Words, array: Any) -> None:
        if len(x):
            _, offsets, data = array.buffers()
            off = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
            body = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
            self.size += int(off[-1] - off[0])
            terms = Terms.from_texts(x, y, off[:-1], off[1:] - off[:-1], body)
            self.spent.hold_texts(terms.data, terms.nbytes)
            self.add(terms)

    def pick(self, x: Words, y: Words) -> Terms:
        """The table of exactly these identities, as far as they are known."""
        x, y = _distinct(x, y)
        picked: list[Terms] = []
        for table in self._search() if len(x) else ():
            rows = table.find(x, y)
            missing = rows < 0
            if not missing.all():
                picked.append(table.select_rows(rows))
                x, y = x[missing], y[missing]
            if not len(x):
                break  # before the state's tables are opened for nothing
        return Terms.concat(picked)  # an identity was picked from one table

    def pick_charged(self, x: Words, y: Words, node: int) -> Terms:
        """Does the same, and charges the operator ``node`` until the table is dropped. Raises
        ``ExcessError``.
        """
        terms = self.pick(x, y)
        if len(terms):
            self.spent.hold_texts(terms.data, terms.nbytes, [Part(node, None, terms.nbytes)])
        return terms

    def _search(self) -> Iterable[Terms]:
        yield from reversed(self.tables)
        if self._fleeting:
            yield from (table for table in self._older() if len(table))
        elif not self._loaded:
            known = len(self.tables)
            self._load()
            yield from reversed(self.tables[: len(self.tables) - known])

    def texts(self, x: Words, y: Words) -> pl.Series:
        """The texts of identities; null where unbound or unknown."""
        if not len(x):
            return pl.Series([], dtype=pl.String)
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
        table = self.pick(x, y)
        if len(x) < _REPEATED * len(table):
            return pl.Series(table.texts(x, y, strict=False), dtype=pl.String)
        each = pl.Series(table.texts(table.x, table.y), dtype=pl.String)
        rows = table.find(x, y)
        at = pl.Series(rows, dtype=pl.Int64)
        return each.gather(at.set(pl.Series(rows < 0), None) if (rows < 0).any() else at)


def _distinct(x: Words, y: Words) -> tuple[Words, Words]:
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    _, first = group(x, y)
    x, y = x[first], y[first]
    bound = (x != 0) | (y != 0)
    return x[bound], y[bound]
