"""Interrupts work on a query that takes too much CPU, by an exception in its thread.

A thread checks each second the CPU time of the threads that are in a ``cpu_guard``, and has the
interpreter raise ``CpuTimeError`` in a thread that exceeds its limit. So an endless loop of Python
becomes an exception, and the query is suspended as after any exception. Native code receives the
exception only when it returns; if it holds the interpreter's lock and never does, the process ends
(``stall_exit``). The guard works only in processes that are Levada's (``enable``): a program of the
user is not interrupted. Cost: some microseconds a guard.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from levada.core.thread_interrupt import Interrupt
from levada.errors import UsageError

CPU_SECONDS = 120.0
VARIABLE = "LEVADA_WATCHDOG"
LOOK = 1.0  # s
MIN_STALL = 15.0  # CPU seconds: compiling a kernel holds the interpreter's lock for some
STALLS = 2  # limits of CPU seconds without any Python code after which the process ends


def cpu_limit() -> float:
    """The CPU seconds that one operator, or work on one query, may take: ``LEVADA_WATCHDOG``, else
    120.

    Raises ``UsageError``.
    """
    text = os.environ.get(VARIABLE, "")
    if not text:
        return CPU_SECONDS
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < 1e9:
        raise UsageError(f"{VARIABLE} is {text}.", hint="Give CPU seconds, such as 120.")
    return seconds


class CpuTimeError(Exception):
    """Work on a query has taken too much CPU."""

    def __str__(self) -> str:
        return f"It took more than {cpu_limit():g} CPU seconds ({VARIABLE}) and did not end"


_guarded: dict[int, tuple[Interrupt, float]] = {}  # by thread, with its limit
_enabled = False


def enable() -> None:
    """Has guards interrupt, in this process."""
    global _enabled
    if not _enabled:
        _enabled = True
        threading.Thread(target=_watch, name="levada cpu guard", daemon=True).start()


def cpu_guard(works: int = 0) -> AbstractContextManager[None]:
    """Raises ``CpuTimeError`` in the block if it takes more CPU than its limit, which is one more
    for each thousand ``works``. A guard within another one does nothing.
    """
    thread = threading.get_ident()
    return _guard(thread, works) if _enabled and thread not in _guarded else _UNGUARDED


_UNGUARDED = nullcontext()


@contextmanager
def _guard(thread: int, works: int) -> Iterator[None]:
    interrupt = Interrupt(CpuTimeError)
    until = interrupt.cpu_seconds() + cpu_limit() * (1 + works / 1000)
    _guarded[thread] = interrupt, until
    try:
        yield
    finally:
        _guarded.pop(thread, None)
        interrupt.end()


def _watch() -> None:
    from levada.core.stall_exit import StallExit  # here: few processes need it

    stall = StallExit(max(STALLS * cpu_limit(), MIN_STALL)) if sys.platform == "linux" else None
    while True:
        if stall is not None:
            stall.postpone()
        time.sleep(min(LOOK, cpu_limit() / 4))
        for thread, (interrupt, until) in list(_guarded.items()):
            with suppress(OSError):  # it has ended
                if interrupt.cpu_seconds() > until and interrupt.interrupt(CpuTimeError):
                    _guarded.pop(thread, None)
