"""Limits the elements of the next epoch so that the rows in its tasks fit into ``--memory``.
Admission follows from what the engine can sustain (BriskStream, B6).

A task counts the bytes of its rows. A task with too many raises ``OverMemoryError``. Its epoch is
dropped, and the next epochs are smaller by the same factor. They grow again as tasks report their
peaks. If few elements are too many, rows that wait for a watermark fill the memory: then the next
epochs end earlier in event time (``ReportBacklog``). If a single instant is too large, the engine
ends with a sentence. No result depends on the size of an epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from levada.checkpoint.epoch_context import TaskOutcome
from levada.connectors.sources.splits import AnyReference
from levada.core.query_limits import Memory
from levada.core.size_thresholds import register
from levada.errors import EngineError, ManyReportsError, OverMemoryError
from levada.runtime.driver.report_backlog import ReportBacklog

FILLED = 0.75
"""How much of the memory the next epoch is to fill."""
GROWTH = 2
START = 500
"""Bytes that tasks are thought to hold for an element, before it is known."""
MIN_EPOCH_ELEMENTS = register(f"{__name__}.MIN_EPOCH_ELEMENTS", 64)
"""Elements: where so few are too many it is not for their number."""

TooLarge = ManyReportsError | OverMemoryError
"""The errors of a task whose epoch must become smaller."""


@dataclass(slots=True)
class MemoryAdmission:
    """Limits epochs by memory. ``memory``: bytes of a task. ``rows``: the most elements of the next
    epoch (0: no limit).

    >>> room = MemoryAdmission(Memory.parse("600MB"))
    >>> room.record_excess(1000, OverMemoryError("", held=200_000_000))
    True
    >>> room.admit(1000)
    375
    """

    memory: Memory = field(default_factory=Memory)
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        self.rows = max(self.memory.most // START, MIN_EPOCH_ELEMENTS) if self.memory.bytes else 0

    def admit(self, rows: int) -> int:
        """Returns ``rows``, or as many as fit."""
        return min(rows, self.rows) if self.rows else rows

    def see(self, references: Sequence[AnyReference], done: Sequence[TaskOutcome]) -> None:
        """Records the input of an epoch and the peak bytes that its tasks reported."""
        if not self.rows:
            return
        elements = sum(r.elements for r in references)
        held = max((d.peak_bytes for d in done), default=0)
        if elements:
            fits = int(elements * FILLED * self.memory.most / max(held, 1))
            self.rows = max(min(fits, GROWTH * max(elements, self.rows)), MIN_EPOCH_ELEMENTS)

    def record_excess(self, elements: int, error: OverMemoryError) -> bool:
        """Notes that so many elements were too many for a task. Returns False if elements were not
        the cause.
        """
        if elements <= MIN_EPOCH_ELEMENTS:
            return False
        fits = int(elements * FILLED * self.memory.most / max(error.held, 1))
        self.rows = max(min(fits, elements // 2), MIN_EPOCH_ELEMENTS)
        return True


def smaller(
    limit: ReportBacklog, error: TooLarge, references: Sequence[AnyReference], room: MemoryAdmission
) -> ReportBacklog:  # fmt: skip
    """Returns the limit of the epochs that follow one that was too large. Raises ``EngineError`` if
    no epoch can be smaller.
    """
    if isinstance(error, ManyReportsError):
        return limit.shortened_to(error)
    if room.record_excess(sum(r.elements for r in references), error):
        return limit
    if error.middle is None:
        raise EngineError(
            f"{error.message} No epoch can be smaller.",
            hint="Give tasks more with --memory, or ask for less in one report.",
        )
    where = {"until": error.middle, "width": error.width, "end": error.end}
    return limit.shortened_to(ManyReportsError(error.message, **where))
