"""Predicts the time of an epoch that runs one way, from its work: a line that begins as a guess and
follows measurements.

If epochs were much alike, the slope remains the guess and the level is measured. Each point fades
the older points. So a wrong guess, a busier machine or a growing state is corrected within some
epochs. The first epochs of a process load code and fade faster. Times are in ms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from levada.core.frozen import frozen

# Fits a line to points that arrive one by one: y = a + b x, by least squares.
#
# The fit keeps six sums and no points. BriskStream's profiles have one constant per operator, and
# name a regression as future work (Zhang et al., SIGMOD 2019, sections 3.1 and 8); here x are rows
# and y is time. A point weighs 1/x: times of many rows vary more, and small epochs separate a from
# b. Neither a nor b is negative: a line that would have a negative one goes through the origin, or
# is level.


BLUR = 0.01
"""By how much x varies (squared, relative) where points and a known slope count alike."""


@dataclass(slots=True)
class Line:
    """The sums over all points so far.

    >>> line = Line()
    >>> for rows in (1, 10, 100):
    ...     line.add(rows, 50.0 + 2.0 * rows)
    >>> a, b = line.fit()
    >>> round(a, 6), round(b, 6), round(line.predict(1000), 6)
    (50.0, 2.0, 2050.0)
    """

    weight: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    points: int = 0

    def add(self, x: float, y: float) -> None:
        """Adds a point."""
        w = 1.0 / max(x, 1.0)
        self.points += 1
        self.weight += w
        self.x += w * x
        self.y += w * y
        self.xx += w * x * x
        self.xy += w * x * y

    def fade(self, keep: float) -> None:
        """Multiplies the weight of all points so far."""
        self.weight *= keep
        self.x *= keep
        self.y *= keep
        self.xx *= keep
        self.xy *= keep

    def fit(self) -> tuple[float, float]:
        """Returns a and b. Without points both are 0. For points at one x the line goes through the
        origin.

        >>> Line().fit()
        (0.0, 0.0)
        """
        if not self.points:
            return 0.0, 0.0
        spread = self.weight * self.xx - self.x * self.x
        if spread <= 1e-9 * self.weight * self.xx:
            return (0.0, self.y / self.x) if self.x else (self.y / self.weight, 0.0)
        b = (self.weight * self.xy - self.x * self.y) / spread
        a = (self.y - b * self.x) / self.weight
        if b < 0.0:
            return self.y / self.weight, 0.0
        return (a, b) if a >= 0.0 else (0.0, self.xy / self.xx)

    def fit_damped(self, slope: float | None = None) -> tuple[float, float]:
        """Returns a and b, with a slope that tends to ``slope`` if the points lie close together
        (None: to that of the line through the origin).

        >>> line = Line()
        >>> for x, y in ((100, 30.0), (101, 28.0), (99, 32.0)):
        ...     line.add(x, y)
        >>> [round(v, 1) for v in line.fit()], [round(v, 1) for v in line.fit_damped(0.1)]
        ([30.0, 0.0], [21.4, 0.1])
        """
        if not self.x or not self.xx:
            return self.fit()
        target = self.y / self.x if slope is None else slope
        known = BLUR * self.xx
        spread = self.xx - self.x * self.x / self.weight
        b = (self.xy - self.x * self.y / self.weight + known * target) / (spread + known)
        a = (self.y - max(b, 0.0) * self.x) / self.weight
        return (a, max(b, 0.0)) if a >= 0.0 else (0.0, self.xy / self.xx)

    def predict(self, x: float) -> float:
        """Returns the y of the line at x."""
        a, b = self.fit()
        return a + b * x


KEEP = 0.8


def decay_weight(measured_epochs: int, most: float) -> float:
    """Returns the weight of the previous epochs when one more is measured. Each epoch counts more
    than those before it, and the mean covers at most ``most`` epochs.

    >>> [round(decay_weight(seen, 0.8), 2) for seen in (1, 2, 3, 20)]
    [0.33, 0.5, 0.6, 0.8]
    """
    return min(measured_epochs / (measured_epochs + 2), most)


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


# Predicts the time of an epoch, as one task or spread over tasks: the model ``epochs`` for a
# running plan (BriskStream's rate model, Zhang et al., SIGMOD 2019, section 3, for barriers).
#
#     alone   all calls one after the other
#     apart   reading, spread over readers; then stage after stage, each as long as its fullest core
#
# Both times are the CPU time on the critical path. A line over them adds Spark's overhead and the
# slowdown of cores that work at once (``epoch_time_trend``). Times are in ms. Cost: linear in the
# stages.


@frozen
class StageLoad:
    """The load of a stage in an epoch: fixed ms of each partition's call, ms of all rows, and the
    share of the rows that the fullest partition has.
    """

    fixed: float
    rows: float
    fullest: float = 1.0


@frozen
class Load:
    """The load of an epoch: ms of reading, and its stages."""

    reading: float
    stages: tuple[StageLoad, ...]


def time_as_one_task(load: Load, partitions: int) -> float:
    """Predicts the time of an epoch that runs as one task.

    >>> time_as_one_task(Load(5.0, (StageLoad(1.0, 10.0, 0.6),)), 2)
    17.0
    """
    return load.reading + sum(partitions * stage.fixed + stage.rows for stage in load.stages)


def time_as_many_tasks(load: Load, partitions: int, cores: int, readers: int) -> float:
    """Predicts the time of an epoch with a task for each partition and so many readers. The busiest
    core has the fullest partition, or its share of all.

    >>> time_as_many_tasks(Load(5.0, (StageLoad(1.0, 10.0, 0.6),)), 2, 2, 1)
    12.0
    """
    waves = math.ceil(partitions / cores)
    share = 1.0 / min(cores, partitions)
    return load.reading / max(min(readers, cores), 1) + sum(
        waves * stage.fixed + stage.rows * max(stage.fullest, share) for stage in load.stages
    )


def over_partitions(load: Load, now: int, partitions: int) -> Load:
    """Scales a load to another number of partitions. The fullest partition keeps its excess over
    its share.

    >>> over_partitions(Load(5.0, (StageLoad(1.0, 10.0, 0.6),)), 2, 4).stages[0].fullest
    0.3
    """
    return replace(
        load,
        stages=tuple(
            replace(stage, fullest=min(stage.fullest * now / partitions, 1.0))
            for stage in load.stages
        ),
    )


# Determines the least time between the starts of two epochs. Users may set it; otherwise it is the
# shortest time that keeps the fixed cost of epochs below half a core.
#
# The fixed cost is the CPU time of an epoch without elements: of this process, and of the tasks and
# Spark's JVM if they run elsewhere. A line over the elements of epochs separates the fixed cost
# from the cost of elements (``epoch_time_trend``). Times are in ms.


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
