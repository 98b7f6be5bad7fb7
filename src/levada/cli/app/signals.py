"""SIGINT and SIGTERM: the first ends the run after the epoch, the second ends the process at once.

The second signal waits for nothing, since an epoch may never end. It kills the processes below this
one, deletes the temporary folder, and exits with the code of the signal (130, 143). A third one has
its usual effect. The first signal does the same after ``GRACE`` if a store or a source does not
answer. A thread watches for both, since the main thread may be inside a library.

The handler of the first signal raises nothing: Python drops exceptions in finalizers and callbacks
of weak references.
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
LOOK = 0.05  # s, the longest time until a waiting thread sees a signal
GRACE, SILENCE = 8.0, 5.0  # s after the first signal, and s of a request without answer
_SHOW_CURSOR = b"\x1b[?25h"


class Stopped:
    """A flag that the first signal sets. It has no lock, unlike an event of ``threading``: a
    handler interrupts the waiting thread, which may own the lock.
    """

    def __init__(self) -> None:
        self._set = False

    def set(self) -> None:
        """Sets the flag."""
        self._set = True

    def is_set(self) -> bool:
        """Returns whether the flag is set."""
        return self._set

    def wait(self, seconds: float) -> bool:
        """Waits for the flag, at most so many seconds, and returns it."""
        end = time.monotonic() + seconds
        while not self._set and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, LOOK))
        return self._set


@contextlib.contextmanager
def stopped_by_signals(temporary: Path | None) -> Iterator[Stopped]:
    """Yields the flag that the first signal sets. ``temporary``: a folder to delete if the process
    ends at once.
    """
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
    """Ends the process at the second signal, or after the first one if a system does not answer."""
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
    """Kills all processes below this one and ends this process; never returns."""
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
    """Deletes a folder to which the loop's thread may still write."""
    for _ in range(5):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return
