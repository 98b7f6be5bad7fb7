"""The process from which Spark's Python workers are forked (``spark.python.daemon.module``).

A worker's first task otherwise pays for its imports and for loading the compiled kernels, and every
task ends with a full garbage collection over all that was imported. So everything is imported and
loaded here, once, and frozen out of the collector's sight, before the first fork (a worker's first
task: 200 ms of imports became 10).

Only imports and kernels: workers are forked from here, so nothing calls Polars or starts a pool
(the session sets one thread for BLAS; the allocators' own background threads know about forks).
Nothing may be printed on standard output: Spark reads the daemon's address there.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator

from levada.core.code_loading import load_module

PRELOADED = (
    "pandas",
    "pyspark.worker",
    "levada.runtime.spark.spark_tasks",
    "levada.runtime.task.entry_points",
)


def preload() -> None:
    """Import what tasks use and load the kernels that are compiled. A failure is printed only: the
    task that needs it says it to the user.
    """
    for name in PRELOADED:
        try:
            if importlib.util.find_spec(name) is not None:
                load_module(name)
        except Exception:
            traceback.print_exc()
    try:
        warm = getattr(load_module("levada.kernels"), "warm", None)
        if warm is not None:
            warm(only_cached=True)
    except Exception:
        traceback.print_exc()


@contextlib.contextmanager
def stdout_on_stderr() -> Iterator[None]:
    """Send what is printed in the block to standard error, also by native code."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def main() -> None:
    """Preload, then serve Spark's requests for workers until it closes the connection."""
    from pyspark.daemon import manager

    with stdout_on_stderr():
        preload()
    gc.collect()
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
