"""The watchdog, which ends the process if an operator does not finish.

A thread checks each second whether the loop's thread is still in the same operator, and counts its
CPU seconds there. Above the limit it records that in the checkpoint (``runtime.task.work_note``)
and ends the process with exit code 5, or warns in a user's program. The next start evaluates the
operator's queries in separate processes under the same limit, and suspends the one that does not
finish. Waiting takes no CPU: Spark's work, slow stores and reading static data do not count.
``core.cpu_guard`` interrupts work on a query outside operators, such as planning.
``core.stall_exit`` handles native code that holds the interpreter's lock.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress

import psutil

from levada.core.cpu_guard import VARIABLE, cpu_limit, enable
from levada.engine.driver.loop_control import LoopControl
from levada.runtime.task.work_note import RECORDS, UNLIMITED, WorkNote

EXIT_CODE = 5
LOOK = 1.0  # s
CHILDREN_END = 5.0  # s
End = Callable[[str], None]
"""Ends the process after it has printed a sentence."""


def end_process(sentence: str) -> None:
    """Ends this process with exit code 5."""
    print(f"levada: {sentence}", file=sys.stderr, flush=True)
    os._exit(EXIT_CODE)


def end_of(watchdog: bool | End) -> End | None:
    """Returns how a watchdog ends the process: as declared, or as ``levada run`` does; None: it
    warns. If it ends the process, work there may be interrupted (``core.cpu_guard``).
    """
    if watchdog is False:
        return None
    enable()
    return end_process if watchdog is True else watchdog


def restart_process(sentence: str) -> None:
    """Ends the child processes, and replaces this process by a new run of its command."""
    print(f"levada: {sentence} Levada starts again.", file=sys.stderr, flush=True)
    children = psutil.Process().children(recursive=True)
    for child in children:
        with suppress(psutil.Error):
            child.terminate()
    for child in psutil.wait_procs(children, timeout=CHILDREN_END)[1]:
        with suppress(psutil.Error):
            child.kill()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


class Watchdog:
    """A thread that watches the thread of a loop. Without ``end`` it only warns."""

    def __init__(self, note: WorkNote, loop: LoopControl, end: End | None) -> None:
        self._note, self._loop, self._end, self._limit = note, loop, end, cpu_limit()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="levada watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops watching."""
        self._stopped.set()

    def _watch(self) -> None:
        count, began, warned = -1, 0.0, -1
        while not self._stopped.wait(min(LOOK, self._limit / 4)):
            if self._loop.clock is None:
                continue
            try:
                now = time.clock_gettime(self._loop.clock)
            except OSError:  # the thread has ended
                return
            if self._note.count != count or self._note.node in UNLIMITED:
                count, began = self._note.count, now
            elif now - began > self._limit + self._note.extra and warned != count:
                warned = count
                self._exceed()

    def _exceed(self) -> None:
        node = self._note.node
        what = "Reading" if node == RECORDS else f"One operator (number {node} of the plan)"
        sentence = (
            f"{what} has taken more than {self._limit + self._note.extra:g} CPU seconds "
            f"({VARIABLE}) and does not come to its end."
        )
        if self._end is None:
            warnings.warn(f"{sentence} Engine(watchdog=True) would end it.", stacklevel=2)
            return
        self._note.exceed()
        then = "sets aside what it reads" if node == RECORDS else "suspends its query"
        self._end(f"{sentence} The next start {then}.")
