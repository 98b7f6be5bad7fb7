"""The progress of a run on standard error: a live line on a terminal, else a line now and then,
unless quiet is asked for.
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
KERNELS = "Kernels are being compiled for this machine, once; levada warm does it before."
_LINE_INTERVAL = 5.0  # seconds between plain lines
_SELDOM = 300.0  # seconds, where nobody has asked for them and no end is awaited
_PATIENCE = 2.0  # seconds


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


class Waiting:
    """A line that says what is awaited, on a terminal, from the start until something else is to be
    seen; ``over`` takes it away, as often as one likes.
    """

    def __init__(self, console: Console) -> None:
        self._status = console.status(f"[dim]{STARTING}[/dim]") if console.is_terminal else None
        if self._status is not None:
            self._status.start()

    def __call__(self, progress: Progress) -> None:
        """Shows a moment of the start."""
        if self._status is not None:
            self._status.update(f"[dim]{progress.awaits or STARTING}[/dim]")

    @property
    def shown(self) -> bool:
        """Whether it is still there."""
        return self._status is not None

    def clear(self) -> None:
        """Leaves the terminal clean."""
        status, self._status = self._status, None
        if status is not None:
            status.stop()


class PlainLines:
    """A line now and then, for logs: the first after ``_PATIENCE``, the others twice as late each,
    but no more than ``most`` seconds after one another. ``clock`` is in seconds.
    """

    def __init__(
        self, console: Console, clock: Callable[[], float], most: float = _LINE_INTERVAL
    ) -> None:
        self._console = console
        self._clock = clock
        self._most, self._pause = most, _PATIENCE
        self._next = clock() + self._pause

    def __call__(self, progress: Progress) -> None:
        """Shows a moment."""
        now = self._clock()
        if now >= self._next:
            self._pause = min(2 * self._pause, self._most)
            self._next = now + self._pause
            self._console.print(progress.line(), markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Nothing is left to clean."""


def compile_kernels(console: Console) -> None:
    """Compiles the kernels that are not in the cache, says how far that is, and where they are."""
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
    """A display that follows the line of what is awaited. ``clock`` is in seconds."""

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
        """Shows a moment."""
        if not progress.epochs and not self._made and self._waiting.shown:
            self._waiting(progress)
            return
        self._say(progress.awaits)
        self._waiting.clear()
        if not self._made:
            self._made, self._show = True, self._make()
        if self._show is not None:
            self._show(progress)

    def _say(self, awaits: str) -> None:
        """Where no line is drawn anew, it is said once why it takes so long: that kernels are being
        compiled, and what else is still awaited after ``_PATIENCE``.
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
    """The display: live on a terminal, plain lines elsewhere, none if that is ``wanted``.

    ``shared``: results appear on the same terminal, which a live line would garble. ``wanted``
    None: as the terminal is; plain lines become fewer with time then, unless the run ``ends``.
    """
    if wanted is False or (wanted is None and shared):
        return None
    if console.is_terminal and not shared:
        return LiveLine(console)
    return PlainLines(console, clock, _LINE_INTERVAL if wanted or ends else _SELDOM)
