"""The home executor of each partition on a cluster. Its tasks run there epoch after epoch, since
their files are in the memory of that host.

A home is a preference (``preferred_locations``) and changes no result. A partition stays while its
executor lives and has no more than its share, which is proportional to its cores. Partitions of a
lost executor go to the one with the most room; a new executor gets the excess of others. Tasks
report their executor (``executor_here``). Cost: a loop over partitions an epoch.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

BUSY = 16
"""The most jobs that skip an executor without room within the wait (it hangs, or has other work).
It is asked again in the next job, then after one, two, four and more jobs. So an executor that was
busy for a moment has its partitions back at once, and a hanging one delays one of so many jobs.
"""
ABOVE = 3  # processes above a worker, of which one is its executor
NAME, HOST = b"--executor-id", b"--hostname"
"""Words with which Spark starts an executor, on every kind of cluster."""

Task = tuple[int, int, str]
"""A stage, a partition, and its executor ("": none)."""


class AffinityStats(msgspec.Struct):
    """The ``executors`` of a cluster in the last epoch, and their ``cores``. ``recurring_tasks``:
    stage tasks of the run that also ran in the epoch before. ``same_executor_tasks``: those that
    ran on the same executor. An epoch in one task counts as one, compared with the last such epoch.
    ``homes``: the executor where the tasks of each partition run (of partition 0 alone for an epoch
    in one task).
    """

    recurring_tasks: int = 0
    same_executor_tasks: int = 0
    executors: int = 0
    cores: int = 0
    homes: tuple[str, ...] = ()


class ExecutorAffinity:
    """The home executors of one run. Call ``assign`` before each job, and ``record_run`` after
    it.
    """

    def __init__(self) -> None:
        self._homes: tuple[str, ...] = ()
        self._asked: tuple[str, ...] = ()
        self._one = False  # the last job is one task
        self._jobs = 0
        self._busy: dict[
            str, tuple[int, int]
        ] = {}  # the job before which it is skipped, for how many
        self._at: dict[bool, dict[tuple[int, int], str]] = {True: {}, False: {}}  # by: one task
        self.stats = AffinityStats()

    def assign(self, partitions: int, cores: Mapping[str, int], *, one: bool) -> tuple[str, ...]:
        """Returns the preferred executor of each partition in the next job ("": none); of a job
        that is ``one`` task that of partition 0. ``cores``: of the present executors.
        """
        self._jobs, self._one = self._jobs + 1, one
        partitions = 1 if one else partitions
        executors = assign_partitions(partitions, self._homes, cores)
        self._homes = executors + self._homes[partitions:]
        self._asked = tuple(
            "" if self._busy.get(e, (0, 0))[0] > self._jobs else e for e in executors
        )
        self.stats.executors, self.stats.cores = len(cores), sum(cores.values())
        self.stats.homes = executors
        return self._asked

    def record_run(self, tasks: Iterable[Task]) -> None:
        """Records the executors of the job's stage tasks. Tasks that ran elsewhere report none."""
        located = [task for task in tasks if task[2]]
        now = (
            {(0, 0): located[0][2]}
            if located and self._one
            else {(s, p): at for s, p, at in located}
        )
        before = self._at[self._one]
        self.stats.recurring_tasks += sum(key in before for key in now)
        self.stats.same_executor_tasks += sum(before.get(key) == at for key, at in now.items())
        self._at[self._one] = now or before
        asked = [(self._asked[p], at) for (_, p), at in now.items() if self._asked[p]]
        refused = {executor for executor, at in asked if executor != at}
        for executor in {executor for executor, _ in asked} - refused:
            self._busy.pop(executor, None)
        for executor in refused:
            _, last = self._busy.get(executor, (0, -1))
            many = min(max(2 * last, last + 1), BUSY)
            self._busy[executor] = self._jobs + many + 1, many


def assign_partitions(
    partitions: int, before: Sequence[str], cores: Mapping[str, int]
) -> tuple[str, ...]:
    """Assigns an executor to each partition, up to the share of each: its previous one (``before``)
    if it may stay, else the one with the most room; "" without executors.

    >>> assign_partitions(4, (), {"0": 1, "1": 1})
    ('0', '1', '0', '1')
    >>> assign_partitions(4, ("0", "1", "0", "1"), {"0": 1, "1": 1, "2": 2})
    ('0', '1', '2', '2')
    >>> assign_partitions(4, ("0", "1", "2", "2"), {"1": 1, "2": 2})
    ('1', '1', '2', '2')
    """
    total = sum(cores.values())
    if not total:
        return ("",) * partitions
    room = {name: -(-partitions * core_count // total) for name, core_count in cores.items()}
    out = [""] * partitions
    for p, name in enumerate(before[:partitions]):
        if room.get(name, 0) > 0:
            out[p] = name
            room[name] -= 1
    for p, name in enumerate(out):
        if not name:
            out[p] = most = max(room, key=room.__getitem__)
            room[most] -= 1
    return tuple(out)


@cache
def executor_here() -> str:
    """Returns the executor whose worker this process is; "" if it is none, or the system does not
    know it.
    """
    return _executor_argument(NAME)


@cache
def host_here() -> str:
    """Returns the host of this process's executor, as Spark names it; "" if there is none."""
    return _executor_argument(HOST)


def _executor_argument(word: bytes) -> str:
    """Returns the argument after a word in the command line of the executor above this process."""
    pid = os.getpid()
    try:
        for _ in range(ABOVE):
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if NAME in words:
                return words[words.index(word) + 1].decode()
    except (OSError, IndexError, ValueError):  # no such files on this system, or no such word
        return ""
    return ""
