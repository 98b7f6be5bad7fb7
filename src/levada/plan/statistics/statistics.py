"""What is known of rows before they are joined: how many there are, and how their values are spread
(CQELS Cloud, C26 and C27).

``Values`` are of one variable: how many distinct ones, and which share of the rows has the heaviest
of them. Where rows have been looked at it also has each value that was seen, as a hash, with its
share: how often rows of two parts agree then follows from both, also if most values of one are
strange to the other.

Figures are no promise: no result depends on them.
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
    """The values of a variable. ``heaviest``: the share of the rows that has the heaviest one.
    ``seen``, ``shares``: hashes that were seen, in order, and their shares.

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
        """The values of some rows, at least one."""
        seen, counts = np.unique(hashes, return_counts=True)
        shares = counts / len(hashes)
        return Values(len(seen), float(shares.max()), len(hashes), seen, shares)

    @staticmethod
    def even(distinct: float) -> Values:
        """So many values, each as often as the others.

        >>> Values.even(4).heaviest
        0.25
        """
        return Values(distinct, 1 / distinct)

    @staticmethod
    def skewed(distinct: float, heaviest: float) -> Values:
        """So many values, of which one has this share of the rows and the others are even."""
        return Values(distinct, max(heaviest, 1 / distinct))

    def busiest(self, partitions: int) -> float:
        """The share of the rows in the busiest of so many partitions, if these are by the values.

        >>> Values.even(3).busiest(8), Values.skewed(1000, 0.4).busiest(4) > 0.5
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
        return max(probability, 0.5 / (one.rows * other.rows))  # what was not seen may be
    many = max(one.distinct, other.distinct)
    both = one.heaviest * other.heaviest if min(one.distinct, other.distinct) > 1 else 0.0
    rest = (1 - one.heaviest) * (1 - other.heaviest) / max(many - 1, 1)
    return max(both + rest, 1 / many)


class RowStatistics(NamedTuple):
    """What was seen of rows: how many come in a second of event time, and their values by variable
    or column.
    """

    rate: float
    values: Mapping[str, Values]


Run = tuple[int, int]
"""Of a stream: how many triples or rows have been read, up to which event time (ms)."""


class Measures(Protocol):
    """What is known of streams. ``partitions``: so many work.

    Its answers may follow from files and from what has run; they are asked for when a query is
    planned, and what is chosen by them stands in the plan.
    """

    partitions: int

    def see(self, run: Mapping[str, Run], partitions: int) -> None:
        """What has been read of each stream by now, and over how many partitions epochs go."""

    def triples(self, stream: str, pattern: TriplePattern) -> RowStatistics | None:
        """What is known of the triples of a stream that match a pattern, by its variables."""

    def tuples(self, stream: str) -> RowStatistics | None:
        """What is known of the rows of a tuple stream, by its columns."""
