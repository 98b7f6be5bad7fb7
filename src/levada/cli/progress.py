"""The progress of a run on standard error: a live line on a terminal, else a line now and then.
``--no-progress`` suppresses it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from levada.engine.status.summary import Progress

STARTING = "Levada is starting"
KERNELS = "Kernels are being compiled for this machine, once. To do so in advance, run levada warm."
_LINE_INTERVAL = 5.0  # seconds between plain lines
_SELDOM = 300.0  # seconds, without --progress in a run that has no end
_PATIENCE = 2.0  # seconds


class Show(Protocol):
    """A display of a run's progress."""

    def __call__(self, progress: Progress) -> None:
        """Shows the present progress."""

    def close(self) -> None:
        """Clears the terminal."""


class LiveLine:
    """A line that is redrawn, and erased at the end."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, transient=True, auto_refresh=False)
        self._live.start()

    def __call__(self, progress: Progress) -> None:
        """Shows the present progress."""
        self._live.update(Text(progress.line(), overflow="ellipsis", no_wrap=True), refresh=True)

    def close(self) -> None:
        """Erases the line."""
        self._live.stop()


class Waiting:
    """A line on a terminal that says what the start waits for, until another display takes over.
    ``clear`` erases it and may be called repeatedly.
    """

    def __init__(self, console: Console) -> None:
        self._status = console.status(f"[dim]{STARTING}[/dim]") if console.is_terminal else None
        if self._status is not None:
            self._status.start()

    def __call__(self, progress: Progress) -> None:
        """Shows the present step of the start."""
        if self._status is not None:
            self._status.update(f"[dim]{progress.waiting_for or STARTING}[/dim]")

    @property
    def shown(self) -> bool:
        """Returns whether the line is still on the terminal."""
        return self._status is not None

    def clear(self) -> None:
        """Erases the line."""
        status, self._status = self._status, None
        if status is not None:
            status.stop()


class PlainLines:
    """Lines for a log. The first appears after ``_PATIENCE``; each pause is twice the one before,
    up to ``most`` seconds. ``clock`` is in seconds.
    """

    def __init__(
        self, console: Console, clock: Callable[[], float], most: float = _LINE_INTERVAL
    ) -> None:
        self._console = console
        self._clock = clock
        self._most, self._pause = most, _PATIENCE
        self._next = clock() + self._pause

    def __call__(self, progress: Progress) -> None:
        """Prints the present progress if a line is due."""
        now = self._clock()
        if now >= self._next:
            self._pause = min(2 * self._pause, self._most)
            self._next = now + self._pause
            self._console.print(progress.line(), markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Does nothing: printed lines remain."""


def compile_kernels(console: Console) -> None:
    """Compiles the kernels that are not in the cache; prints the progress and the cache folder."""
    from levada import kernels
    from levada.core.cache_folder import kernel_folder

    began = time.monotonic()
    with console.status("[dim]Kernels are being compiled[/dim]") as status:

        def tell(done: int, of: int) -> None:
            status.update(f"[dim]Kernels are being compiled ({done} of {of})[/dim]")
            if not console.is_terminal and done % 20 == 0 and kernels.compiled:
                console.print(f"{done} of {of}", highlight=False)

        kernels.warm(tell)
    folder = kernel_folder()
    seconds = time.monotonic() - began
    console.print(
        f"{kernels.compiled} kernels compiled in {seconds:.0f} s; all are in {folder}.",
        highlight=False,
        soft_wrap=True,
    )


class After:
    """A display that replaces the line of ``waiting`` after the start. ``make`` creates it;
    ``clock`` is in seconds.
    """

    def __init__(
        self,
        console: Console,
        waiting: Waiting,
        make: Callable[[], Show | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console, self._waiting, self._make, self._clock = console, waiting, make, clock
        self._show: Show | None = None
        self._made = False
        self._said: set[str] = set()
        self._since: tuple[str, float] = ("", 0.0)

    def __call__(self, progress: Progress) -> None:
        """Shows the present progress."""
        if not progress.epochs and not self._made and self._waiting.shown:
            self._waiting(progress)
            return
        self._say(progress.waiting_for)
        self._waiting.clear()
        if not self._made:
            self._made, self._show = True, self._make()
        if self._show is not None:
            self._show(progress)

    def _say(self, awaits: str) -> None:
        """Prints once, on anything but a terminal, why the start takes long: at once for kernels
        that are compiled, after ``_PATIENCE`` for anything else.
        """
        kernels = awaits.startswith("kernels")
        said = KERNELS if kernels else awaits
        if self._console.is_terminal or said in self._said:
            return
        if said != self._since[0]:
            self._since = said, self._clock()
        if said and (kernels or self._clock() - self._since[1] >= _PATIENCE):
            self._said.add(said)
            self._console.print(said, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Ends the display."""
        self._waiting.clear()
        if self._show is not None:
            self._show.close()


def choose(
    console: Console, wanted: bool | None, clock: Callable[[], float], *, shared: bool,
    ends: bool = False,
) -> Show | None:  # fmt: skip
    """Returns the display: a live line on a terminal, plain lines elsewhere, or None.

    ``shared``: results appear on the same terminal, which a live line would garble. ``wanted``
    None: the terminal decides, and plain lines become rare unless the run ``ends``.
    """
    if wanted is False or (wanted is None and shared):
        return None
    if console.is_terminal and not shared:
        return LiveLine(console)
    return PlainLines(console, clock, _LINE_INTERVAL if wanted or ends else _SELDOM)
