"""Requests to other systems that this process waits for: a signal to end waits for them no longer
than for a while.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_pending: dict[object, tuple[float, str]] = {}


@contextmanager
def mark_pending(system: str) -> Iterator[None]:
    """Marks a request as under way. ``system``: who is asked, as a sentence begins."""
    key = object()
    _pending[key] = time.monotonic(), system
    try:
        yield
    finally:
        del _pending[key]


def pending_for(seconds: float) -> str:
    """A system that has been asked for so long without an answer; "" if there is none.

    >>> with mark_pending("The store"):
    ...     pending_for(0)
    'The store'
    """
    since = time.monotonic() - seconds
    return next((system for begun, system in list(_pending.values()) if begun <= since), "")
