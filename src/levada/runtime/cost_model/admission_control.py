"""Limits the elements of the next epoch: to a given number and, with a ``delay``, to as many as let
results arrive within it. Admission follows from what the engine can sustain (Zhang et al., SIGMOD
2019, section 2).

An element waits until the epoch before its own is over, or until the next epoch may start (the
``interval``), and then for its own epoch:

    max(T, interval) + T + ASKED <= delay

T is the predicted time of an epoch, from the look for input to the publication. It is the sum of
its job (one line over elements for each way that the job may run, ``ParallelismPolicy.ways``) and
of the driver's work beside it (a line that follows measurements). Time that epochs took beyond the
prediction counts for a while (``worst``), since the slow epochs break a delay. Under a backlog each
epoch is as large as it may be, and elements wait in a queue that small epochs make longer: there
the usual excess counts instead. A measurement outranks a prediction: if n elements took t ms, then
k n elements take k t ms at most, because any epoch has a fixed cost. So under a backlog an epoch is
the largest that keeps the delay.

If no epoch is short enough, the fixed cost of an epoch exceeds the delay. Then an epoch may take
twice its fixed cost, so that half of the time is work. No result depends on the size of an epoch.
Times are in ms. Cost: nothing without a delay.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from levada.checkpoint.manifest import Delayed
from levada.core.count_text import count_text
from levada.runtime.cost_model.epoch_time_trend import EpochTimeTrend
from levada.runtime.cost_model.memory_admission import MemoryAdmission

ASKED = 20.0
"""ms until it is asked again whether an epoch is due."""
MIN_EPOCH_ELEMENTS = 100
"""Elements that an epoch may always have."""
START = 10_000
"""Elements, as long as nothing is known."""
GROWTH = 4
"""Times the largest epoch so far: how far a line is believed beyond what it was drawn through."""
SLACK = 0.98
"""The share of the time beyond the prediction that still counts an epoch later."""
USUAL = 0.2
"""How much an epoch counts in how long they usually take, against what was predicted."""
QUEUE = 8
"""Full epochs, less those that were not, that count at most as a queue."""
MOST_OFF = 2.0
"""Times what was predicted: what an epoch counts at most."""
SURE = 8
"""Epochs before it is said that none keeps the delay."""


class LinearCost(NamedTuple):
    """The time of an epoch that runs one way: ms of any epoch, ms for each element, for at most so
    many elements.
    """

    fixed: float
    each: float
    most: int

    def max_elements_within(self, ms: float) -> int:
        """Returns the most elements that fit into a time; -1: not even none.

        >>> costs = LinearCost(20.0, 0.01, 100_000), LinearCost(20.0, 0.01, 100)
        >>> costs[0].max_elements_within(120.0), costs[1].max_elements_within(10.0)
        (10000, -1)
        """
        if ms < self.fixed:
            return -1
        return self.most if self.each * self.most <= ms - self.fixed else int(
            (ms - self.fixed) / self.each
        )  # fmt: skip


@dataclass(slots=True)
class Admission:
    """Decides how many elements the next epoch may have. ``most``: elements of any epoch.
    ``delay``: the time within which results are to arrive (0: no limit). ``interval``: the least
    time between the starts of two epochs. ``room``: the elements that fit into the memory of tasks.
    ``rows``: the limit of the next epoch.

    >>> admission = Admission(1_000_000, delay=250, interval=0)
    >>> admission.rows
    10000
    >>> for _ in range(20):
    ...     admission.see(10_000, 40.0, 30.0, [LinearCost(20.0, 0.001, 1_000_000)])
    >>> 35_000 < admission.rows <= 40_000
    True
    """

    most: int
    delay: int = 0
    interval: int = 0
    room: MemoryAdmission = field(default_factory=MemoryAdmission)
    rows: int = field(init=False)
    keeps: bool = field(init=False, default=True)
    _beside: EpochTimeTrend = field(init=False)
    _worst: float = field(init=False, default=1.0)
    _usual: float = field(init=False, default=1.0)
    # epochs with all elements they may have, minus others
    _full: int = field(init=False, default=0)
    _largest: int = field(init=False, default=0)
    _epochs: int = field(init=False, default=0)
    _expected: float = field(init=False, default=0.0)
    _has_warned: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.rows = min(START, self.most) if self.delay else self.most
        self._beside = EpochTimeTrend(10.0, 0.1)  # over thousands of elements

    @property
    def budget(self) -> float:
        """The time that an epoch may take; negative if the interval alone is too long."""
        left = self.delay - ASKED
        return min(left / 2, left - self.interval)

    @property
    def admitted_elements(self) -> int:
        """The elements of the next epoch that also fit into the memory of tasks."""
        return self.room.admit(self.rows)

    def see(self, elements: int, took: float, job: float, ways: Sequence[LinearCost]) -> None:
        """Records an epoch: its elements, the time that it ``took``, the time of its ``job``, and
        the costs of the next job by the ways that it may run ([]: unknown).
        """
        if not self.delay:
            return
        self._epochs += 1
        self._largest = max(self._largest, elements)
        full = elements >= self.rows
        self._full = min(self._full + 1, QUEUE) if full else max(self._full - 1, 0)
        beside = self._beside.predict(elements / 1e3)
        self._beside.learn(elements / 1e3, min(max(took - job, 0.0), MOST_OFF * beside))
        if ways:
            self._compare(took, min(w.fixed + w.each * elements for w in ways) + beside)
            most = min((w.most for w in ways if w.most >= elements), default=0)
            elements_in_time = min(elements * self.budget / max(took, 1.0), most)
            self._decide([self._whole(way) for way in ways], int(elements_in_time))

    def _compare(self, took: float, expected: float) -> None:
        off = min(took / max(expected, 1.0), MOST_OFF)
        self._worst = max(off, 1.0 + (self._worst - 1.0) * SLACK)
        self._usual += (max(off, 1.0) - self._usual) * USUAL

    @property
    def _off(self) -> float:
        """The factor between the time that an epoch may take and its prediction."""
        beyond = max(self._worst - self._usual, 0.0)
        return self._usual + beyond / (1 + self._full)

    def _whole(self, way: LinearCost) -> LinearCost:
        """Returns the longest time from the look for input to the publication, for one way."""
        fixed = self._beside.predict(0.0)
        each = (self._beside.predict(1e3) - fixed) / 1e6
        return LinearCost(
            (way.fixed + fixed) * self._off, (way.each + each) * self._off, way.most
        )  # fmt: skip

    def _decide(self, ways: Sequence[LinearCost], elements: int) -> None:
        """Sets the limit of the next epoch. ``elements``: the elements that keep the delay, judged
        by the time of the last epoch.
        """
        least = min(MIN_EPOCH_ELEMENTS, self.most)
        floor = min(way.fixed for way in ways)
        fits = max(elements, *(way.max_elements_within(self.budget) for way in ways))
        self.keeps = fits >= least
        if not self.keeps:
            fits = max(way.max_elements_within(2 * floor) for way in ways)
        far = max(START, GROWTH * self._largest)
        self.rows = max(min(fits, self.most, far), least)
        whole = min(w.fixed + w.each * self.rows for w in ways if w.most >= self.rows)
        self._expected = max(whole, self.interval) + whole + ASKED
        if not (delay_status := self._status()).is_met and not self._has_warned:
            self._has_warned = True
            warnings.warn(sentence(delay_status), stacklevel=2)

    @property
    def status(self) -> Delayed | None:
        """The state of the delay for status reports; None without a delay."""
        return self._status() if self.delay else None

    def _status(self) -> Delayed:
        return Delayed(self.delay, self.rows, self._expected, self.keeps or self._epochs < SURE)


def sentence(status: Delayed) -> str:
    """Describes how a delay is kept.

    >>> print(sentence(Delayed(250, 80_000, 240.0)))
    Results are to come within 250 ms: epochs have up to 80,000 elements, which wait up to 240 ms.
    >>> print(sentence(Delayed(30, 1_000, 64.0, False)))  # doctest: +ELLIPSIS
    Results are to come within 30 ms, and no epoch is that short: ... of up to 1,000 ... 64 ms.
    """
    rows, ms = count_text(status.epoch_rows, "element"), f"{status.expected_wait_ms:,.0f} ms"
    head = f"Results are to come within {status.delay_ms:,} ms"
    if not status.is_met:
        return f"{head}, and no epoch is that short: with epochs of up to {rows} they take {ms}."
    if not status.expected_wait_ms:
        return f"{head}: epochs have up to {rows} until it is known what these take."
    return f"{head}: epochs have up to {rows}, which wait up to {ms}."
