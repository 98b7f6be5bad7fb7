"""Interrupts a thread: another thread raises an exception in it, at most once, and only while the
interruptible work lasts.

The exception is raised at the next instruction of Python, at any place. Native code receives it
only when it returns.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from contextlib import suppress
from pathlib import Path


class Interrupt:
    """May raise a ``kind`` of error in the thread that makes it, until that calls ``end``."""

    def __init__(self, kind: type[BaseException]) -> None:
        self._kind = kind
        self._thread = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._thread)
        self._stat = Path(f"/proc/self/task/{threading.get_native_id()}/stat")
        self._turn = threading.Lock()  # taken once, by ``end`` or by ``interrupt``
        self._is_raised = False

    def cpu_seconds(self) -> float:
        """The CPU time of the thread. Raises ``OSError`` if it has ended."""
        return time.clock_gettime(self._clock)

    def touched_bytes(self) -> int:
        """Returns the memory of the pages that the thread was the first to touch, also of those
        that it has given back; 0: the system does not count them, or the thread has ended.
        """
        with suppress(OSError):
            faults = self._stat.read_text().rpartition(")")[2].split()[7]
            return int(faults) * os.sysconf("SC_PAGESIZE")
        return 0

    def interrupt(self, error: type[BaseException]) -> bool:
        """Raises an error of its kind in the thread; False: that has ended, or was interrupted."""
        if not self._turn.acquire(blocking=False):
            return False
        _raise_in(self._thread, error)
        self._is_raised = True
        return True

    def end(self) -> None:
        """From here on no error arrives. One that arrives at the very call leaves it."""
        try:
            if not self._turn.acquire(blocking=False):
                while not self._is_raised:
                    time.sleep(0)
                # replaces one that has not arrived, and arrives: while one is to come, or has been
                # withdrawn, the interpreter looks for it at each step, in all threads
                _raise_in(self._thread, self._kind)
                while True:
                    time.sleep(0)
        except self._kind:
            pass


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Raises an error in a thread at its next instruction."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
