"""SIGINT and SIGTERM: the first asks for an end after the epoch, the second ends the process.

The second one waits for nothing: an epoch may take for ever, on the loop's thread or in Spark's
workers. So the processes below this one are ended, what is temporary is deleted, and the process
exits as a shell says of the signal (130, 143). A third one has its usual effect.

The first one does the same after ``GRACE`` if a store or a source does not answer then. A thread
sees to both, since the main thread may be in a library that does not return.

Nothing is raised where the first one comes: Python drops what is raised in a finalizer or in a
callback of a weak reference, and who waits would wait on.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import psutil

from levada.core.pending_requests import pending_for

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LOOK = 0.05  # s, at most, until who waits sees a signal
GRACE, SILENCE = 8.0, 5.0  # s after the first signal, and of a request, for which an end waits
_SHOW_CURSOR = b"\x1b[?25h"


class Stopped:
    """Whether a signal has asked for an end. Without a lock, unlike an event of ``threading``: a
    handler runs amid the thread that waits, which may have it.
    """

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        """An end is asked for."""
        self._set = True

    def is_set(self) -> bool:
        """Whether it is."""
        return self._set

    def wait(self, seconds: float) -> bool:
        """Waits so long, or until an end is asked for; whether it is."""
        end = time.monotonic() + seconds
        while not self._set and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, LOOK))
        return self._set


@contextlib.contextmanager
def stopped_by_signals(temporary: Path | None) -> Iterator[Stopped]:
    """What the first signal sets; ``temporary``: a folder that goes with the process."""
    stopped = Stopped()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return
    before = {s: signal.getsignal(s) for s in SIGNALS}

    def stop(number: int, frame: FrameType | None) -> None:
        if stopped.is_set():
            for each in SIGNALS:
                signal.signal(each, signal.SIG_DFL)
            end_now(number, temporary)
        stopped.set()

    for number in before:
        signal.signal(number, stop)
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before_fd = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    watching = threading.Thread(
        target=_watch, args=(reading, temporary), name="levada signals", daemon=True
    )
    watching.start()
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before_fd)
        os.close(writing)
        watching.join()
        os.close(reading)


def _watch(reading: int, temporary: Path | None) -> None:
    """Ends the process at the second signal, and where the first one would wait for a system that
    does not answer.
    """
    first, since = 0, 0.0
    while True:
        wait = None if first == 0 else LOOK
        if select.select([reading], [], [], wait)[0]:
            numbers = [n for n in os.read(reading, 64) or b"\0" if n in (0, *SIGNALS)]
            if 0 in numbers:
                return
            if numbers and first == 0:
                first, since = numbers.pop(0), time.monotonic()
            if numbers:
                end_now(numbers[0], temporary)
        if first and time.monotonic() - since > GRACE and (system := pending_for(SILENCE)):
            print(
                f"levada: {system} does not answer: the run ends without its last epoch, with "
                "which the next one begins.",
                file=sys.stderr, flush=True,
            )  # fmt: skip
            end_now(first, temporary)


def end_now(number: int, temporary: Path | None) -> None:
    """Ends this process, all below it first; never returns."""
    _end_children()
    if temporary is not None:
        _remove(temporary)
    if sys.stderr is not None and sys.stderr.isatty():
        os.write(sys.stderr.fileno(), _SHOW_CURSOR)
    os._exit(128 + number)


def _end_children() -> None:
    """Kills all processes below this one: the JVM, the daemon and the workers."""
    children = psutil.Process().children(recursive=True)
    for child in children:
        with contextlib.suppress(psutil.Error):
            child.kill()
    psutil.wait_procs(children, timeout=1)


def _remove(folder: Path) -> None:
    """Deletes a folder that the loop's thread may still be writing to."""
    for _ in range(5):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
