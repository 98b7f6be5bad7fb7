"""What epochs have cost, operator by operator: rows in and CPU time of each, rows and bytes of each
edge.

An operator is a node of the plan, or one of what stands around the nodes of a stage: ``read S``
(files, parsing, elements and their times) and ``around i`` (stage i's receiving, sending, state and
results; 0 is the intake). So what all of them take is what a task takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import thread_time_ns

from levada.core.frame import Frame

Name = int | str
"""A node by its number, or what is no node."""


@dataclass(slots=True)
class Work:
    """Rows in and ns, of one operator in one epoch; rows out."""

    rows: int = 0
    ns: int = 0
    out: int = 0


@dataclass(slots=True)
class Sent:
    """Rows and bytes that an operator got from another."""

    rows: int = 0
    bytes: int = 0


@dataclass(slots=True)
class EpochWork:
    """One epoch: elements read, what each operator did, and got from others; what the driver
    took beside.
    """

    elements: int = 0
    driver: int = 0  # ns of the driver's side
    work: dict[Name, Work] = field(default_factory=dict)
    edges: dict[tuple[Name, Name], Sent] = field(default_factory=dict)

    @property
    def ns(self) -> int:
        """What its tasks took."""
        return sum(work.ns for work in self.work.values())


class Recorder:
    """Gathers epochs."""

    def __init__(self) -> None:
        self.epochs: list[EpochWork] = []
        self.now = EpochWork()
        self.counted = 0
        """ns of this epoch that operators have: what is timed around these leaves it out."""

    @contextmanager
    def time_operator(self, name: Name, rows: int = 0) -> Iterator[Work]:
        """An operator's work, but for that of others within."""
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
        """Rows have come along an edge."""
        edge = self.now.edges.setdefault((producer, consumer), Sent())
        edge.rows += frame.n
        edge.bytes += sum(column.nbytes for column in frame.columns.values())

    def take(self, node: Name, inputs: Sequence[int], frames: Sequence[Frame | None]) -> int:
        """The rows that a node gets from each of its inputs; how many there are."""
        for producer, frame in zip(inputs, frames, strict=False):
            if frame is not None:
                self.sent(producer, node, frame)
        return sum(frame.n for frame in frames if frame is not None)

    def end_epoch(self) -> None:
        """The epoch's tasks are done."""
        self.epochs.append(self.now)
        self.now = EpochWork()
