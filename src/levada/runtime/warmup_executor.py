"""An executor that is on its way, and this process in the meantime
(docs/decisions/0019-here-until-spark-is-there.md).

``WarmupExecutor`` starts another executor on a thread of its own. Until that is there, jobs run
here, by the ``LocalExecutor``, which is the oracle of all others: outcomes, segments and state are
the same on both, so nothing is to be handed over. A job that has begun here ends here; the next one
runs on what is there then, and a light one still here: it would be one task there, too, and to send
it costs more than to run it (docs/decisions/0027-light-epochs-stay-here.md). What makes the start
fail is raised by ``check``, on the thread that asks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from levada.checkpoint.executor_affinity import ExecutorAffinity
from levada.runtime.executor import Executor, Job, LocalExecutor


class ExecutorStartup(Protocol):
    """How an executor comes to be."""

    def find(self) -> None:
        """Looks for what a start needs, such as a Java; raises if that is missing. Is quick."""

    def start(self) -> Executor:
        """The executor, once it is there; raises what hinders it, or that it has been ended."""

    def check(self) -> None:
        """Raises if what was started has ended by itself; is quick."""

    def end(self) -> None:
        """Ends what has been started, also while it starts; leaves no process behind."""


class WarmupExecutor:
    """Runs jobs in this process until another executor is there, and light ones for good.
    ``here``: whether it may; else nothing runs before that.
    """

    def __init__(self, start: ExecutorStartup, *, here: bool) -> None:
        self.here = here
        self._start = start
        self._here = LocalExecutor()
        self._now: Executor = self._here
        self._there, self._checked = threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._begin, name="levada start", daemon=True)
        self._thread.start()

    def _begin(self) -> None:
        try:
            self._start.find()
            self._checked.set()
            self._now = self._start.start()
            self._there.set()
        except BaseException as error:
            self._failure = error
            self._checked.set()

    def run(self, job: Job) -> list[bytes]:
        """The outcomes of ``job``, wherever it runs."""
        return (self._here if self.here and job.light else self._now).run(job)

    @property
    def now(self) -> Executor:
        """What runs the next job that is not light."""
        return self._now

    @property
    def is_warm(self) -> bool:
        """Whether the other executor runs the next job."""
        return self._there.is_set()

    def check(self) -> None:
        """Raises what made the start fail, or the other executor end."""
        if self._failure is not None:
            raise self._failure
        if self.is_warm:
            self._start.check()

    def await_requirements(self) -> None:
        """Waits until it is known whether there is what the start needs; raises if not."""
        self._checked.wait()
        self.check()

    def await_warm(self) -> None:
        """Waits until the other executor is there; raises what made its start fail."""
        self._thread.join()
        self.check()

    def end(self) -> None:
        """Ends the other executor, wherever its start stands."""
        self._start.end()


def runs_here(executor: Executor, job: Job) -> bool:
    """Whether a job would run in this process now."""
    if isinstance(executor, WarmupExecutor):
        return not executor.is_warm or (executor.here and job.light)
    return isinstance(executor, LocalExecutor)


def all_here(executor: Executor) -> bool:
    """Whether any job would run in this process now."""
    return isinstance(executor, LocalExecutor) or (
        isinstance(executor, WarmupExecutor) and not executor.is_warm
    )


def is_starting(executor: Executor) -> bool:
    """Whether jobs run in this process only until another executor is there."""
    return isinstance(executor, WarmupExecutor) and not executor.is_warm


def homes_of(executor: Executor) -> ExecutorAffinity | None:
    """The homes of partitions; None: there is no cluster, or not yet."""
    current = executor.now if isinstance(executor, WarmupExecutor) else executor
    homes: ExecutorAffinity | None = getattr(current, "homes", None)
    return homes


def missed_by(executor: Executor) -> tuple[int, int]:
    """How many jobs since this was asked last have not found a file, and how many of the next ones
    go by value for that.
    """
    current = executor.now if isinstance(executor, WarmupExecutor) else executor
    tell: Callable[[], tuple[int, int]] = getattr(current, "miss_counts", lambda: (0, 0))
    return tell()


def cores_of(executor: Executor) -> int:
    """The cores that the executors of a cluster had for the last job; 0: there is no cluster."""
    homes = homes_of(executor)
    return 0 if homes is None else homes.stats.cores


def jvm_seconds(executor: Executor) -> float | None:
    """The CPU time of Spark's JVM so far, s; None: there is none, or it is on other machines."""
    current = executor.now if isinstance(executor, WarmupExecutor) else executor
    seconds: Callable[[], float | None] = getattr(current, "jvm_seconds", lambda: None)
    return seconds()


def is_here(executor: Executor) -> bool:
    """Whether light jobs run on the thread that asks for them: their cost is its CPU time, and not
    what others let it wait.
    """
    return isinstance(executor, LocalExecutor) or (
        isinstance(executor, WarmupExecutor) and executor.here
    )
