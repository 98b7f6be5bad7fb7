"""Ends this process with exit code 5 when no Python code has run for some CPU seconds.

Native code that loops and holds the interpreter's lock stops every thread, also watching threads.
So a timer of the system counts the CPU time of the process, and a thread resets it each second. The
timer's signal is number 5, and its handler is the C library's ``_exit``, which takes it as exit
code. ``faulthandler`` has written the stacks to standard error by then. Linux only.
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import signal
import sys
import time
from contextlib import suppress

_SIGNAL = signal.SIGTRAP  # its number is the exit code
_ABSOLUTE = 1  # TIMER_ABSTIME


class _Event(ctypes.Structure):
    """A ``struct sigevent`` of Linux that asks for a signal."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_byte * 48),
    )


class StallExit:
    """Ends the process after ``seconds`` of its CPU time without a call of ``put_off``."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._timer = seconds, ctypes.c_void_p()
        self._libc = ctypes.CDLL(None, use_errno=True)
        exit_ = ctypes.cast(self._libc._exit, ctypes.c_void_p)
        self._libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
        self._libc.signal.restype = ctypes.c_void_p
        self._libc.signal(_SIGNAL, exit_)
        with suppress(OSError, RuntimeError, ValueError):  # there is no standard error
            faulthandler.register(_SIGNAL, file=sys.__stderr__ or sys.stderr, chain=True)
        event = _Event(signal=_SIGNAL)
        clock = time.CLOCK_PROCESS_CPUTIME_ID
        made = self._libc.timer_create(clock, ctypes.byref(event), ctypes.byref(self._timer))
        self._works = made == 0
        atexit.register(self.stop)  # no thread puts it off while the interpreter ends

    def postpone(self) -> None:
        """Counts anew from now on."""
        if self._works:
            self._set(time.process_time() + self._seconds)

    def stop(self) -> None:
        """Counts no more."""
        if self._works:
            self._works = False
            self._set(0)

    def _set(self, seconds: float) -> None:
        whole, rest = divmod(seconds, 1)
        until = (ctypes.c_long * 4)(0, 0, int(whole), int(rest * 1e9))
        self._libc.timer_settime(self._timer, _ABSOLUTE, until, None)
