"""Python's search for cycles waits while a query is planned.

A query's trees have no cycles, and planning makes 100,000 small tuples: each 700 of them begin a
search, and now and then one over everything that the process holds (modules, kernels, the plans of
all other queries). That was half of what a query cost. The search is put off to the end of each
stage, so what other threads leave behind waits for milliseconds. When many queries have come it is
done after their first epoch (``DeferredCollection``), which has read their plan: else the search
over all of them falls into one of the next. To plan, to write and to read so many leaves holes
between what stays, 400 to 600 bytes a query, which glibc gives back if it is told to.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

FEW = 64  # queries whose objects nobody notices


@contextmanager
def collection_paused() -> Iterator[None]:
    """Here no cycles are looked for; where nobody looks for any, nothing changes.

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
        self._queries, self._cycles = FEW, cycles

    def collect_after(self, queries: int) -> None:
        """Looks for cycles now, and gives back what the C library keeps, if there are twice as many
        queries as when that was done last.

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
    """What gives the system back what is free between values; None where the C library has none."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
