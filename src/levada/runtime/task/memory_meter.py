"""The bytes of rows that a task holds, where ``--memory`` bounds them.

Counted is what waits for operators, and what they have put out: columns of frames, whether they are
a task's own or lie in a blob that it was sent. What operators need beside is in proportion to that;
so a task may hold a sixth of its memory (``Memory.most``). One that would hold more raises
``OverMemoryError`` before the system ends it.

Cost: a look at each frame that waits, for each that is put out; nothing without a bound.
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
    """What a task holds and held at most (``peak``); ``low``, ``high``: between which event times
    its rows are.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.peak, self.low, self.high, self.input_bytes = 0, 0, 0, 0

    def begin(self, frames: Sequence[Frame], progress: WatermarkProgress, heard: Longs) -> None:
        """Looks at the rows that an epoch begins with. Raises ``OverMemoryError``.

        ``progress``: the watermarks of streams, of which ``heard`` are read. A smaller epoch ends
        between those before and after this one; rows of joins may have older times.
        """
        if self.memory.bytes:
            self.low, self.high = _span(frames, progress.old[heard], progress.new[heard])
            self.see(frames, 0, "what it was sent")

    def give(self, frames: Iterable[Frame]) -> None:
        """Notes what a node is given, which waits no more and is held until it is done."""
        self.input_bytes = _bytes(frames) if self.memory.bytes else 0

    def see(self, frames: Iterable[Frame], beside: int, whose: str) -> None:
        """What is held now; ``whose``: who put it out last. Raises ``OverMemoryError``."""
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
    """The event times between which a smaller epoch can end; equal ones if there are none."""
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
    """The greatest event time of any part of the rows."""
    columns = (f[name] for f in frames if f.n for name in f.columns if name.startswith("lo"))
    return max((int(ts.max()) for ts in columns), default=0)


def _bytes(frames: Iterable[Frame]) -> int:
    return sum(c.nbytes for frame in frames for c in frame.columns.values())
