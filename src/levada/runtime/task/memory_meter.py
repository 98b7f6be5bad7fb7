"""Measures the bytes of rows in a task, if ``--memory`` bounds them.

Counted are rows that wait for operators, and the output of operators: columns of frames, in the
task's own memory or in a received blob. The other memory of operators is in proportion to that. So
a task may hold a sixth of its memory (``Memory.most``). A task with more raises ``OverMemoryError``
before the system ends it.

Cost: a look at each frame that waits, and at each output frame; nothing without a bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from levada.core import column_names as col
from levada.core.array_types import Longs
from levada.core.event_time import MAX, MIN, Times
from levada.core.frame import Frame
from levada.core.query_limits import Memory
from levada.errors import OverMemoryError
from levada.operators.windowing.report_times import WatermarkProgress


class MemoryMeter:
    """The present bytes of a task and their ``peak``. ``low``, ``high``: the range of event times
    of its rows.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.peak, self.low, self.high, self.input_bytes = 0, 0, 0, 0

    def begin(self, frames: Sequence[Frame], progress: WatermarkProgress, heard: Longs) -> None:
        """Measures the rows at the beginning of an epoch. Raises ``OverMemoryError``.

        ``progress``: the watermarks of streams, of which ``heard`` are read. A smaller epoch ends
        between those before and after this one; rows of joins may have older times.
        """
        if self.memory.bytes:
            self.low, self.high = _span(frames, progress.old[heard], progress.new[heard])
            self.see(frames, 0, "what it was sent")

    def give(self, frames: Iterable[Frame]) -> None:
        """Notes the input of a node, which no longer waits and is held until the node is done."""
        self.input_bytes = _bytes(frames) if self.memory.bytes else 0

    def see(self, frames: Iterable[Frame], beside: int, whose: str) -> None:
        """Measures the present bytes. ``whose``: the node of the last output. Raises
        ``OverMemoryError``.
        """
        if not self.memory.bytes:
            return
        now = self.input_bytes + beside + _bytes(frames)
        self.peak = max(self.peak, now)
        if now > self.memory.most:
            raise self._memory_error(now, whose)

    def _memory_error(self, now: int, whose: str) -> OverMemoryError:
        middle = (self.low + self.high) // 2
        return OverMemoryError(
            f"A task would hold {now:,} bytes of rows, the last of them of {whose}: more than a "
            f"sixth of its {self.memory.bytes:,} bytes of memory.",
            held=now,
            middle=middle if middle > self.low else None,
            width=max(middle - self.low, 1),
            end=self.high,
        )


def _span(frames: Sequence[Frame], old: Times, new: Times) -> tuple[int, int]:
    """Returns the event times between which a smaller epoch can end; equal ones if there are
    none.
    """
    moves = new > old
    if not moves.any():
        return 0, 0
    times = [f[col.least(0)] for f in frames if f.n and col.least(0) in f]
    low = max(min((int(ts.min()) for ts in times), default=0), int(old[moves].min()))
    ends = new[moves][new[moves] < MAX]
    high = max((int(ts.max()) for ts in times), default=0)
    high = min(high, int(ends.max(initial=MIN))) if len(ends) else high
    if high > low:
        return low, high
    return low, int(ends.max()) if len(ends) else _newest(frames)


def _newest(frames: Iterable[Frame]) -> int:
    """Returns the largest event time of the rows."""
    columns = (f[name] for f in frames if f.n for name in f.columns if name.startswith("lo"))
    return max((int(ts.max()) for ts in columns), default=0)


def _bytes(frames: Iterable[Frame]) -> int:
    return sum(c.nbytes for frame in frames for c in frame.columns.values())
