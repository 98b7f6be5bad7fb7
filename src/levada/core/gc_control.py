"""Defers Python's garbage collection of cycles while a query is planned.

A query's trees have no cycles, and planning makes 100,000 small tuples: each 700 of them start a
collection, and sometimes one over everything in the process (modules, kernels, the plans of all
other queries). That was half of the cost of a query. The collection is deferred to the end of each
stage, so garbage of other threads waits for milliseconds. After many new queries a collection runs
after their first epoch (``DeferredCollection``), which has read their plan: otherwise the
collection over all of them falls into one of the next. Planning, writing and reading so many
queries leaves holes in memory, 400 to 600 bytes a query, which glibc returns on request.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

MIN_QUERIES = 64  # queries whose objects nobody notices


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pauses the collection of cycles; does nothing if the collection is disabled.

    >>> with collection_paused():
    ...     pass
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class DeferredCollection:
    """When everything was last looked through; ``cycles``: whether any are looked for."""

    def __init__(self, *, cycles: bool = True) -> None:
        self._queries, self._cycles = MIN_QUERIES, cycles

    def collect_after(self, queries: int) -> None:
        """Collects cycles now, and returns free memory of the C library, if there are twice as many
        queries as at the last time.

        >>> DeferredCollection().collect_after(3)
        """
        if queries < 2 * self._queries:
            return
        self._queries = queries
        if self._cycles and gc.isenabled():
            gc.collect()
        if (trim := _trim()) is not None:
            trim(0)


@cache
def _trim() -> Any:
    """Returns the function that returns free memory to the system; None if the C library has
    none.
    """
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
