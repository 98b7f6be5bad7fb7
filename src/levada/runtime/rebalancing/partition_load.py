"""Measures the load of partitions: of an epoch, from the reports of its tasks, and of a round of
epochs as one measurement.

The paper (Parallel windowed joins) measures how full the buffer of a node is at the end of each
distribution epoch. Here every epoch takes all input, so nothing waits at its end. In place of the
buffer there is a *virtual queue* (W13's own way out): the work that a partition could not have done
in the available time of an epoch,

    q <- max(0, q + seconds - available)

in seconds of that partition's tasks: of CPU, or of elapsed time (``measure``). The queue is at most
the content of a full buffer: so many rows, at the rate of the partition in that epoch, or the work
that an epoch may take. Its *occupancy* is its mean in a round as part of that limit, 0 to 1.

A partition is not a machine: on one machine its tasks run wherever there is room, so waiting times
say nothing about the partition. On a cluster its tasks stay on one executor. Then elapsed time
counts, and a slow executor is relieved.

*available* is the least time between the starts of two epochs or, without one, the elapsed time.
Under a backlog no time is spare: then it is the mean time of the partitions plus a tenth, so a
queue means that a partition is busier than the others by more than that. With elapsed time every
epoch waits for its slowest executor. So the available time is always the mean of the partitions
plus a fifth, and at least plus a twentieth of the time between two epochs (``SLOWER``,
``NOTICEABLE``), since less delays nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from levada.checkpoint.epoch_context import Counted, TaskOutcome, column_of
from levada.core.array_types import Doubles, Longs
from levada.plan.execution.key_group_table import GroupTable
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions, Measure

TOLERANCE = 1.1
"""How much busier than the mean a partition may be before it holds others up."""
SLOWER, NOTICEABLE = 1.2, 0.05
"""How much more elapsed time than the mean a partition may take, and the share of the time between
two epochs that it may take longer in any case."""
FORGET = 0.5
"""The share of the counted rows of groups that stays when they are counted anew."""
COST = 3
"""The cost of an input row that a join stores, in output rows
(docs/decisions/0105-few-share-few-read.md).
"""
ODD = 5
"""Epochs of a round, from which on the longest of each partition is left out of its mean: a kernel
that is loaded, a disk that stalls."""


class Load(NamedTuple):
    """The load of an epoch by partition: elapsed seconds of its stage tasks, CPU seconds, and input
    rows of operators. If rows were counted by group: the rows of each group, and those of joins
    that may divide groups; both as if no group were divided.
    """

    seconds: Doubles
    cpu: Doubles
    rows: Longs
    groups: Longs | None
    joined: Longs | None = None


def load_of(done: Sequence[TaskOutcome], table: GroupTable) -> Load:
    """Returns the load that tasks have reported."""
    seconds, cpu = np.zeros(table.partitions), np.zeros(table.partitions)
    rows = np.zeros(table.partitions, np.int64)
    stages = [d for d in done if d.stage]  # not a reader
    for d in stages:
        seconds[d.partition] += d.seconds
        cpu[d.partition] += d.cpu_seconds
        rows[d.partition] += d.input_rows
    row_counts = _sum([d.rows_by_group for d in stages], table.groups)
    if row_counts is None:
        return Load(seconds, cpu, rows, None)
    joined = _sum([d.divisible_rows for d in stages], table.groups)
    if joined is not None:
        for h in table.division.heavy:  # its rows have arrived at each of these joins
            again = joined[h.group] - joined[h.group] // len(h.parts)
            joined[h.group] -= again
            row_counts[h.group] -= again
    return Load(seconds, cpu, rows, row_counts, joined)


def _sum(counts: Iterable[Counted | None], groups: int) -> Longs | None:
    """Returns the rows of each group; None: nothing was counted."""
    total: Longs | None = None
    for each in counts:
        if each is not None:
            total = np.zeros(groups, np.int64) if total is None else total
            total[column_of(each.groups, 2)] += column_of(each.rows, each.width)
    return total


@dataclass(frozen=True, eq=False)
class Measured:
    """A round by partition: means an epoch of ``seconds`` (CPU or elapsed, by the option), of
    elapsed seconds, CPU seconds, and rows; occupancies. ``groups``: recent input rows of operators
    by group. ``joined``: those of joins that may divide groups (empty: there are none).

    ``available``: seconds that an epoch may take. ``span``: seconds from one start to the next.
    ``hurried``: most epochs began at once because of a backlog. ``epoch``: the next one.
    """

    epoch: int
    seconds: Doubles
    passed: Doubles
    cpu: Doubles
    rows: Doubles
    occupancy: Doubles
    groups: Doubles
    available: float
    span: float
    hurried: bool
    joined: Doubles = field(default_factory=lambda: np.zeros(0))

    @property
    def ratio(self) -> float:
        """The time of the busiest partition by the mean; 1 if all are idle."""
        return ratio_of(self.seconds)

    @property
    def work(self) -> Doubles:
        """Returns the work of each undivided group: rows, of which the input rows of joins that
        keep them count ``COST`` times.
        """
        return self.groups + (COST - 1) * self.joined if len(self.joined) else self.groups.copy()

    def divided_work(self, groups: Longs, parts: Doubles | float) -> Doubles:
        """Returns the work of groups in each of so many partitions that share them: the input of
        joins goes to all, their output is divided.
        """
        whole = float(self.work[groups].sum())
        joined = COST * float(self.joined[groups].sum()) if len(self.joined) else whole
        return np.asarray(joined + (whole - joined) / parts)


def ratio_of(seconds: Doubles) -> float:
    """Returns the maximum by the mean; 1 if all are 0.

    >>> ratio_of(np.array([1.0, 3.0]))
    1.5
    """
    mean = float(seconds.mean())
    return float(seconds.max()) / mean if mean > 0 else 1.0


@dataclass
class Round:
    """The epochs since the last reorganization, and the queues, which continue in the next round.

    ``epochs``: the number of measured epochs.
    """

    partitions: int
    groups: Doubles
    options: BalanceOptions = field(default_factory=BalanceOptions)
    queue: Doubles = field(default_factory=lambda: np.zeros(0))
    loads: list[Load] = field(default_factory=list)
    full: list[Doubles] = field(default_factory=list)
    spans: list[tuple[float, float, bool]] = field(default_factory=list)
    joined: Doubles = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if len(self.queue) != self.partitions:
            self.queue = np.zeros(self.partitions)

    @property
    def epochs(self) -> int:
        """The number of measured epochs."""
        return len(self.loads)

    def add(self, load: Load, span: float, least: float, *, hurried: bool) -> None:
        """Adds an epoch. ``span``: seconds since the start of the previous one; ``least``: the
        least interval (0: none).
        """
        work = self._work(load)
        available = self._available(float(work.mean()), span, least, hurried=hurried)
        room = self._room(load, work, available)
        self.queue = np.clip(self.queue + work - available, 0.0, room)
        self.loads.append(load)
        self.full.append(np.divide(self.queue, room, out=np.zeros_like(room), where=room > 0))
        self.spans.append((available, span, hurried))
        if load.groups is not None:
            self.groups = self.groups * FORGET + load.groups
            before = self.joined if len(self.joined) else np.zeros(len(load.groups))
            self.joined = before * FORGET + (0 if load.joined is None else load.joined)

    def _available(self, mean: float, span: float, least: float, *, hurried: bool) -> float:
        if self.options.measure == Measure.TIME:
            return max(SLOWER * mean, mean + NOTICEABLE * span)
        return TOLERANCE * mean if hurried else least or span

    def _work(self, load: Load) -> Doubles:
        return load.cpu if self.options.measure == Measure.CPU else load.seconds

    def _room(self, load: Load, work: Doubles, available: float) -> Doubles:
        """Returns the seconds of work that fill a buffer of each partition."""
        room = np.full(self.partitions, available)
        if self.options.buffer_rows:
            np.divide(self.options.buffer_rows * work, load.rows, out=room, where=load.rows > 0)
        return room

    def measure(self, epoch: int) -> Measured:
        """Returns the round as one measurement, before an epoch."""
        passed, cpu = (np.array([load[i] for load in self.loads]) for i in (0, 1))
        seconds = np.array([self._work(load) for load in self.loads])
        rows = np.array([load.rows for load in self.loads]).mean(axis=0)
        available, spans, hurried = (np.array(c, np.float64) for c in zip(*self.spans, strict=True))
        return Measured(
            epoch,
            _typical(seconds),
            _typical(passed),
            _typical(cpu),
            rows,
            np.array(self.full).mean(axis=0),
            self.groups,
            float(available.mean()),
            float(spans.mean()),
            bool(hurried.mean() > 0.5),
            self.joined,
        )


def _typical(each: Doubles) -> Doubles:
    """Returns the means of columns; with many rows without the maximum of each."""
    if len(each) < ODD:
        return np.asarray(each.mean(axis=0))
    return np.asarray((each.sum(axis=0) - each.max(axis=0)) / (len(each) - 1))


# Classifies partitions: suppliers are above one threshold of occupancy, consumers below another,
# and neutral ones between (Parallel windowed joins, W14).
#
# Hysteresis: a partition that took groups in the last reorganization gives none in this one, and
# one that gave takes none. So no group oscillates before the effect of the last move is measured.


class Kind(StrEnum):
    """The role of a partition in a reorganization."""

    SUPPLIER = "supplier"
    NEUTRAL = "neutral"
    CONSUMER = "consumer"


def classes(
    occupancy: Doubles, options: BalanceOptions, gave: Collection[int], took: Collection[int]
) -> list[Kind]:
    """Returns the class of each partition. ``gave`` and ``took``: those of the last
    reorganization.
    """
    return [_kind(f, options, p in gave, p in took) for p, f in enumerate(occupancy.tolist())]


def _kind(occupancy: float, options: BalanceOptions, gave: bool, took: bool) -> Kind:
    if occupancy > options.supplier_threshold:
        return Kind.NEUTRAL if took else Kind.SUPPLIER
    if occupancy < options.consumer_threshold:
        return Kind.NEUTRAL if gave else Kind.CONSUMER
    return Kind.NEUTRAL
