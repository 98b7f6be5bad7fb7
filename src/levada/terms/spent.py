"""What the expressions of one task take in an epoch, by operator: bytes of the texts that they
make, and CPU seconds.

A join with few rows can have expressions that make gigabytes of them, and one regular expression
can take a second for each text. So both are counted where they come about: texts before they are
made, seconds between texts and between pieces of rows. What an operator may take grows with the
rows that have been read, so a backlog, or much static data, is no reason to suspend anybody.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from levada.errors import ExcessError
from levada.model import limits
from levada.model.arrays import Bools, Doubles, Ints, Longs
from levada.model.limits import ELEMENTS, QueryLimits


@dataclass(slots=True)
class _Taken:
    """Of one operator; ``of``: which share of both each member has had, in the order of members."""

    texts: int = 0
    seconds: float = 0.0
    of: Doubles = field(default_factory=lambda: np.zeros(0))

    def blame(self, op: Ints | None, share: Doubles | None) -> None:
        """Rows of these members have taken more, each its share (None: all as much)."""
        if op is not None and len(op):
            each = np.full(len(op), 1 / len(op)) if share is None else share / max(share.sum(), 1)
            new = np.bincount(op, each)
            size = max(len(new), len(self.of))
            self.of = np.pad(self.of, (0, size - len(self.of)))
            self.of[: len(new)] += new

    def worst(self) -> int:
        """The member that has had most; -1 if it is not known."""
        return int(self.of.argmax()) if len(self.of) else -1


@dataclass(slots=True)
class Spent:
    """``limits``: how many bytes an operator may make and seconds take (0: as many as it will), for
    ``ELEMENTS`` of the ``rows`` that the task has read or got; ``turn``: whose turn it is.

    >>> Spent(QueryLimits(texts=1000, cpu=5), 250_000).texts
    2500
    """

    limits: QueryLimits = field(default_factory=QueryLimits)
    rows: int = 0
    clock: Callable[[], float] = time.thread_time
    turn: int = -1
    _of: dict[int, _Taken] = field(default_factory=dict)

    @property
    def texts(self) -> int:
        """The bytes that an operator may make."""
        return int(self.limits.texts * max(self.rows / ELEMENTS, 1))

    @property
    def seconds(self) -> float:
        """The seconds that it may take."""
        return self.limits.cpu * max(self.rows / ELEMENTS, 1)

    def account(self, op: Ints | None = None) -> Account:
        """That of the operator whose turn it is; ``op``: the members of its rows."""
        taken = self._of.setdefault(self.turn, _Taken())
        return Account(self, taken, op, self.clock())


@dataclass(slots=True)
class Account:
    """What an operator has taken, and whose rows it looks at (``op``; None: that is not known)."""

    spent: Spent
    taken: _Taken
    op: Ints | None
    began: float

    def at(self, rows: Longs) -> Account:
        """The same at these rows alone."""
        if self.op is None or len(self.op) == len(rows):
            return self
        return Account(self.spent, self.taken, self.op[rows], self.began)

    def make(self, sizes: Longs) -> Bools:
        """Which of these texts that are to be made are too long, from the bytes that each would
        have. Raises ``ExcessError`` if the others are too many.

        >>> Spent(QueryLimits(texts=100)).account().make(np.array([40, 50])).tolist()
        [False, False]
        """
        too_long: Bools = sizes > limits.LONGEST_TEXT
        made = np.where(too_long, 0, sizes).astype(np.float64)
        own = self.op is not None and len(self.op) == len(sizes)
        self.taken.blame(self.op, made if own else None)
        self.add(int(made.sum()))
        return too_long

    def add(self, size: int) -> None:
        """So many more bytes of texts. Raises ``ExcessError`` if they are too many."""
        taken, most = self.taken, self.spent.texts
        taken.texts += size
        if 0 < most < taken.texts:
            raise ExcessError(
                f"An operator would compute texts of more than {most:,} bytes in one epoch.",
                limit="texts",
                member=taken.worst(),
            )

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Counts the time of what is done within. Raises ``ExcessError`` if it was too much."""
        self.began = self.spent.clock()
        yield
        took = self.spent.clock() - self.began
        self.taken.blame(self.op, None)
        self.taken.seconds += took
        self.began = self.spent.clock()
        self.look()

    def look(self) -> None:
        """Raises ``ExcessError`` if the time is over."""
        most = self.spent.seconds
        if 0 < most < self.taken.seconds + self.spent.clock() - self.began:
            self.taken.blame(self.op, None)
            raise ExcessError(
                f"The expressions of an operator would take more than {most:g} s of CPU "
                "in one epoch.",
                limit="cpu",
                member=self.taken.worst(),
            )


def nobody() -> Account:
    """An account without limits, for what no operator evaluates."""
    return Spent(QueryLimits(texts=0, cpu=0)).account()
