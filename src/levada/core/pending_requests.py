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
    """Marks a request to another system as under way. ``system``: the begin of a sentence that
    names it.
    """
    key = object()
    _pending[key] = time.monotonic(), system
    try:
        yield
    finally:
        del _pending[key]


def pending_for(seconds: float) -> str:
    """Returns a system that has not answered for so long; "" if there is none.

    >>> with mark_pending("The store"):
    ...     pending_for(0)
    'The store'
    """
    since = time.monotonic() - seconds
    return next((system for begun, system in list(_pending.values()) if begun <= since), "")
