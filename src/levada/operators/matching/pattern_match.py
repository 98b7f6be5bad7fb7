"""Matches triples with registered patterns: the patterns are one table, built once per plan and
shipped to the tasks.

A pattern has a constant or nothing at each of its three positions, and may require two positions to
be equal (a variable that occurs twice). The patterns of a table are distinct; the plan maps each
pattern to the operators that want its triples.

Cost: building 1 to 2 us a pattern, matching 8 to 120 ns a triple (``kernels.keyed.pattern_match``).
Twin: ``match_by_comparison``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.connectors.ingest.parse.ntriples import Triples
from levada.core.array_types import Bools, Longs
from levada.core.frozen import frozen
from levada.kernels.keyed.pattern_match import (
    RECORD,
    SHAPE,
    build_table,
    group_pairs,
    match_rows,
)
from levada.kernels.terms.term_ids import identify

Pattern = tuple[str | None, str | None, str | None]

SUBJECT_IS_OBJECT, SUBJECT_IS_PREDICATE, PREDICATE_IS_OBJECT = 1, 2, 4


@frozen
class PatternTable:
    """Distinct patterns as arrays (``kernels.keyed.pattern_match``). It never changes."""

    patterns: npt.NDArray[np.int64]  # records [n, 8]
    table: npt.NDArray[np.int64]  # open addressing [2**bits, 2]
    filters: npt.NDArray[np.uint64]  # bitmaps of constants [3, words]
    masks: npt.NDArray[np.int64]  # the masks of constant positions that occur
    bits: int

    @staticmethod
    def build(patterns: Sequence[Pattern], repeats: Sequence[int], seed: int) -> PatternTable:
        """A table of patterns: texts of constants (None: a variable), codes of equal positions.

        A code adds SUBJECT_IS_OBJECT, SUBJECT_IS_PREDICATE and PREDICATE_IS_OBJECT; ``seed`` is
        that of the identities.

        >>> PatternTable.build([(None, "<a:p>", None)], [0], seed=1).n
        1
        """
        assert len(set(zip(patterns, repeats, strict=True))) == len(patterns), (
            "the patterns of a table are distinct"
        )
        return PatternTable.from_records(records_of(patterns, repeats, seed))

    @staticmethod
    def from_records(records: npt.NDArray[np.int64]) -> PatternTable:
        """A table of distinct patterns by their records."""
        bits = max(6, (2 * len(records)).bit_length())
        masks = np.unique(records[:, SHAPE] & 0xFF)
        table, filters = (
            np.zeros((1 << bits, 2), np.int64),
            np.zeros((3, 1 << (bits - 3)), np.uint64),
        )
        build_table(records, table, filters, bits)
        return PatternTable(records, table, filters, masks, bits)

    @property
    def n(self) -> int:
        """How many patterns."""
        return len(self.patterns)

    def match(self, triples: Triples, keep: Bools | None = None) -> tuple[Longs, Longs]:
        """Returns (rows, starts): the rows of triples (of those that ``keep`` flags) that each
        pattern matches.

        The rows of pattern i are ``rows[starts[i] : starts[i + 1]]``, in ascending order.
        """
        s, p, o = triples.s, triples.p, triples.o
        kept = np.zeros(0, np.bool_) if keep is None else keep
        pieces: list[tuple[Longs, npt.NDArray[np.int32]]] = []
        room, start = 2 * triples.n + self.n + 1024, 0
        while start < triples.n:
            rows, numbers = np.empty(room, np.int64), np.empty(room, np.int32)
            start, count = match_rows(
                s.x,
                s.y,
                p.x,
                p.y,
                o.x,
                o.y,
                kept,
                self.patterns,
                self.table,
                self.filters,
                self.masks,
                self.bits,
                start,
                rows,
                numbers,
            )
            pieces.append((rows[:count], numbers[:count]))
        return _group(pieces, self.n)


def records_of(
    patterns: Sequence[Pattern], repeats: Sequence[int], seed: int
) -> npt.NDArray[np.int64]:
    """Patterns as records: the identities of their constants, where these are, the codes of equal
    positions.
    """
    assert len(repeats) == len(patterns), "each pattern has a code of equal positions"
    records = np.zeros((len(patterns), RECORD), np.int64)
    for position in range(3):
        constants = pl.Series([pattern[position] for pattern in patterns], dtype=pl.String)
        x, y = identify(constants, seed)
        records[:, 2 * position], records[:, 2 * position + 1] = x.view(np.int64), y.view(np.int64)
        bound = constants.is_not_null().to_numpy().astype(np.int64)
        records[:, SHAPE] |= bound << position
    records[:, SHAPE] |= np.array(repeats, np.int64) << 8
    return records


def distinct_records(records: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Longs]:
    """Returns the distinct records, and the number of each record among them."""
    _, first, number = np.unique(mix_record(records), return_index=True, return_inverse=True)
    distinct = records[first]
    if np.array_equal(distinct[number], records):
        return distinct, number
    distinct, number = np.unique(records, axis=0, return_inverse=True)  # two of one mixture
    return distinct, number.ravel()


def mix_record(records: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """A number for each record, equal for equal ones, and seldom for others."""
    mixture = records[:, SHAPE].astype(np.uint64)
    for column in range(SHAPE):
        mixture = (mixture ^ records[:, column].view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixture ^= mixture >> np.uint64(29)
    return mixture


def _group(pieces: list[tuple[Longs, npt.NDArray[np.int32]]], patterns: int) -> tuple[Longs, Longs]:
    """The pairs of all pieces by pattern."""
    if len(pieces) == 1:
        rows, numbers = pieces[0]
    else:
        rows = np.concatenate([np.zeros(0, np.int64), *(piece[0] for piece in pieces)])
        numbers = np.concatenate([np.zeros(0, np.int32), *(piece[1] for piece in pieces)])
    out = np.empty_like(rows)
    starts = group_pairs(rows, numbers, patterns, out)
    return out, starts


def match_by_comparison(
    table: PatternTable, triples: Triples, keep: Bools | None = None
) -> tuple[Longs, Longs]:
    """Returns the result of ``PatternTable.match``, by comparing whole columns for each pattern:
    its twin.
    """
    columns = [
        half.view(np.int64) for c in (triples.s, triples.p, triples.o) for half in (c.x, c.y)
    ]
    rows = [np.zeros(0, np.int64)]
    for record in table.patterns:
        mask, equal = int(record[SHAPE]) & 7, int(record[SHAPE]) >> 8
        hit = np.ones(triples.n, np.bool_) if keep is None else keep.copy()
        for k in range(6):
            if mask & (1 << (k // 2)):
                hit &= columns[k] == record[k]
        for code, a, b in (
            (SUBJECT_IS_OBJECT, 0, 4),
            (SUBJECT_IS_PREDICATE, 0, 2),
            (PREDICATE_IS_OBJECT, 2, 4),
        ):
            if equal & code:
                hit &= (columns[a] == columns[b]) & (columns[a + 1] == columns[b + 1])
        rows.append(np.flatnonzero(hit))
    return np.concatenate(rows), np.cumsum([len(r) for r in rows])
