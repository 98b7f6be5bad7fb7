"""The requests to the epoch loop by other threads, and its end."""

from __future__ import annotations

import threading


class LoopControl:
    """Stops and wakes the loop (``engine/epoch_loop``), and waits for its end. ``failure``: the
    error that ended it. ``clock``: the CPU clock of its thread, once that has begun.
    """

    def __init__(self) -> None:
        self.stopping, self.woken, self._ended = (
            threading.Event(),
            threading.Event(),
            threading.Event(),
        )
        self.is_started = False
        self.due = 0.0
        self.failure: BaseException | None = None
        self.clock: int | None = None

    def wait_until(self, instant: float) -> None:
        """Limits the pause before the next intention to this instant of ``time.monotonic``."""
        self.due = instant

    def wake(self) -> None:
        """Ends the pause before the next intention."""
        self.woken.set()

    def request_stop(self) -> None:
        """Stops after the current epoch; does not wait."""
        self.stopping.set()
        self.woken.set()

    def stop(self, timeout: float | None = None) -> bool:
        """Stops after the current epoch. Returns False if it has not ended within ``timeout``
        seconds. Epochs that have not started are dropped.
        """
        self.request_stop()
        return not self.is_started or self.await_end(timeout)

    def await_end(self, timeout: float | None = None) -> bool:
        """Waits until the loop has ended."""
        return self._ended.wait(timeout)

    def end(self) -> None:
        """Records that the loop has ended."""
        self._ended.set()
