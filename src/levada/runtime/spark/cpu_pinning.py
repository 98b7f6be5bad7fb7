"""Tasks bound to processors, where all workers are on this host.

What runs where is Spark's choice, and workers serve whoever comes next; so it is the task that
binds its worker's thread, each time: a task of split s to the processors of place s modulo the
places. A partition's tasks thus always run in one place, where what they wrote last is near. It
changes no result. BriskStream binds each replica to a core (Zhang et al., SIGMOD 2019, 5).
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
    """A task as ``runtime.spark.spark_tasks`` has them."""

    def __call__(self, split: int, records: Iterable[bytes]) -> Iterable[Any]:
        """The records that the task sends."""
        ...

    def error_records(self, document: bytes, split: int) -> Iterable[Any]:
        """The records that it sends in place of its own if it fails."""
        ...


@frozen
class BoundTask:
    """A task, bound."""

    task: Task
    places: Processors

    def __call__(self, split: int, records: Iterable[bytes]) -> Iterator[Any]:
        """Call the task on this thread, bound as long as that takes: Spark's worker may be given
        tasks of somebody else's.
        """
        processors, before = self.places[split % len(self.places)], os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, processors)
        except OSError as error:
            # here: only where Spark's workers are is this module's neighbour loaded
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
