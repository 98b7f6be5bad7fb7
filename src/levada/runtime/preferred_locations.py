"""Where the tasks of a job would best run: a preference, which changes no result.

A placement speaks of machines 0 to k - 1; which executor stands for which of them is known where
jobs are run (``runtime.spark.preferred_locations``). Executors come and go: a task whose machine
has none, or has no room, runs elsewhere at once, and is counted as missed. Where it ran a task
tells itself, with its outcome: so what a tally has is of epochs that are committed, and nobody
waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from levada.core.frozen import frozen

NOWHERE = -1


@dataclass(slots=True)
class LocalityStats:
    """What has become of preferences so far: how many tasks had one, how many ran elsewhere;
    ``remote``: the bytes of the ``blobs`` that tasks have got from other executors, of all that
    they ``read``. ``executors``: which one stands for each machine now, as Spark names it in a
    location ("": none does). ``asked``: the machines of the last job's tasks, by stage, first those
    that read; () if it is one task.
    """

    wanted: int = 0
    missed: int = 0
    remote: int = 0
    blobs: int = 0
    read: int = 0
    executors: tuple[str, ...] = ()
    asked: tuple[tuple[int, ...], ...] = ()

    def standing(self, machine: int) -> str:
        """The number of the executor that stands for a machine now."""
        known = 0 <= machine < len(self.executors)
        return self.executors[machine].rpartition("_")[2] if known else ""


@frozen
class PreferredLocations:
    """The machine of each payload, and of each partition in each stage (``NOWHERE``: any)."""

    machines: int
    payloads: tuple[int, ...]
    stages: tuple[tuple[int, ...], ...]
    tally: LocalityStats = field(default_factory=LocalityStats)
