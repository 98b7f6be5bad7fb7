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
from levada.core.event_time import MAX, MIN
from levada.core.frozen import frozen
from levada.core.query_limits import Memory
from levada.core.size_thresholds import register
from levada.errors import EngineError, ManyReportsError, OverMemoryError

# The limit on how far the next epochs advance, if all reports up to the watermark would be too
# many for one epoch.
#
# A task with too many reports returns the instant up to which they are few enough
# (``ManyReportsError``). Its epoch is not run. The next epochs end at that instant, make their
# reports, and read nothing new until the watermark has reached the completeness of the streams.
# Smaller epochs would have done the same, so no result depends on the limit. Only the watermarks
# are persistent.


@frozen
class ReportBacklog:
    """A limit in event time. ``until``: the next epoch advances no further. ``width``: the time
    that such an epoch covers. ``end``: the end of the reports that are too many, after which no
    limit is known to be necessary.

    >>> limit = ReportBacklog().shortened_to(ManyReportsError("", until=1000, width=100, end=1300))
    >>> following = limit.for_next_epoch(behind=True)
    >>> [limit.until, following.until, following.for_next_epoch(behind=True)]
    [1000, 1125, ReportBacklog(until=1281, width=156, end=1300)]
    """

    until: int = MAX
    width: int = 0
    end: int = MIN

    def shortened_to(self, error: ManyReportsError) -> ReportBacklog:
        """Returns the limit after a task has said where an epoch must end."""
        return ReportBacklog(error.until, error.width, max(self.end, error.end))

    def for_next_epoch(self, *, behind: bool) -> ReportBacklog:
        """Returns the limit of the next epoch. ``behind``: the last one stopped before the
        completeness of the streams. The width that fits grows by a quarter.
        """
        width = self.width + max(self.width // 4, 1)
        if not behind or self.end - self.until <= width:
            return ReportBacklog()
        return ReportBacklog(self.until + width, width, self.end)


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
