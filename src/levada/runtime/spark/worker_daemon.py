"""Runs the process from which Spark's Python workers are forked (``spark.python.daemon.module``).

Otherwise a worker's first task would pay for its imports and for loading the compiled kernels, and
every task would end with a full garbage collection over all imported objects. So everything is
imported and loaded here, once, and frozen out of the collector's sight, before the first fork (a
worker's first task: 200 ms of imports became 10).

The process only imports modules and kernels: workers are forked from it, so nothing calls Polars or
starts a pool (the session sets one thread for BLAS; the allocators' own background threads know
about forks). Nothing may be printed on standard output: Spark reads the daemon's address there.
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
    """Import the modules of tasks and load the compiled kernels. A failure is only printed: the
    task that needs the module reports it to the user.
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
    """Redirect output in the block to standard error, also that of native code."""
    sys.stdout.flush()
    saved_stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(saved_stdout, 1)
        os.close(saved_stdout)


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
