"""Predicts the time of an epoch that runs one way, from its work: a line that begins as a guess and
follows measurements.

If epochs were much alike, the slope remains the guess and the level is measured. Each point fades
the older points. So a wrong guess, a busier machine or a growing state is corrected within some
epochs. The first epochs of a process load code and fade faster. Times are in ms.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from levada.runtime.cost_model.least_squares import Line

KEEP = 0.8


def decay_weight(seen: int, most: float) -> float:
    """Returns the weight of the previous epochs when one more is measured. Each epoch counts more
    than those before it, and the mean covers at most ``most`` epochs.

    >>> [round(decay_weight(seen, 0.8), 2) for seen in (1, 2, 3, 20)]
    [0.33, 0.5, 0.6, 0.8]
    """
    return min(seen / (seen + 2), most)


@dataclass(slots=True)
class EpochTimeTrend:
    """A trend of times over work. ``fixed`` and ``each``: the guess.

    >>> trend = EpochTimeTrend(20.0, 1.0)
    >>> trend.predict(100.0)
    120.0
    >>> for _ in range(20):
    ...     trend.learn(100.0, 240.0)
    >>> round(trend.predict(100.0)), round(trend.predict(200.0))
    (240, 340)
    """

    fixed: float
    each: float
    measured: int = 0
    _line: Line = field(default_factory=Line)

    def learn(self, work: float, took: float) -> None:
        """Records the time that an epoch with so much work took."""
        self._line.fade(decay_weight(self.measured, KEEP))
        self.measured += 1
        self._line.add(work, took)

    def line(self) -> tuple[float, float]:
        """Returns the ms of an epoch without work, and the ms for each ms of work."""
        return self._line.fit_damped(self.each) if self.measured else (self.fixed, self.each)

    def predict(self, work: float) -> float:
        """Predicts the time of an epoch with so much work."""
        a, b = self.line()
        return a + b * work
