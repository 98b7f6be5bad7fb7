"""What an epoch takes in one of the ways, by the work on its way: a line that begins as a guess and
follows what is measured.

The guess is two points; each measured one lets the older ones fade, so that a wrong guess, a busier
machine or a state that grows is corrected within some epochs. Times are in ms.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from levada.placement.replicas.line import Line

KEEP = 0.8
SMALL, LARGE = 5.0, 500.0
"""Where the guess has its points."""
GUESSED = 0.1
"""What one of them counts beside one that is measured."""


@dataclass(slots=True)
class Trend:
    """``fixed`` and ``each``: the guess.

    >>> trend = Trend(20.0, 1.0)
    >>> trend.at(100.0)
    120.0
    >>> for _ in range(20):
    ...     trend.learn(100.0, 240.0)
    >>> 235 < trend.at(100.0) <= 240
    True
    """

    fixed: float
    each: float
    measured: int = 0
    _line: Line = field(default_factory=Line)

    def __post_init__(self) -> None:
        for x in (SMALL, LARGE):
            self._line.add(x, self.fixed + self.each * x)
        self._line.fade(GUESSED)

    def learn(self, work: float, took: float) -> None:
        """An epoch with so much work on its way took so long."""
        self.measured += 1
        self._line.fade(KEEP)
        self._line.add(work, took)

    def at(self, work: float) -> float:
        """What an epoch with so much work on its way takes."""
        return self._line.at(work)
