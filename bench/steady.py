"""A measurement goes on until it is steady: *rounds* of the workload, each later in event time.

    folder/warm/s        the warm-up
    folder/000/s         a round, with silence before it, so that windows never reach into another
    folder/end/s         the beginning of one round more: what closes the last windows
    into/s               what a side reads: files are linked there, first those of the warm-up

Rounds are handed to a side while it runs, always some epochs ahead of it, and no more once it is
steady: then it gets the end. So the results of a run are those of the warm-up and as many times
those of a round as were handed out, which is checked.

Warm-up are the elements before the rounds, then all rounds until the CPU of the JVM falls no more
from epoch to epoch (``is_settled``). What counts are the last rounds, as many as have ``EPOCHS``
epochs (or ``LONG`` CPU-seconds, if that is less) and ``LEAST`` CPU-seconds. A side is steady when
the first half of them costs what the second does, to within ``SAME``; it gets no more rounds then.
A side that has had ``MOST`` CPU-seconds, or all rounds that there are, ends as it is and says that
it is not steady; so does one of few rounds, as there are at a small scale.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.measure import Cpu

LEAST = 2.0  # CPU-seconds that count
# the same for a side whose JVM compiles what is hot: no two halves of less are alike but by chance
LEAST_JVM = 20.0
MOST = 300.0  # CPU-seconds after which a side gets no more rounds
EPOCHS = 30  # that count, or
LONG = 60.0  # CPU-seconds, where so many epochs would take longer
SAME = 0.05  # how far the rows per CPU-second of both halves may be apart
AHEAD = 3  # epochs that are there to be read, while one is at work
SETTLED = 6  # epochs whose median is compared with that of as many before them
FALLS = 0.9  # times the median before: less is a JVM that still compiles
WARM, END = "warm", "end"


def name_of(round_: int) -> str:
    """A round's folder."""
    return f"{round_:03}"


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment between two epochs: rows read, CPU so far, wall clock in s, epochs published."""

    rows: int
    cpu: Cpu
    at: float
    epochs: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """What counts of a run: from one mark to another, by their places."""

    first: int
    last: int
    steady: bool


def find_span(marks: Sequence[Mark], least: float = LEAST, warm: int = 0) -> Span:
    """The last rounds between these marks, as few as are enough, and whether they are steady; all
    behind the first ``warm`` if these are too few.

    >>> told = ((0, 0.0), (10, 3.0), (20, 5.0), (30, 7.04))
    >>> marks = [Mark(rows, Cpu(cpu), 0.0, rows * 2) for rows, cpu in told]
    >>> find_span(marks)
    Span(first=1, last=3, steady=True)
    >>> find_span(marks, warm=2)
    Span(first=2, last=3, steady=False)
    """
    last = len(marks) - 1
    for half in range(1, (last - warm) // 2 + 1):
        begin, middle, end = (marks[last - n * half] for n in (2, 1, 0))
        if _is_long(begin, end, least):
            alike = abs(rate(middle, end) / rate(begin, middle) - 1) <= SAME
            return Span(last - 2 * half, last, alike)
    return Span(min(warm, max(last - 1, 0)), last, False)


def _is_long(begin: Mark, end: Mark, least: float) -> bool:
    """Whether what lies between is enough to count."""
    cpu = (end.cpu - begin.cpu).total
    return cpu >= least and (end.epochs - begin.epochs >= EPOCHS or cpu >= LONG)


def rate(begin: Mark, end: Mark) -> float:
    """Rows per CPU-second between two marks."""
    return (end.rows - begin.rows) / max((end.cpu - begin.cpu).total, 1e-9)


def is_settled(costs: Sequence[float]) -> bool:
    """Whether the costs of epochs fall no more: the median of the last ``SETTLED`` is at least 0.9
    of that of as many before them.

    >>> is_settled([80, 60, 50, 40, 35, 30] + [20] * 6)
    False
    >>> is_settled([21, 20, 22, 20, 19, 20] + [20] * 6)
    True
    """
    if len(costs) < 2 * SETTLED:
        return False
    before, last = (median(costs[-i * SETTLED :][:SETTLED]) for i in (2, 1))
    return last >= FALLS * before


@dataclass
class Supply:
    """Hands rounds to the folders that a side reads. Rows are those of all streams together."""

    folder: Path
    into: Path
    rounds: int  # that there are
    warm: int  # rows of the warm-up
    rows: int  # of a round
    epoch: int  # rows of an epoch
    end: int = 1  # rows of the end that close the last windows
    least: float = LEAST  # CPU-seconds that count
    handed: int = 0
    ended: bool = False

    @classmethod
    def of(cls, given: dict[str, Any], **more: Any) -> Supply:
        """From the arguments that a side was given: as ``Supply(..)``, in JSON."""
        return cls(
            **{**given, **more, "folder": Path(given["folder"]), "into": Path(given["into"])}
        )

    def __post_init__(self) -> None:
        self._hand(WARM)

    @property
    def total(self) -> int:
        """Rows handed out, without the end."""
        return self.warm + self.handed * self.rows

    def is_read(self, read: int) -> bool:
        """Whether nothing more will come."""
        return self.ended and read >= self.total + self.end

    def follow(self, read: int, enough: Callable[[], bool]) -> None:
        """So many rows have been read: hands out what comes next. ``enough``: no more needed."""
        while not self.ended and self.total - read < AHEAD * self.epoch:
            self.ended = self.handed == self.rounds or (self.handed > 0 and enough())
            self._hand(END if self.ended else name_of(self.handed))
            self.handed += not self.ended

    def _hand(self, name: str) -> None:
        """Links the files of a round, in the order of their names, to where they are read."""
        for stream in sorted((self.folder / name).iterdir()):
            (read := self.into / stream.name).mkdir(parents=True, exist_ok=True)
            for path in sorted(stream.iterdir()):
                os.link(path, read / path.name)
