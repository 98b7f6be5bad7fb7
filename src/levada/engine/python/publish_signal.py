"""A signal to readers of results: an epoch was published, or the engine started or was closed.

Threads call ``wait``; asyncio code uses ``subscribe``. Removing a query or ending the epochs does
not notify readers. Readers look again after at most ``LOOK`` seconds.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

LOOK = 0.05  # s


class PublishSignal:
    """The signal of one engine."""

    def __init__(self) -> None:
        self._rung = threading.Condition()
        self._count = 0
        self._hearers: set[Callable[[], object]] = set()

    @property
    def count(self) -> int:
        """Returns the number of notifications so far."""
        return self._count

    def notify(self, _: object = None) -> None:
        """Wakes all waiting readers."""
        with self._rung:
            self._count += 1
            self._rung.notify_all()
            hearers = list(self._hearers)
        for hearer in hearers:
            with suppress(RuntimeError):  # its event loop is closed
                hearer()

    def wait(self, heard: int, timeout: float = LOOK) -> None:
        """Waits until more than ``heard`` notifications have been sent, or until ``timeout``
        seconds pass.
        """
        with self._rung:
            self._rung.wait_for(lambda: self._count > heard, timeout)

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[asyncio.Event]:
        """Gives an event of this event loop that each notification sets."""
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
    """Waits until the event is set or the time is over, and clears the event."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), timeout)
    event.clear()
