"""A record of the cost of epochs, operator by operator: input rows and CPU time of each, rows and
bytes of each edge.

An operator is a node of the plan, or part of the work around the nodes of a stage. ``read S`` is
files, parsing, elements and their times; ``around i`` is stage i's receiving, sending, state and
results (0 is the intake). So the times of all operators add up to the time of a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import thread_time_ns

from levada.core.frame import Frame

Name = int | str
"""The number of a node, or the name of work around nodes."""


@dataclass(slots=True)
class Work:
    """The input rows, ns and output rows of one operator in one epoch."""

    rows: int = 0
    ns: int = 0
    out: int = 0


@dataclass(slots=True)
class Sent:
    """Rows and bytes from one operator to another."""

    rows: int = 0
    bytes: int = 0


@dataclass(slots=True)
class EpochWork:
    """One epoch: elements read, the work of each operator, rows along edges, and the driver's
    time.
    """

    elements: int = 0
    driver: int = 0  # ns of the driver's side
    work: dict[Name, Work] = field(default_factory=dict)
    edges: dict[tuple[Name, Name], Sent] = field(default_factory=dict)

    @property
    def ns(self) -> int:
        """Returns the ns of the epoch's tasks."""
        return sum(work.ns for work in self.work.values())


class Recorder:
    """The records of epochs."""

    def __init__(self) -> None:
        self.epochs: list[EpochWork] = []
        self.now = EpochWork()
        self.counted = 0
        """ns of this epoch that operators have; the timers around them subtract it."""

    @contextmanager
    def time_operator(self, name: Name, rows: int = 0) -> Iterator[Work]:
        """Times an operator's work, without the work of operators inside it."""
        work = self.now.work.setdefault(name, Work())
        work.rows += rows
        began, before = thread_time_ns(), self.counted
        try:
            yield work
        finally:
            spent = thread_time_ns() - began - (self.counted - before)
            work.ns += spent
            self.counted += spent

    def sent(self, producer: Name, consumer: Name, frame: Frame) -> None:
        """Adds the rows and bytes of a frame to an edge."""
        edge = self.now.edges.setdefault((producer, consumer), Sent())
        edge.rows += frame.n
        edge.bytes += sum(column.nbytes for column in frame.columns.values())

    def take(self, node: Name, inputs: Sequence[int], frames: Sequence[Frame | None]) -> int:
        """Adds the rows that a node receives from its inputs, and returns their number."""
        for producer, frame in zip(inputs, frames, strict=False):
            if frame is not None:
                self.sent(producer, node, frame)
        return sum(frame.n for frame in frames if frame is not None)

    def end_epoch(self) -> None:
        """Ends the record of an epoch and begins the next one."""
        self.epochs.append(self.now)
        self.now = EpochWork()
