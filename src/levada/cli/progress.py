"""The progress of a run on standard error: a live line on a terminal, else nothing, or a line now
and then if asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from levada.engine.summary import Progress

_EVERY = 5.0  # seconds between plain lines


class Show(Protocol):
    """Takes each moment of a run; ``close`` ends the display."""

    def __call__(self, progress: Progress) -> None:
        """Shows a moment."""

    def close(self) -> None:
        """Leaves the terminal clean."""


class LiveLine:
    """One line that is drawn anew; gone at the end."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, transient=True, auto_refresh=False)
        self._live.start()

    def __call__(self, progress: Progress) -> None:
        """Shows a moment."""
        self._live.update(Text(progress.line(), overflow="ellipsis", no_wrap=True), refresh=True)

    def close(self) -> None:
        """Ends the display."""
        self._live.stop()


class PlainLines:
    """A line at most every few seconds, for logs. ``clock`` is in seconds."""

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._clock = clock
        self._next = clock() + _EVERY

    def __call__(self, progress: Progress) -> None:
        """Shows a moment."""
        now = self._clock()
        if now >= self._next:
            self._next = now + _EVERY
            self._console.print(progress.line(), markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Nothing is left to clean."""


def choose(
    console: Console, wanted: bool | None, clock: Callable[[], float], *, shared: bool
) -> Show | None:
    """The display: live on a terminal, plain lines elsewhere if ``wanted``, none if not.

    ``shared``: results appear on the same terminal, which a live line would garble. ``wanted``
    None: as the terminal is.
    """
    if wanted is False or (wanted is None and (shared or not console.is_terminal)):
        return None
    return LiveLine(console) if console.is_terminal and not shared else PlainLines(console, clock)
