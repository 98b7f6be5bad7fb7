"""Statistics of rows before a join: their rate, and the distribution of their values (CQELS Cloud,
C26 and C27).

``Values`` describe one variable: the number of distinct values, and the share of rows with the
heaviest one. A sample of the rows adds the hash and the share of each sampled value. Two samples
give the probability that rows of two parts agree, even if few values are common.

Statistics are estimates: no result depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from levada.core.array_types import Doubles, Words
from levada.core.query_model import TriplePattern

_NONE = np.empty(0, np.uint64)
_NO_SHARES = np.empty(0, np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """The values of a variable.

    ``heaviest``: the share of rows with the heaviest value. ``seen``, ``shares``: the hashes of
    sampled values, ascending, and their shares.

    >>> Values.from_rows(np.array([7, 7, 9, 7], np.uint64))
    3 of 4 rows have one of 2 values
    """

    distinct: float
    heaviest: float
    rows: int = 0
    seen: Words = field(default_factory=_NONE.copy)
    shares: Doubles = field(default_factory=_NO_SHARES.copy)

    def __post_init__(self) -> None:
        assert self.distinct >= 1, "rows have a value"
        assert 0 < self.heaviest <= 1, "a share"

    def __repr__(self) -> str:
        some, many = self.heaviest * self.rows, self.rows
        return f"{some:.0f} of {many} rows have one of {self.distinct:.0f} values"

    @staticmethod
    def from_rows(hashes: Words) -> Values:
        """Returns the values of at least one row."""
        seen, counts = np.unique(hashes, return_counts=True)
        shares = counts / len(hashes)
        return Values(len(seen), float(shares.max()), len(hashes), seen, shares)

    @staticmethod
    def even(distinct: float) -> Values:
        """Returns values that are equally frequent.

        >>> Values.even(4).heaviest
        0.25
        """
        return Values(distinct, 1 / distinct)

    @staticmethod
    def with_heaviest(distinct: float, heaviest: float) -> Values:
        """Returns values of which one has this share of the rows and the others are equally
        frequent.
        """
        return Values(distinct, max(heaviest, 1 / distinct))

    def busiest(self, partitions: int) -> float:
        """Returns the share of rows in the busiest partition, if rows are partitioned by the
        values.

        >>> Values.even(3).busiest(8), Values.with_heaviest(1000, 0.4).busiest(4) > 0.5
        (0.3333333333333333, True)
        """
        others = 1 - self.heaviest
        return max(
            self.heaviest + others / partitions * (self.distinct > partitions), 1 / partitions
        )


def agreement_probability(one: Values, other: Values) -> float:
    """Returns the probability that a row of each side have the same value.

    It follows from sampled values if there are any. Else the values of one side are assumed to be
    among those of the other, and the heaviest values to be equal.

    >>> agreement_probability(Values.even(10), Values.even(1000))
    0.001
    >>> some, others = np.array([1, 2], np.uint64), np.array([2, 3], np.uint64)
    >>> agreement_probability(Values.from_rows(some), Values.from_rows(others))
    0.25
    """
    if one.rows and other.rows:
        _, a, b = np.intersect1d(one.seen, other.seen, assume_unique=True, return_indices=True)
        probability = float(one.shares[a] @ other.shares[b])
        return max(
            probability, 0.5 / (one.rows * other.rows)
        )  # values outside the samples may agree
    many = max(one.distinct, other.distinct)
    both = one.heaviest * other.heaviest if min(one.distinct, other.distinct) > 1 else 0.0
    rest = (1 - one.heaviest) * (1 - other.heaviest) / max(many - 1, 1)
    return max(both + rest, 1 / many)


class RowStatistics(NamedTuple):
    """The statistics of rows: their rate for a second of event time, and their values by variable
    or column.
    """

    rate: float
    values: Mapping[str, Values]


Run = tuple[int, int]
"""The number of triples or rows read of a stream, and their last event time (ms)."""


class Measures(Protocol):
    """The statistics of streams. ``partitions``: the number of working partitions. A protocol,
    since the planner does not import ``engine.statistics``, which reads files.

    The answers may follow from files and from earlier runs. The planner asks for them when a query
    is planned; the plan contains the resulting choices.
    """

    partitions: int

    def see(self, run: Mapping[str, Run], partitions: int) -> None:
        """Records how much of each stream has been read, and the number of partitions."""

    def triples(self, stream: str, pattern: TriplePattern) -> RowStatistics | None:
        """Returns statistics of the triples of a stream that match a pattern, by its variables."""

    def tuples(self, stream: str) -> RowStatistics | None:
        """Returns statistics of the rows of a tuple stream, by its columns."""
