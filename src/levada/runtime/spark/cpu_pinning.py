"""Binds tasks to processors, if all workers are on this host.

Spark chooses where tasks run, and workers serve any task. So each task binds the thread of its
worker: a task of split s to the processors of place s modulo the places. The tasks of a partition
thus always run in one place, near the data that they wrote last. Binding changes no result.
BriskStream binds each replica to a core (Zhang et al., SIGMOD 2019, 5).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from levada.core.frozen import frozen
from levada.errors import EngineError

Processors = tuple[tuple[int, ...], ...]
"""The numbers of each place's processors."""


class Task(Protocol):
    """A task as ``runtime.spark.spark_tasks`` defines them."""

    def __call__(self, split: int, records: Iterable[bytes]) -> Iterable[Any]:
        """Yields the records that the task sends."""
        ...

    def error_records(self, document: bytes, split: int) -> Iterable[Any]:
        """Yields the records that it sends in place of its own if it fails."""
        ...


@frozen
class BoundTask:
    """A task that runs bound to processors."""

    task: Task
    places: Processors

    def __call__(self, split: int, records: Iterable[bytes]) -> Iterator[Any]:
        """Call the task on this thread, bound only meanwhile: Spark's worker may run tasks of
        others later.
        """
        processors, before = self.places[split % len(self.places)], os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, processors)
        except OSError as error:
            # here: this module is loaded only in Spark's workers
            from levada.runtime.spark.task_errors import encode_error

            yield from self.task.error_records(
                encode_error(_unbindable_error(processors, error)), split
            )
            return
        try:
            yield from self.task(split, records)
        finally:
            os.sched_setaffinity(0, before)


def _unbindable_error(processors: tuple[int, ...], error: OSError) -> EngineError:
    numbers = ", ".join(map(str, processors))
    return EngineError(
        f"A worker could not be bound to the processors {numbers} any more: {error.strerror}.",
        hint="Leave --pin out, or probe the machine again.",
    )
