"""What a run costs: CPU of all processes of this tree, by whose it is, and the most memory held.

Driver, JVM and Python workers are told apart by the tree: what is below the JVM are Python workers
and their daemons. A process that has ended is counted by the parent that waited for it; but Spark's
Python daemon ignores its children's ends, and then nobody counts them. So a ``Tree`` remembers each
process as it last saw it: what a worker did between that and its end is all that is lost.

What a process uses is read from its clock (nanoseconds), and what a JVM's compiler uses from the
statistics of its threads, which Linux keeps in nanoseconds too. Both grow while a JVM is cold.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path

import psutil

COMPILER = ("C1 CompilerThre", "C2 CompilerThre")  # names that Linux cuts


@dataclass(frozen=True, slots=True)
class Cpu:
    """CPU seconds, user and system, of the driver, the JVM and the Python workers; ``compiler`` is
    the part of the JVM that its compiler's threads have used.
    """

    driver: float = 0.0
    jvm: float = 0.0
    workers: float = 0.0
    compiler: float = 0.0

    @property
    def total(self) -> float:
        """CPU seconds of all processes."""
        return self.driver + self.jvm + self.workers

    def __sub__(self, other: Cpu) -> Cpu:
        return Cpu(*(a - b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def __add__(self, other: Cpu) -> Cpu:
        return Cpu(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def to_json(self, digits: int = 3) -> dict[str, float]:
        """All shares in seconds, rounded to a millisecond or to so many digits."""
        return {name: round(value, digits) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class _Process:
    """A process as it was seen: CPU seconds, with those of children it has waited for; whether its
    parent waits for it.
    """

    below_jvm: bool
    is_jvm: bool
    own: float
    waited: float
    awaited: bool
    compiler: float = 0.0

    @property
    def cpu(self) -> Cpu:
        """Whose it is; what a JVM has waited for are workers."""
        if self.is_jvm:
            return Cpu(jvm=self.own, workers=self.waited, compiler=self.compiler)
        whole = self.own + self.waited
        return Cpu(workers=whole) if self.below_jvm else Cpu(driver=whole)


class Tree:
    """This process and all below it. A look costs some milliseconds, or without ``scan`` less than
    one; neither counts.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[int, float], _Process] = {}
        self._gone = Cpu()
        self._looking = 0.0
        self._compilers: dict[tuple[int, str], float] = {}

    def cpu(self, *, scan: bool = True) -> Cpu:
        """CPU so far, processes that have ended since the last look included as they were then.

        Without ``scan`` only processes of the last scan are read, if none has ended; the compiler's
        part is that of the last scan, too.
        """
        began = time.thread_time()
        if scan or not self._read_clocks():
            self._scan()
        whole = sum((process.cpu for process in self._seen.values()), self._gone)
        self._looking += time.thread_time() - began
        return whole

    def _scan(self) -> None:
        now = dict(_processes(time.process_time() - self._looking, self._compilers))
        for key, process in self._seen.items():
            if key not in now and not process.awaited:
                self._gone += process.cpu
        self._seen = now

    def _read_clocks(self) -> bool:
        """Reads the clocks of all processes that are known; False: there are none, or one has
        ended.
        """
        mine = time.process_time() - self._looking
        own = {
            key: mine if key[0] == os.getpid() else _clock(key[0], math.nan) for key in self._seen
        }
        if not own or any(map(math.isnan, own.values())):
            return False
        self._seen = {key: replace(process, own=own[key]) for key, process in self._seen.items()}
        return True


def _processes(
    mine: float, compilers: dict[tuple[int, str], float]
) -> Iterator[tuple[tuple[int, float], _Process]]:
    """All processes; ``mine``: what this one has used, without its looks at processes."""
    me = psutil.Process()
    below: set[int] = set()  # pids of JVMs and of what is below them
    for process in [me, *me.children(recursive=True)]:
        try:
            with process.oneshot():
                key, parent, times = (
                    (process.pid, process.create_time()),
                    process.ppid(),
                    process.cpu_times(),
                )
                is_jvm = process.name() == "java"
        except psutil.Error:
            continue
        if is_jvm or parent in below:
            below.add(process.pid)
        own = mine if process.pid == me.pid else _clock(process.pid, times.user + times.system)
        waited = times.children_user + times.children_system
        awaited = not _ignores_ends(parent)
        compiler = _compiler(process.pid, compilers) if is_jvm else 0.0
        yield key, _Process(parent in below, is_jvm, own, waited, awaited, compiler)


def _clock(pid: int, ticks: float) -> float:
    """What a process has used, by its clock (``clock_getcpuclockid``); ``ticks`` if it has gone."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return ticks


def _compiler(pid: int, known: dict[tuple[int, str], float]) -> float:
    """What the threads of a JVM's compiler have used, also those that have ended since they were
    ``known``.
    """
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            if (task / "comm").read_text().startswith(COMPILER):
                known[pid, task.name] = int((task / "schedstat").read_text().split()[0]) / 1e9
    return sum(used for (jvm, _), used in known.items() if jvm == pid)


def _ignores_ends(pid: int) -> bool:
    """Whether a process ignores SIGCHLD, and so does not count what its children used."""
    word = next((line.split()[1] for line in _status(pid) if line.startswith("SigIgn:")), "0")
    return bool(int(word, 16) >> (signal.SIGCHLD - 1) & 1)


def peak_memory() -> int:
    """The peaks of resident memory (VmHWM) of all living processes of the tree, added up, in bytes.

    An upper bound: the peaks need not fall together, and pages that forked workers share count for
    each.
    """
    me = psutil.Process()
    return sum(_peak(process.pid) for process in [me, *me.children(recursive=True)])


def _peak(pid: int) -> int:
    return next(
        (int(line.split()[1]) * 1024 for line in _status(pid) if line.startswith("VmHWM:")), 0
    )


def _status(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return []
