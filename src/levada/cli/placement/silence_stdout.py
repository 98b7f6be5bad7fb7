"""Standard output kept for what a command says: libraries in C print to it by themselves."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """What is printed behind Python's back goes nowhere: METIS prints when a part of its has no
    tasks, which is no fault. For a process that does nothing else meanwhile.
    """
    sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # there is no standard output
        yield
        return
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # C has a buffer of its own
        os.dup2(kept, 1)
        os.close(kept)
