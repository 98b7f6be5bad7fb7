"""A budget of bytes for the standard error of a server and its engine, so that no client fills the
disk.

The budget is a bucket. Time fills it slowly, and clients fill it with four times the bytes that
they send. A message without room is dropped; a note replaces the first one. Faults of the server
have a traceback, of which the log has the beginning and the end. Mistakes in requests are answered,
not logged. Cost: an addition for each piece that clients send.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable

from levada.core.count_text import count_text
from levada.errors import shorten

BUDGET_BYTES = 12_000  # bytes of a server's log at once
MAX_RECORD = 4000  # characters of a message
FACTOR = 4  # bytes of log for a byte that a client sends
NOTE = "More messages are left out here: there are too many."


class LogBudget:
    """A bucket of ``size`` bytes, filled by ``rate`` bytes a second of ``clock`` (s).

    >>> budget = LogBudget(100, lambda: 0.0)
    >>> [budget.admit(text) for text in ("It is short.", 80 * "-", 80 * "-")]
    ['It is short.', 'More messages are left out here: there are too many.', '']
    >>> budget.receive(10)
    >>> budget.admit("Here it is.")
    '2 messages were left out. Here it is.'
    """

    def __init__(self, size: int, clock: Callable[[], float], rate: float = 0.0) -> None:
        self._size, self._clock, self._rate = size, clock, rate
        self._room, self._filled = float(size), clock()
        self._left_out = 0
        self._lock = threading.Lock()

    def receive(self, size: int) -> None:
        """Adds room for ``size`` bytes that a client has sent."""
        self._room = min(self._room + FACTOR * size, self._size)

    def admit(self, text: str) -> str:
        """Returns the text to write for a message; "" for nothing."""
        with self._lock:
            now = self._clock()
            self._room = min(self._room + self._rate * (now - self._filled), self._size)
            self._filled = now
            left_out = count_text(self._left_out, "message was", "messages were")
            before = f"{left_out} left out. " if self._left_out else ""
            shown = before + shorten(text, MAX_RECORD)
            if (size := _size(shown)) <= self._room:
                self._room -= size
                self._left_out = 0
                return shown
            self._left_out += 1
            if self._left_out > 1:
                return ""
            self._room -= _size(NOTE)
            return NOTE


def _size(text: str) -> int:
    """Returns the bytes of a message in the log."""
    return len(f"levada: {text}\n".encode("utf-8", "replace"))


BUDGET = LogBudget(BUDGET_BYTES, time.monotonic)
"""The budget of this process, which has one standard error."""


class BoundedLog(logging.Handler):
    """A log handler that writes to standard error while the budget of the process has room."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes a record."""
        try:
            if text := BUDGET.admit(self.format(record)):
                print(f"levada: {text}", file=sys.stderr, flush=True)
        except Exception:
            self.handleError(record)


_LOGGERS = {"uvicorn": "ERROR", "asyncio": "WARNING", "levada.server": "WARNING"}
CONFIG = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"bounded": {"()": BoundedLog}},
    "loggers": {
        name: {"handlers": ["bounded"], "level": level, "propagate": False}
        for name, level in _LOGGERS.items()
    },
}
"""The argument of ``logging.config.dictConfig``. Warnings of uvicorn about malformed requests are
off: those are answered.
"""
