"""The limits of an epoch, so that no query can take the memory or the time of all
(docs/semantics.md#limits).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from levada.errors import UsageError, near

MOST_ROWS = 50_000_000
"""The default limit of rows that an operator makes in an epoch."""

MOST_MADE = 2 * 10**9
"""Bytes of the rows that an operator may make in an epoch, unless the engine is told otherwise."""

LONGEST_TEXT = 32 << 20
"""Bytes of one computed text; a longer one is an error, as in an expression that has no value."""

MOST_TEXTS = 1 << 30
"""Bytes of the texts that an operator may compute in an epoch for ``ELEMENTS`` read, unless the
engine is told otherwise.
"""

MOST_CPU = 60
"""CPU seconds that an operator's expressions may take in an epoch for ``ELEMENTS`` read, unless the
engine is told otherwise.
"""

ELEMENTS = 100_000
"""Read in an epoch, from which on more is more for each."""

TOLD = 3
"""The number of reasons of dead letters in one message."""

SIZES = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
"""Bytes, by how users write them."""

SERVED = "bytes=100MB,reports=1000000,made=1GB,rate=2000000,texts=200MB,cpu=3"
"""The default limits of a query of a server."""

_IN_BYTES = ("bytes", "kept", "made", "texts")
_SIZE_TEXT = re.compile(r"(\d{1,18})(B|KB|MB|GB|TB)?")
_COUNT = re.compile(r"(\d{1,18})([kM])?")
_COUNTS = {"k": 10**3, "M": 10**6}


class QueryLimits(msgspec.Struct, frozen=True):
    """The limits of one query; 0: no limit.

    ``rows``: that an operator makes in an epoch. ``solutions``, ``bytes``: of one report, in one
    partition. ``reports``: of the elements that were read at once, also where several epochs make
    them. ``kept``: bytes of its results that are kept for other processes. ``made``: bytes of the
    rows that an operator makes in an epoch, without texts. ``state``: rows that its windows reach.
    ``rate``: report rows for a second of event time. ``texts``: bytes that an operator computes in
    an epoch, ``cpu``: seconds of its expressions in an epoch, both for ``ELEMENTS`` read.
    """

    rows: int = MOST_ROWS
    solutions: int = MOST_ROWS
    bytes: int = 0
    reports: int = 0
    kept: int = 0
    made: int = MOST_MADE
    state: int = 0
    rate: int = 0
    texts: int = MOST_TEXTS
    cpu: int = MOST_CPU

    @staticmethod
    def parse(text: str, rows: int = MOST_ROWS) -> QueryLimits:
        """Parses limits such as ``bytes=100MB,reports=1000000``; a later word overrides an earlier
        one. ``off``: no limit, except that there are at most ``rows`` solutions. Raises
        ``UsageError``.

        >>> QueryLimits.parse("bytes=100MB, reports=1000", rows=500)
        QueryLimits(rows=500, solutions=500, bytes=100000000, reports=1000, kept=0, \
made=2000000000, state=0, rate=0, texts=1073741824, cpu=60)
        """
        values = {"rows": rows, "solutions": rows}
        for part in filter(None, (part.strip() for part in text.split(","))):
            word, _, number = (side.strip() for side in part.partition("="))
            if word not in _WORDS:
                raise UsageError(f"There is no limit {word}.", hint=near(word, _WORDS))
            values[word] = values["rows"] * (word == "solutions")
            if number != "off":
                values[word] = most_of(word, number, sized=word in _IN_BYTES, also=", or off")
        return QueryLimits(**values)

    def tightened_by(self, other: QueryLimits) -> QueryLimits:
        """The lower one of each.

        >>> QueryLimits(bytes=10, kept=5).tightened_by(QueryLimits(bytes=20, reports=3))
        QueryLimits(rows=50000000, solutions=50000000, bytes=10, reports=3, kept=5, \
made=2000000000, state=0, rate=0, texts=1073741824, cpu=60)
        """
        both = {word: (getattr(self, word), getattr(other, word)) for word in ("rows", *_WORDS)}
        return QueryLimits(
            **{word: min(filter(None, two), default=0) for word, two in both.items()}
        )


_WORDS = tuple(word for word in QueryLimits.__struct_fields__ if word != "rows")
_OF_OPERATORS = ("made", "texts", "cpu")
"""Limits that queries share with an operator: no query has such a limit of its own."""


@dataclass
class Limited:
    """The limits of each query: ``all`` for every query, and lower limits of some ``by_query``
    name.
    """

    all: QueryLimits = field(default_factory=QueryLimits)
    by_query: Mapping[str, QueryLimits] = field(default_factory=dict)

    def limits_of_query(self, query: str) -> QueryLimits:
        """Returns the limits of a query."""
        return self.by_query.get(query, self.all)

    def lowest(self, word: str) -> int:
        """Returns the lowest such limit of any query; 0: there is none."""
        every = [getattr(limits, word) for limits in (self.all, *self.by_query.values())]
        return min(filter(None, every), default=0)

    def any(self, word: str) -> bool:
        """Whether some query has this limit."""
        if not self.by_query:
            return bool(getattr(self.all, word))
        return any(getattr(limits, word) for limits in (self.all, *self.by_query.values()))


PAGE = 4096
PARTS = 8
"""The least number of state parts of theta bytes in a task's memory."""


