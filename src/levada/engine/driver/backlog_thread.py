"""The thread that measures an engine's load: the unread input of its streams, the time until all of
it is read, the durations of epochs, and memory.

It measures once in ``INTERVAL``, and rests ``REST`` times as long as a measurement took. Epochs do
nothing for it. Rates are those of the last ``WINDOW``: so a prediction is right once the rates have
been steady for that long, and for as long as they stay so.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import deque
from contextlib import suppress
from typing import NamedTuple

import psutil

from levada.checkpoint.leadership.heartbeat import EPOCH_SECONDS, Load, StreamBacklog
from levada.connectors.sources.unread_input import Unread
from levada.core.clock import CLOCK
from levada.runtime.driver.source_coordinator import SourceCoordinator

INTERVAL = 1.0  # s
REST = 20
WINDOW = 30.0  # s
MEMORY_EVERY = 5.0  # s
ENDING = 4.0  # s


class Sample(NamedTuple):
    """A measurement at an instant of a monotonic clock (s): elements that were read, and those that
    have arrived.
    """

    at: float
    read: int
    arrived: int


class BacklogMeter:
    """The rates of one stream.

    >>> meter = BacklogMeter()
    >>> meter.measure(Unread(1000, None, 7, taken=0), at=0.0).catch_up_seconds
    >>> meter.measure(Unread(500, None, 9, taken=1000), at=10.0)  # doctest: +ELLIPSIS
    StreamBacklog(..., read_per_second=100.0, arriving_per_second=50.0, catch_up_seconds=10.0)
    """

    def __init__(self) -> None:
        self._samples = deque[Sample]()

    def measure(self, unread: Unread, at: float) -> StreamBacklog:
        """Returns the backlog of a stream, given its unread input now (s, monotonic)."""
        waiting, samples = unread.elements, self._samples
        samples.append(Sample(at, unread.taken, unread.taken + (waiting or 0)))
        while at - samples[0].at > WINDOW:
            samples.popleft()
        first, last = samples[0], samples[-1]
        seconds = max(last.at - first.at, 1e-9)
        read = (last.read - first.read) / seconds
        arriving = max(last.arrived - first.arrived, 0) / seconds
        left = 0.0 if waiting == 0 else None
        if waiting and read > arriving:
            left = round(waiting / (read - arriving), 3)
        figures = round(read, 3), round(arriving, 3), left
        return StreamBacklog(unread.elements, unread.size, unread.oldest_ms, *figures)


class BacklogThread:
    """Measures from ``start`` to ``stop``. ``load`` has the last measurements. Epochs append their
    durations (ms) to ``durations``.
    """

    def __init__(self, sourcing: SourceCoordinator) -> None:
        self.load, self.durations = Load(), list[float]()
        self._sourcing, self._meters = sourcing, dict[str, BacklogMeter]()
        self._counts, self._seconds = [0] * (len(EPOCH_SECONDS) + 1), 0.0
        self._memory, self._remembered = (0, 0), -MEMORY_EVERY
        self._stopping, self._lock = threading.Event(), threading.Lock()
        self._is_committed = True  # all sources know what is read
        self._thread = threading.Thread(target=self._go, name="levada backlog", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stops the thread, and measures once more: until all sources know what is read, for at
        most ``ENDING`` seconds.
        """
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        end = time.monotonic() + ENDING
        self.measure()
        while not self._is_committed and time.monotonic() < end:
            time.sleep(INTERVAL / 10)
            self.measure()

    def _go(self) -> None:
        rest = INTERVAL / 10  # the first measurement: soon
        while not self._stopping.wait(rest):
            began = time.monotonic()
            self.measure()
            rest = max(INTERVAL, REST * (time.monotonic() - began))

    def measure(self) -> Load:
        """Measures the load, and returns it."""
        with self._lock:
            self.load = self._measure()
            return self.load

    def _measure(self) -> Load:
        now, backlog = time.monotonic(), dict[str, StreamBacklog]()
        is_committed = True
        for name, source in list(self._sourcing.sources.items()):
            with suppress(KeyError, RuntimeError):  # the loop's thread has changed it meanwhile
                meter = self._meters.setdefault(name, BacklogMeter())
                unread = source.unread(CLOCK())
                backlog[name] = meter.measure(unread, now)
                is_committed &= unread.is_committed
        self._is_committed = is_committed
        self._count_epochs()
        if now - self._remembered >= MEMORY_EVERY:
            self._memory, self._remembered = _memory(), now
        seconds = round(self._seconds, 6)
        return Load(backlog, tuple(self._counts), seconds, *self._memory)

    def _count_epochs(self) -> None:
        durations = self.durations[:]
        del self.durations[: len(durations)]
        for ms in durations:
            self._counts[bisect_left(EPOCH_SECONDS, ms / 1000)] += 1
        self._seconds += sum(durations) / 1000


def _memory() -> tuple[int, int]:
    """Returns the resident bytes of this process, and of its child processes. Pages that several
    processes share count for each.
    """
    this, tasks = psutil.Process(), 0
    for child in this.children(recursive=True):
        with suppress(psutil.Error):
            tasks += child.memory_info().rss
    return this.memory_info().rss, tasks
