"""Python's search for cycles waits while a query is planned.

A query's trees have no cycles, and planning makes 100,000 small tuples: each 700 of them begin a
search, and now and then one over everything that the process holds (modules, kernels, the plans of
all other queries). That was half of what a query cost. The search is put off to the end of each
stage, so what other threads leave behind waits for milliseconds. When many queries have come it is
done after their first epoch (``Collected``), which has read their plan: else the search over all of
them falls into one of the next.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

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


class Collected:
    """When everything was last looked through."""

    def __init__(self) -> None:
        self._queries = FEW

    def after(self, queries: int) -> None:
        """Looks for cycles now if there are twice as many queries as when that was done last.

        >>> Collected().after(3)
        """
        if queries >= 2 * self._queries and gc.isenabled():
            self._queries = queries
            gc.collect()
