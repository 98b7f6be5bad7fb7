"""Chooses how an epoch runs, by cost: as one task, or spread over tasks.

One task is used while it keeps up with the input and with the promised delay. Otherwise the epoch
is spread if that is clearly faster (``FASTER``) and costs less. Its time and the CPU time of all
processes, including the JVM, count alike. A shuffle costs Spark's JVM as much CPU as hundreds of
thousands of rows cost a task, and tasks of one host share its memory bus.

On several executors, the state of a single task lies where that task runs. Collecting the state of
spread tasks also has a price (``Pressure.move``). Times are in ms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

ONE, SPREAD = "one_task", "spread"
FASTER = 1.5
"""How many times as fast spread tasks must be to be worth more CPU."""
BUSY = 0.8
"""The share of the time between epochs that the work of one task may fill."""


def _free() -> float:
    return 0.0


@dataclass(frozen=True)
class Pressure:
    """The pressure on an epoch. ``interval``: the ms in which its elements arrived (0: there is
    more input than it reads, so no interval is long enough). ``budget``: the ms that it may take
    (0: any time). ``move`` returns the ms that one task would wait for state on other executors.
    """

    interval: float = 0.0
    budget: float = 0.0
    move: Callable[[], float] = _free


class Cost(NamedTuple):
    """The cost of a way: ms of the epoch, the fixed part of these, and ms of CPU."""

    took: float
    fixed: float
    cpu: float


class Verdict(NamedTuple):
    """The ``way``, why it was chosen, and how many times worse the other is."""

    way: str
    why: str
    worse: float


def choose(single: Cost, spread: Cost, pressure: Pressure) -> Verdict:
    """Chooses the way of an epoch.

    >>> one, spread = Cost(408.0, 20.0, 467.0), Cost(308.0, 60.0, 573.0)
    >>> choose(one, spread, Pressure(interval=1000.0)).why
    'one task keeps up with the input'
    >>> choose(one, spread, Pressure())[:2]
    ('one_task', 'spread over tasks it would be 1.3 times as fast, for 1.2 times the CPU')
    >>> choose(one, spread, Pressure(interval=1000.0, budget=350.0)).why
    'one task would take longer than the delay allows'
    >>> choose(Cost(408.0, 20.0, 467.0), Cost(90.0, 60.0, 573.0), Pressure())[:2]
    ('spread', 'it is 4.5 times as fast as one task, for 1.2 times the CPU')
    """
    ratio, cpu = single.took / max(spread.took, 1e-9), spread.cpu / max(single.cpu, 1e-9)
    if pressure.budget and spread.took < single.took and single.took > pressure.budget:
        return Verdict(SPREAD, "one task would take longer than the delay allows", ratio)
    moved = pressure.move()
    cost_one, cost_spread = single.took + single.cpu + moved, spread.took + spread.cpu
    if moved and cost_one > cost_spread:
        return Verdict(SPREAD, "its state lies on several executors", cost_one / cost_spread)
    if single.took - single.fixed <= BUSY * pressure.interval:
        return Verdict(ONE, "one task keeps up with the input", FASTER * max(1 / ratio, 1.0))
    gain = min(ratio / FASTER, cost_one / max(cost_spread, 1e-9))
    if gain > 1.0:
        why = f"it is {ratio:.1f} times as fast as one task, for {cpu:.1f} times the CPU"
        return Verdict(SPREAD, why, gain)
    why = f"spread over tasks it would be {ratio:.1f} times as fast, for {cpu:.1f} times the CPU"
    return Verdict(ONE, why, 1 / max(gain, 1e-9))
