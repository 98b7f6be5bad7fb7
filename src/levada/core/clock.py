"""The clock of this process: the wall clock's time, without its sudden steps.

The wall clock is compared with a monotonic clock. While both agree within ``STEP`` the wall clock
is followed. A larger step is noted and not followed: time continues as before. If the wall clock
steps back, the step is ignored; if the step lasts for ``PATIENCE``, it is a correction, and is
followed. Cost: three readings a call.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import replace

from levada.core.event_time import instant, shown_duration
from levada.core.frozen import frozen

STEP = 200
"""ms between the two clocks that are no step: less than any heartbeat is worth."""
PATIENCE = 300_000
"""ms for which a step must stay before it is followed."""
_TORN = 50  # ms within which both clocks are read, else they are read again
_LASTS, _BACK, _FOLLOWED = "lasts", "stepped back", "followed"


@frozen
class ClockStep:
    """A step of the wall clock by ``size`` (ms, forward if positive), at the instant ``at`` before
    it; ``state``: lasts, stepped back, followed.
    """

    at: int
    size: int
    state: str = _LASTS

    def __str__(self) -> str:
        """A sentence for people.

        >>> print(ClockStep(0, 90_000_000))
        The clock of this machine stepped forward by P1DT1H at 1970-01-01T00:00:00Z: Levada counts \
on without the step, and follows it if it stays for PT5M.
        """
        way, size = "forward" if self.size > 0 else "back", shown_duration(_round_step(self.size))
        head = f"The clock of this machine stepped {way} by {size} at {instant(self.at)}"
        match self.state:
            case "stepped back":
                return f"{head}, and was set right again; Levada counted on without the step."
            case "followed":
                return f"{head}, and stayed so: Levada follows it now."
            case _:
                return (
                    f"{head}: Levada counts on without the step, and follows it if it stays for "
                    f"{shown_duration(PATIENCE)}."
                )


def _round_step(size: int) -> int:
    """The size of a step without the milliseconds between two readings."""
    return (abs(size) + 50) // 100 * 100


def wall_ms() -> int:
    """Reads the wall clock of the machine, in ms."""
    return time.time_ns() // 1_000_000


def elapsed_ms() -> int:
    """Reads a clock that no step moves, in ms; on Linux it counts while the machine sleeps, too."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    now = time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)
    return now // 1_000_000


class SteadyClock:
    """A clock in ms that reads the functions ``wall`` and ``elapsed``.

    >>> wall, elapsed = [1000], [0]
    >>> clock = SteadyClock(lambda: wall[0], lambda: elapsed[0], tell=lambda step: None)
    >>> wall[0], elapsed[0] = 90_000_000, 500
    >>> clock(), clock.step.size
    (1500, 89998500)
    """

    def __init__(
        self,
        wall: Callable[[], int] = wall_ms,
        elapsed: Callable[[], int] = elapsed_ms,
        tell: Callable[[ClockStep], None] | None = None,
    ) -> None:
        self.wall, self.elapsed = wall, elapsed
        self.step: ClockStep | None = None
        self._tell = _warn if tell is None else tell
        self._lock = threading.Lock()
        now, elapsed_now = self._read()
        self._offset = now - elapsed_now
        self._since = 0  # by the elapsed clock, when the step that lasts was seen

    def __call__(self) -> int:
        """The time now."""
        with self._lock:
            wall, elapsed = self._read()
            before = self.step
            self._follow(wall - elapsed - self._offset, elapsed)
            now, step = elapsed + self._offset, self.step
        if step is not None and step is not before:
            self._tell(step)
        return now

    def _read(self) -> tuple[int, int]:
        """Both clocks at one instant."""
        for _ in range(3):
            before, wall, after = self.elapsed(), self.wall(), self.elapsed()
            if after - before <= _TORN:
                break
        return wall, after

    def _follow(self, ahead: int, elapsed: int) -> None:
        """Judges by how much the wall clock is ahead of this one."""
        lasts = self.step if self.step is not None and self.step.state == _LASTS else None
        if abs(ahead) <= STEP:
            self._offset += ahead
            if lasts is not None:
                self.step = replace(lasts, state=_BACK)
        elif lasts is None or abs(ahead - lasts.size) > STEP:
            self.step, self._since = ClockStep(elapsed + self._offset, ahead), elapsed
        elif elapsed - self._since >= PATIENCE:
            self._offset += ahead
            self.step = replace(lasts, state=_FOLLOWED)


def _warn(step: ClockStep) -> None:
    warnings.warn(str(step), stacklevel=3)


def counting_clock(clock: Callable[[], int] = elapsed_ms) -> Callable[[], int]:
    """Makes a clock in ms that begins with the time of this process and that no step moves.

    >>> elapsed = [0]
    >>> ages = counting_clock(lambda: elapsed[0])
    >>> before, elapsed[0] = ages(), 700
    >>> ages() - before
    700
    """
    began = CLOCK() - clock()
    return lambda: began + clock()


CLOCK = SteadyClock()
"""The clock of this process."""
