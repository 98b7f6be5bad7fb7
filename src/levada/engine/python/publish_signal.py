"""What waits for results hears of them: a bell rings when an epoch is published, and when the
engine starts or is closed.

Threads wait with ``wait``, asyncio with ``heard``. That a query is taken out, or that epochs have
ended, does not ring: who waits looks again after ``LOOK`` seconds at the latest.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

LOOK = 0.05  # s


class PublishSignal:
    """Of one engine."""

    def __init__(self) -> None:
        self._rung = threading.Condition()
        self._count = 0
        self._hearers: set[Callable[[], object]] = set()

    @property
    def count(self) -> int:
        """How often it has rung."""
        return self._count

    def ring(self, _: object = None) -> None:
        """Wakes all that wait."""
        with self._rung:
            self._count += 1
            self._rung.notify_all()
            hearers = list(self._hearers)
        for hearer in hearers:
            with suppress(RuntimeError):  # its event loop is closed
                hearer()

    def wait(self, heard: int, timeout: float = LOOK) -> None:
        """Until it has rung more often than ``heard``, or the time is over."""
        with self._rung:
            self._rung.wait_for(lambda: self._count > heard, timeout)

    @asynccontextmanager
    async def heard(self) -> AsyncIterator[asyncio.Event]:
        """An event of this event loop that each ring sets."""
        loop, event = asyncio.get_running_loop(), asyncio.Event()

        def hear() -> None:
            loop.call_soon_threadsafe(event.set)

        with self._rung:
            self._hearers.add(hear)
        try:
            yield event
        finally:
            with self._rung:
                self._hearers.discard(hear)


async def set_or_later(event: asyncio.Event, timeout: float = LOOK) -> None:
    """Until the event is set, or the time is over; it is cleared."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), timeout)
    event.clear()
