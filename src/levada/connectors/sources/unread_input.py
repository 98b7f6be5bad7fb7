"""The unread input of a stream: how much there is, and when the oldest of it arrived.

A source notes from time to time where its input ends. The first note behind a position bounds the
arrival of the input there from above, to the time between two notes. Input that was there at the
first note is dated by its source: by the change of a file, or by the time of a message.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from levada.core.frozen import frozen

MAX_NOTES = 4096


@frozen
class Unread:
    """The unread input of a stream. ``elements``: estimated from their mean size if the input is
    files; None before any element was read. ``size``: bytes of files; None of a topic.
    ``oldest_ms``: when the oldest arrived, by the clock (None: nothing is unread). ``taken``:
    elements read so far. ``is_committed``: the source knows that they are read, if it is to know.
    """

    elements: int | None
    size: int | None
    oldest_ms: int | None
    taken: int
    is_committed: bool = True


class ArrivalTimes:
    """Notes of where the input of one partition ended at some instants. Ends are ordered, such as
    offsets.

    >>> times = ArrivalTimes()
    >>> times.note(1000, 5), times.note(2000, 9), times.note(3000, 9)
    (None, None, None)
    >>> times.arrival(2, lambda: 400), times.arrival(6, lambda: 0), times.arrival(9, lambda: 0)
    (400, 2000, None)
    """

    def __init__(self) -> None:
        self._notes: list[tuple[int, Any]] = []
        self._is_first = True  # whether the first note is that of the start

    def note(self, now: int, end: Any) -> None:
        """Notes the end of the input at an instant (ms)."""
        if not self._notes or end > self._notes[-1][1]:
            self._notes.append((now, end))
        if len(self._notes) > MAX_NOTES:
            del self._notes[1:-1:2]

    def arrival(self, position: Any, date: Callable[[], int | None]) -> int | None:
        """Returns when the input after a position arrived (ms); None if nothing follows. ``date``
        dates input that was there at the first note. Forgets notes of input that was read.
        """
        first = bisect_right(self._notes, position, key=itemgetter(1))
        if first == len(self._notes):
            return None
        if first:
            self._is_first = False
            del self._notes[:first]
        noted = self._notes[0][0]
        return min(date() or noted, noted) if self._is_first else noted
