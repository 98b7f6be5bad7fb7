"""SIGINT and SIGTERM: the first asks for an end after the epoch, the second ends the process.

The second one waits for nothing: an epoch may take for ever, on the loop's thread or in Spark's
workers. So the handler itself ends the processes below this one, deletes what is temporary, and
exits as a shell says of the signal (130, 143). A third one has its usual effect.

Nothing is raised where the first one comes: Python drops what is raised in a finalizer or in a
callback of a weak reference, and who waits would wait on.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import psutil

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LOOK = 0.05  # s, at most, until who waits sees a signal
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
            end_now(number, temporary)
        stopped.set()

    for number in before:
        signal.signal(number, stop)
    try:
        yield stopped
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_now(number: int, temporary: Path | None) -> None:
    """Ends this process, all below it first; never returns."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_DFL)
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
