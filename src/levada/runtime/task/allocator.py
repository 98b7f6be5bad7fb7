"""What a task has let go goes back to the system, where its memory is bounded.

The C library keeps what arrays of up to 32 MB were in, for others: after some epochs that is
several times what a task holds. Here large arrays have pages of their own, which go with them, and
what is left is given back when a task ends. Rows of a task that was too large hang on its traceback
until cycles are looked for. Elsewhere than with glibc nothing of this is done.

Cost: a page fault for each 4 KB of a large array; a look through the heap for each task.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pyarrow as pa

from levada.core.query_limits import Memory
from levada.errors import OverMemoryError

LARGE = 256 << 10
_MMAP_THRESHOLD = -3  # of mallopt(3)
_dropped = [False]  # whether a task of this process was too large since cycles were looked for


@contextmanager
def bounded_allocator(memory: Memory) -> Iterator[None]:
    """Within it a task runs that has so much memory."""
    if not memory.bytes:
        yield
        return
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
    """Gives the system the memory of a task that has been dropped."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)


@cache
def _glibc() -> Any:
    """The C library, told how to allocate; None if it is another one."""
    libc = ctypes.CDLL(None)
    if not hasattr(libc, "mallopt") or not hasattr(libc, "malloc_trim"):
        return None
    libc.mallopt(_MMAP_THRESHOLD, LARGE)
    return libc
