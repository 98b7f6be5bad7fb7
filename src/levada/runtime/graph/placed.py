"""A placement as a run goes by it: the machine of each reader and of each partition of a stage.

Tasks are named as in the send graph (``task_graph``). What a placement does not name may run
anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from levada.runtime.graph.task_graph import STATIC, reader, task
from levada.runtime.local import Job
from levada.runtime.places import NOWHERE, Places, Tally
from levada.runtime.store.manifest import Lesson
from levada.sources.reference import AnyReference


@dataclass(frozen=True, slots=True)
class Placed:
    """``name``: of the placement's file; ``machine``: of tasks by their names; ``partitions``: the
    machine of each partition, where its tasks are not placed by name. ``lessons``: what has been
    learned, of one that a run learns. ``predicted``: the share that is to cross machines (-1: it is
    not known).
    """

    name: str
    machines: int
    machine: Mapping[str, int]
    partitions: tuple[int, ...]
    lessons: tuple[Lesson, ...] = ()
    predicted: float = -1.0

    def of(self, reference: AnyReference) -> int:
        """The machine that reads a reference."""
        return self.machine.get(reader(reference.stream, reference.partition), NOWHERE)

    def prefer(self, job: Job, payloads: Sequence[Sequence[AnyReference]], tally: Tally) -> Job:
        """A job that knows where its tasks would best run, each payload by its first reference; one
        task may run anywhere.
        """
        if job.fused:
            return job
        own = (self.of(p[0]) if p else self.machine.get(STATIC, NOWHERE) for p in payloads)
        by_stage = (
            tuple(self.machine.get(task(i, p), at) for p, at in enumerate(self.partitions))
            for i in range(1, job.stages + 1)
        )
        return replace(job, places=Places(self.machines, tuple(own), tuple(by_stage), tally))