class Memory(msgspec.Struct, frozen=True):
    """The bytes that a task may have of its own, in addition to its program; 0: no limit.
    ``theta``: the bytes from which a state part is large; merges are done in parts of this size.
    """

    bytes: int = 0
    theta: int = 0

    @staticmethod
    def parse(text: str) -> Memory:
        """Parses a text such as ``512MB`` or ``512MB,theta=32MB`` (else a thirty-second of all); ""
        is no limit. Raises ``UsageError``.

        >>> Memory.parse("512MB"), Memory.parse("1GB, theta=8MB")
        (Memory(bytes=512000000, theta=16000000), Memory(bytes=1000000000, theta=8000000))
        """
        if not text:
            return Memory()
        whole, *rest = (part.strip() for part in text.split(","))
        size = most_of("memory", whole, sized=True)
        theta = size // (4 * PARTS)
        for part in rest:
            word, _, number = (side.strip() for side in part.partition("="))
            if word != "theta":
                raise UsageError(
                    f"Memory has no {word or 'empty part'}.", hint=near(word, ["theta"])
                )
            theta = most_of(word, number, sized=True)
        return Memory(size, theta)._check()

    def _check(self) -> Memory:
        if self.theta < PAGE:
            raise UsageError(
                f"theta is {self.theta:,} bytes, less than a page ({PAGE:,}).",
                hint=f"Give a task {4 * PARTS * PAGE:,} bytes or more, or a larger theta.",
            )
        if PARTS * self.theta > self.bytes:
            raise UsageError(
                f"The thresholds are out of order: theta is {self.theta:,} bytes, and memory has "
                f"{self.bytes:,}, where it must have {PARTS} times theta.",
                hint=f"Say for example memory={self.bytes:,} and theta={self.bytes // PARTS:,}.",
            )
        return self

    @property
    def most(self) -> int:
        """The bytes of rows that a task may hold: operators need as many again, some times."""
        return self.bytes // 6


def check_memory(text: str) -> str:
    """The text, if it says how much memory a task may have. Raises ``UsageError``."""
    Memory.parse(text)
    return text


def check_limits(text: str) -> str:
    """The text, if it says limits of one query. Raises ``UsageError``."""
    QueryLimits.parse(text)
    return text


def words_of_limits() -> tuple[str, ...]:
    """Returns the names of the limits that a single query may have.

    >>> words_of_limits()
    ('solutions', 'bytes', 'reports', 'kept', 'state', 'rate')
    """
    return tuple(word for word in _WORDS if word not in _OF_OPERATORS)


def most_of(word: str, text: str, *, sized: bool, also: str = "") -> int:
    """Parses a limit, also with a unit: of bytes, or k and M. Raises ``UsageError``; ``also``:
    further allowed texts for its message.

    >>> most_of("body", "64KB", sized=True), most_of("reports", "10k", sized=False)
    (64000, 10000)
    """
    number = (_SIZE_TEXT if sized else _COUNT).fullmatch(text)
    if number is None or not int(number[1]):
        example = "100MB" if sized else "100k"
        raise UsageError(
            f"The limit {word} is a number above 0{also}, not {text[:40] or 'nothing'}.",
            hint=f"Say for example {word}={example}.",
        )
    return int(number[1]) * (SIZES | _COUNTS)[number[2] or "B"]
