"""What partitions had to do: the load of an epoch from what its tasks have told, and a round of
epochs as one measurement.

Parallel windowed joins measures how full the buffer of a node is at the end of each distribution
epoch. Here every epoch takes all that came, so nothing waits at its end; in place of the
buffer there is a *virtual queue* (W13's own way out): the work that a partition could not have done
in the time that an epoch may take,

    q <- max(0, q + seconds - available)

in seconds of that partition's tasks: of CPU, or as they passed (``measure``). The queue is at most
what a buffer holds: so many rows, at the rate of the partition in that epoch, or the work that an
epoch may take. Its *occupancy* is how full that was on average in a round, 0 to 1.

A partition is no machine: its tasks run wherever there is room, so how long one waited there says
nothing of the partition. Where tasks are bound to machines it does, and a slow one is relieved.

*available* is the least time between the starts of two epochs, or, if there is none, that which
passed. Where there is a backlog no time is spare: then it is what the partitions take on average,
and a tenth more, so what is a queue is to be busier than the others by more than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from levada.checkpoint.epoch_context import Counted, TaskOutcome, column_of
from levada.core.array_types import Doubles, Longs
from levada.plan.execution.key_group_table import GroupTable
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions, Measure

TOLERANCE = 1.1
"""How much busier than the mean a partition may be before it holds others up."""
FORGET = 0.5
"""What of the rows of groups is left when they are counted anew."""
COST = 3
"""What a row costs that a join is given and keeps, in rows that it puts out
(docs/decisions/0105-few-share-few-read.md).
"""
ODD = 5
"""Epochs of a round, from which on the longest of each partition is left out of its mean: a kernel
that is loaded, a disk that stalls."""


class Load(NamedTuple):
    """An epoch by partition: seconds of its stages' tasks as they passed, of CPU, rows that
    operators were given; rows by group, if they were counted, and those of them that joins were
    given in which groups may be divided: both as they would be if no group were.
    """

    seconds: Doubles
    cpu: Doubles
    rows: Longs
    groups: Longs | None
    joined: Longs | None = None


def load_of(done: Sequence[TaskOutcome], table: GroupTable) -> Load:
    """The load that tasks have told."""
    seconds, cpu = np.zeros(table.partitions), np.zeros(table.partitions)
    rows = np.zeros(table.partitions, np.int64)
    stages = [d for d in done if d.stage]  # not a reader
    for d in stages:
        seconds[d.partition] += d.seconds
        cpu[d.partition] += d.cpu
        rows[d.partition] += d.rows_in
    counted = _sum([d.given for d in stages], table.groups)
    if counted is None:
        return Load(seconds, cpu, rows, None)
    joined = _sum([d.joined for d in stages], table.groups)
    if joined is not None:
        for h in table.division.heavy:  # its rows have come to each of these joins
            again = joined[h.group] - joined[h.group] // len(h.parts)
            joined[h.group] -= again
            counted[h.group] -= again
    return Load(seconds, cpu, rows, counted, joined)


def _sum(counts: Iterable[Counted | None], groups: int) -> Longs | None:
    """Rows of each group; None: nobody has counted."""
    total: Longs | None = None
    for each in counts:
        if each is not None:
            total = np.zeros(groups, np.int64) if total is None else total
            total[column_of(each.groups, 2)] += column_of(each.rows, each.width)
    return total


@dataclass(frozen=True, eq=False)
class Measured:
    """A round by partition: means an epoch of what was taken (``seconds``: of CPU, or passed, as is
    asked for), of seconds that passed, of CPU seconds, of rows; occupancies. ``groups``: the rows
    that operators were given of each group, lately; ``joined``: of which joins in which groups may
    be divided (empty: there are none).

    ``available``: seconds that an epoch may take; ``span``: that passed from one start to the next;
    ``hurried``: most epochs began at once, since there was a backlog. ``epoch``: the next one.
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
        """The time of the busiest partition by the mean one; 1 if nothing took any."""
        return ratio_of(self.seconds)

    @property
    def work(self) -> Doubles:
        """The work of each group, if none is divided: rows, of which those that joins are given
        and keep count ``COST`` times.
        """
        return self.groups + (COST - 1) * self.joined if len(self.joined) else self.groups.copy()

    def divided_work(self, groups: Longs, parts: Doubles | float) -> Doubles:
        """The work of groups in each of so many partitions that share them: what joins are given
        comes to all, what these put out is divided.
        """
        whole = float(self.work[groups].sum())
        joined = COST * float(self.joined[groups].sum()) if len(self.joined) else whole
        return np.asarray(joined + (whole - joined) / parts)


def ratio_of(seconds: Doubles) -> float:
    """The greatest by the mean one; 1 if all are 0.

    >>> ratio_of(np.array([1.0, 3.0]))
    1.5
    """
    mean = float(seconds.mean())
    return float(seconds.max()) / mean if mean > 0 else 1.0


@dataclass
class Round:
    """The epochs since the last reorganization, and the queues, which go on from one to the next.

    ``epochs``: those that were measured.
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
        """How many have been measured."""
        return len(self.loads)

    def add(self, load: Load, span: float, least: float, *, hurried: bool) -> None:
        """One more epoch; ``span``: seconds since the start of the one before, ``least``: the least
        that there are to be (0: any).
        """
        taken = self._work(load)
        available = TOLERANCE * float(taken.mean()) if hurried else least or span
        room = self._room(load, taken, available)
        self.queue = np.clip(self.queue + taken - available, 0.0, room)
        self.loads.append(load)
        self.full.append(np.divide(self.queue, room, out=np.zeros_like(room), where=room > 0))
        self.spans.append((available, span, hurried))
        if load.groups is not None:
            self.groups = self.groups * FORGET + load.groups
            before = self.joined if len(self.joined) else np.zeros(len(load.groups))
            self.joined = before * FORGET + (0 if load.joined is None else load.joined)

    def _work(self, load: Load) -> Doubles:
        return load.cpu if self.options.measure == Measure.CPU else load.seconds

    def _room(self, load: Load, taken: Doubles, available: float) -> Doubles:
        """The seconds of work that a buffer of each partition holds."""
        room = np.full(self.partitions, available)
        if self.options.buffer_rows:
            np.divide(self.options.buffer_rows * taken, load.rows, out=room, where=load.rows > 0)
        return room

    def measure(self, epoch: int) -> Measured:
        """The round as a whole, before an epoch."""
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
    """The means of columns, of many rows without the greatest of each."""
    if len(each) < ODD:
        return np.asarray(each.mean(axis=0))
    return np.asarray((each.sum(axis=0) - each.max(axis=0)) / (len(each) - 1))
