"""Returns the free memory of a task to the system, if its memory is bounded.

The C library keeps the memory of freed arrays of up to 32 MB for later use. After some epochs that
is several times the data of a task. Here large arrays have pages of their own, which are returned
with them, and the rest is returned when a task ends. A traceback keeps the rows of a task that was
too large until the cycle collector runs. Without glibc this module does nothing.

Cost: a page fault for each 4 KB of a large array; a pass through the heap for each task.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import pyarrow as pa

from levada.core.query_limits import Memory
from levada.errors import OverMemoryError

MMAP_BYTES = 256 << 10
_MMAP_THRESHOLD = -3  # of mallopt(3)
# whether a task of this process was too large since the last run of the cycle collector
_dropped = [False]


def bounded_allocator(memory: Memory) -> AbstractContextManager[None]:
    """Returns freed memory to the system around a task with so much memory."""
    return _trim_afterwards() if memory.bytes else _UNBOUNDED


_UNBOUNDED = nullcontext()


@contextmanager
def _trim_afterwards() -> Iterator[None]:
    libc = _glibc()
    if _dropped[0]:
        _dropped[0] = False
        gc.collect()
    try:
        yield
    except OverMemoryError:
        _dropped[0] = True
        raise
    finally:
        if libc is not None:
            libc.malloc_trim(0)


def give_back() -> None:
    """Returns the memory of a dropped task to the system."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


@cache
def _glibc() -> Any:
    """Returns the C library with its allocation set up; None if it is not glibc."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt") or not hasattr(libc, "malloc_trim"):
        return None
    libc.mallopt(_MMAP_THRESHOLD, MMAP_BYTES)
    return libc
