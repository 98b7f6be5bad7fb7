"""Applies a placement to a run: the machine of each reader and of each partition of a stage.

Tasks have the names of the send graph (``task_graph``). A task that a placement does not name may
run anywhere.
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
    """A placement. ``name``: its file. ``machine``: of tasks by their names. ``partitions``: the
    machine of each partition whose tasks are not placed by name. ``lessons``: the learning steps,
    if the run learns its placement. ``predicted``: the predicted share of data between machines
    (-1: unknown). ``between``: the predicted share that each machine sends to each (() if unknown).
    """

    name: str
    machines: int
    machine: Mapping[str, int]
    partitions: tuple[int, ...]
    lessons: tuple[LearningStep, ...] = ()
    predicted: float = -1.0
    between: tuple[tuple[float, ...], ...] = ()

    def machine_of(self, reference: AnyReference) -> int:
        """Returns the machine that reads a reference."""
        return self.machine.get(reader(reference.stream, reference.partition), NOWHERE)

    def prefer(
        self, job: Job, payloads: Sequence[Sequence[AnyReference]], tally: LocalityStats
    ) -> Job:
        """Returns a job with the preferred machines of its tasks; that of a payload is the machine
        of its first reference. A job of one task may run anywhere.
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
    """Adds to a tally where the tasks of the last job ran, and which data they received from where,
    as their outcomes report. Tasks without a report do not count.
    """
    readers = 0
    for outcome in done:
        number = outcome.partition if outcome.stage else readers
        readers += not outcome.stage
        preferences = tally.asked[outcome.stage] if tally.asked else ()
        machine = (
            preferences[number] if number < len(preferences) else NOWHERE
        )  # it was added since
        if machine != NOWHERE and outcome.executor:
            tally.wanted += 1
            tally.missed += tally.standing(machine) != outcome.executor
        for executor, (_, size, blobs) in (
            outcome.received_by_executor.items() if tally.asked else ()
        ):
            tally.read += size
            if executor != outcome.executor:
                tally.remote += size
                tally.blobs += blobs
