"""A placement as a run goes by it: the machine of each reader and of each partition of a stage.

Tasks are named as in the send graph (``task_graph``). What a placement does not name may run
anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from levada.checkpoint.epoch_context import TaskOutcome
from levada.checkpoint.manifest import LearningStep
from levada.connectors.sources.splits import AnyReference
from levada.core.frozen import frozen
from levada.runtime.executor import Job
from levada.runtime.placement.task_graph import STATIC, reader, task
from levada.runtime.preferred_locations import NOWHERE, LocalityStats, PreferredLocations


@frozen
class TaskPlacement:
    """``name``: of the placement's file; ``machine``: of tasks by their names; ``partitions``: the
    machine of each partition, where its tasks are not placed by name. ``lessons``: what has been
    learned, of one that a run learns. ``predicted``: the share that is to cross machines (-1: it is
    not known); ``between``: what each machine is to send to each, as a share of all (() as well).
    """

    name: str
    machines: int
    machine: Mapping[str, int]
    partitions: tuple[int, ...]
    lessons: tuple[LearningStep, ...] = ()
    predicted: float = -1.0
    between: tuple[tuple[float, ...], ...] = ()

    def machine_of(self, reference: AnyReference) -> int:
        """The machine that reads a reference."""
        return self.machine.get(reader(reference.stream, reference.partition), NOWHERE)

    def prefer(
        self, job: Job, payloads: Sequence[Sequence[AnyReference]], tally: LocalityStats
    ) -> Job:
        """A job that knows where its tasks would best run, each payload by its first reference; one
        task may run anywhere.
        """
        tally.asked = ()
        if job.fused:
            return job
        reader_machines = tuple(
            self.machine_of(p[0]) if p else self.machine.get(STATIC, NOWHERE) for p in payloads
        )
        by_stage = tuple(
            tuple(self.machine.get(task(i, p), at) for p, at in enumerate(self.partitions))
            for i in range(1, job.stages + 1)
        )
        tally.asked = reader_machines, *by_stage
        return replace(
            job, places=PreferredLocations(self.machines, reader_machines, by_stage, tally)
        )


def record_locality(tally: LocalityStats, done: Sequence[TaskOutcome]) -> None:
    """Adds to a tally where the tasks of the last job ran and what they got from where, as they
    have told it themselves; of one that could not tell nothing is known.
    """
    readers = 0
    for outcome in done:
        number = outcome.partition if outcome.stage else readers
        readers += not outcome.stage
        asked = tally.asked[outcome.stage] if tally.asked else ()
        machine = asked[number] if number < len(asked) else NOWHERE  # it came since
        if machine != NOWHERE and outcome.at:
            tally.wanted += 1
            tally.missed += tally.standing(machine) != outcome.at
        for executor, (_, size, blobs) in outcome.came.items() if tally.asked else ():
            tally.read += size
            if executor != outcome.at:
                tally.remote += size
                tally.blobs += blobs
