"""What a run costs: CPU of all processes of this tree, by whose it is, and the most memory that they held.

Driver, JVM and Python workers are told apart by the tree: below the JVM there are only Python workers and their daemon; a worker
that has ended is counted by the process that waited for it. The sum is ``levada.application.cpu_seconds()``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU seconds, user and system, of the driver, the JVM and the Python workers."""

    driver: float = 0.0
    jvm: float = 0.0
    workers: float = 0.0

    @property
    def total(self) -> float:
        """CPU seconds of all processes."""
        return self.driver + self.jvm + self.workers

    def __sub__(self, other: Cpu) -> Cpu:
        return Cpu(self.driver - other.driver, self.jvm - other.jvm, self.workers - other.workers)

    def to_json(self) -> dict[str, float]:
        """The three shares in seconds, rounded to a millisecond."""
        return {name: round(value, 3) for name, value in asdict(self).items()}


def cpu_of_tree() -> Cpu:
    """CPU so far. Costs some milliseconds (the tree is looked up), so it is called at the two ends of a measurement only."""
    me = psutil.Process()
    own = me.cpu_times()
    driver = own.user + own.system + own.children_user + own.children_system
    jvm = workers = 0.0
    for process in me.children(recursive=True):
        try:
            is_java, times = process.name() == "java", process.cpu_times()
        except psutil.Error:
            continue
        reaped = times.children_user + times.children_system
        if is_java:
            jvm += times.user + times.system
            workers += reaped
        else:
            workers += times.user + times.system + reaped
    return Cpu(driver, jvm, workers)


def peak_memory() -> int:
    """The peaks of resident memory (VmHWM) of all living processes of the tree, added up, in bytes.

    An upper bound: the peaks need not fall together, and pages that forked workers share count for each.
    """
    me = psutil.Process()
    return sum(_peak(process.pid) for process in [me, *me.children(recursive=True)])


def _peak(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)
