"""What an epoch takes in one of the ways, by the work on its way: a line that begins as a guess and
follows what is measured.

Where epochs were much alike the slope is still the guess, and their level is measured. Each point
lets the older ones fade, so that a wrong guess, a busier machine or a state that grows is corrected
within some epochs; those of a beginning, in which a process loads what it needs, fade faster. Times
are in ms.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from levada.runtime.cost_model.least_squares import Line

KEEP = 0.8


def decay_weight(seen: int, most: float) -> float:
    """What is left of so many epochs when one more is seen: as in a mean in which each counts more
    than those before it, and no more than ``most``.

    >>> [round(kept(seen, 0.8), 2) for seen in (1, 2, 3, 20)]
    [0.33, 0.5, 0.6, 0.8]
    """
    return min(seen / (seen + 2), most)


@dataclass(slots=True)
class EpochTimeTrend:
    """``fixed`` and ``each``: the guess.

    >>> trend = EpochTimeTrend(20.0, 1.0)
    >>> trend.at(100.0)
    120.0
    >>> for _ in range(20):
    ...     trend.learn(100.0, 240.0)
    >>> round(trend.at(100.0)), round(trend.at(200.0))
    (240, 340)
    """

    fixed: float
    each: float
    measured: int = 0
    _line: Line = field(default_factory=Line)

    def learn(self, work: float, took: float) -> None:
        """An epoch with so much work on its way took so long."""
        self._line.fade(decay_weight(self.measured, KEEP))
        self.measured += 1
        self._line.add(work, took)

    def line(self) -> tuple[float, float]:
        """ms of an epoch without work, and ms for each of its own."""
        return self._line.fit_damped(self.each) if self.measured else (self.fixed, self.each)

    def predict(self, work: float) -> float:
        """What an epoch with so much work on its way takes."""
        a, b = self.line()
        return a + b * work
