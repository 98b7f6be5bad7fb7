"""What a server and its engine write to standard error: a budget of bytes, so that no client fills
the disk.

The budget is a bucket. Time fills it slowly, and so does four times what clients send. A message
without room is left out; a note replaces the first one. Faults of the server come with their
traceback, of which the beginning and the end are written. What is wrong with a request is answered,
and not logged. Cost: an addition for each piece that clients send.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable

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
        """A client has sent so many bytes."""
        self._room = min(self._room + FACTOR * size, self._size)

    def admit(self, text: str) -> str:
        """The text that is to be written for a message; "": none."""
        with self._lock:
            now = self._clock()
            self._room = min(self._room + self._rate * (now - self._filled), self._size)
            self._filled = now
            before = f"{self._left_out:,} messages were left out. " if self._left_out else ""
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
    """Bytes of a message in the log."""
    return len(f"levada: {text}\n".encode("utf-8", "replace"))


BUDGET = LogBudget(BUDGET_BYTES, time.monotonic)
"""Of this process: it has one standard error."""


class BoundedLog(logging.Handler):
    """Writes records to standard error, as long as the budget of the process has room."""

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
"""For ``logging.config.dictConfig``. uvicorn warns of requests that are none: they are answered."""
