"""Preferred locations of a job's tasks. A preference changes no result.

A placement numbers machines from 0 to k - 1. ``runtime.spark.preferred_locations`` assigns an
executor to each machine where jobs run. Executors join and leave. A task whose machine has no
executor, or no free core, runs elsewhere at once and counts as missed. A task reports where it ran
in its outcome. So a tally covers committed epochs only, and nothing waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from levada.core.frozen import frozen

NOWHERE = -1


@dataclass(slots=True)
class LocalityStats:
    """Counts how often tasks ran at their preferred location: how many had a preference, how many
    ran elsewhere. ``remote``: the bytes of the ``blobs`` that tasks received from other executors,
    out of all bytes that they ``read``. ``executors``: the executor of each machine now, as Spark
    names it in a location ("": none). ``asked``: the machines of the last job's tasks, by stage,
    readers first; () for a job of one task.
    """

    wanted: int = 0
    missed: int = 0
    remote: int = 0
    blobs: int = 0
    read: int = 0
    executors: tuple[str, ...] = ()
    asked: tuple[tuple[int, ...], ...] = ()

    def standing(self, machine: int) -> str:
        """Returns the number of the executor that represents a machine now."""
        known = 0 <= machine < len(self.executors)
        return self.executors[machine].rpartition("_")[2] if known else ""


@frozen
class PreferredLocations:
    """The machine of each payload, and of each partition in each stage (``NOWHERE``: any
    machine).
    """

    machines: int
    payloads: tuple[int, ...]
    stages: tuple[tuple[int, ...], ...]
    tally: LocalityStats = field(default_factory=LocalityStats)
