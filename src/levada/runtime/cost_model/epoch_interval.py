"""Determines the least time between the starts of two epochs. Users may set it; otherwise it is the
shortest time that keeps the fixed cost of epochs below half a core.

The fixed cost is the CPU time of an epoch without elements: of this process, and of the tasks and
Spark's JVM if they run elsewhere. A line over the elements of epochs separates the fixed cost from
the cost of elements (``epoch_time_trend``). Times are in ms.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from levada.runtime.cost_model.epoch_time_trend import EpochTimeTrend

SHARE = 0.5
"""The part of a core that the fixed cost of epochs may take."""
SHORTEST, LONGEST = 20.0, 1000.0
FIXED, EACH = 10.0, 0.001
"""The guess: of an epoch, and of an element."""
MAX_RATIO = 3.0
"""An epoch counts as at most so many times its prediction, since something else held it up."""
FIRST_RATIO = 20.0
FIRST_EPOCHS = 8


@dataclass(slots=True)
class Interval:
    """The interval between epochs. ``setting``: the time that a user has set; None: by the cost.

    >>> interval = Interval(None)
    >>> interval.ms
    20.0
    >>> for _ in range(40):
    ...     interval.learn(1_000, 46.0)
    >>> round(interval.ms)
    90
    >>> Interval(1_000).ms
    1000.0
    """

    setting: float | None
    _cpu: EpochTimeTrend = field(default_factory=lambda: EpochTimeTrend(FIXED, EACH))

    @property
    def ms(self) -> float:
        """The least time from the start of an epoch to the start of the next."""
        if self.setting is not None:
            return float(self.setting)
        return min(max(self.cost / SHARE, SHORTEST), LONGEST)

    @property
    def cost(self) -> float:
        """The CPU time of an epoch without elements."""
        return max(self._cpu.line()[0], 0.0)

    @property
    def measured_cost(self) -> float:
        """The CPU time of an epoch without elements; 0.0 until an epoch has been measured."""
        return self.cost if self._cpu.measured else 0.0

    def learn(self, elements: int, cpu: float) -> None:
        """Records the CPU time of an epoch of so many elements."""
        ratio = MAX_RATIO if self._cpu.measured >= FIRST_EPOCHS else FIRST_RATIO
        self._cpu.learn(elements, min(cpu, ratio * max(self._cpu.predict(elements), FIXED)))
