"""Runs jobs in this process until another executor has started
(docs/decisions/0019-here-until-spark-is-there.md).

``WarmupExecutor`` starts the other executor on a thread of its own. Until that one is ready, the
``LocalExecutor`` runs the jobs. It is the oracle of all executors: outcomes, segments and state are
the same on both, so nothing has to be handed over. A job ends where it began. The next job runs on
the executor that is ready then. Light jobs always run here: a light job would be one task on the
other executor too, and sending it costs more than running it
(docs/decisions/0027-light-epochs-stay-here.md). If the start fails, ``check`` raises the cause on
the thread that calls it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from levada.checkpoint.executor_affinity import ExecutorAffinity
from levada.runtime.executor import Executor, Job, LocalExecutor


class ExecutorStartup(Protocol):
    """Starts and ends another executor. A protocol, since ``runtime.spark`` imports this module."""

    def find(self) -> None:
        """Checks the requirements of a start, such as a Java; raises if one is missing. Returns
        quickly.
        """

    def start(self) -> Executor:
        """Returns the executor when it is ready. Raises what prevents the start, or that it was
        ended.
        """

    def check(self) -> None:
        """Raises if the started executor has ended by itself. Returns quickly."""

    def end(self) -> None:
        """Ends the executor, also during its start. Leaves no process behind."""


class WarmupExecutor:
    """Runs jobs in this process until another executor is ready, and light jobs always. ``here``:
    whether jobs may run in this process; otherwise jobs wait for the other executor.
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
        """Returns the outcomes of ``job``, on either executor."""
        return (self._here if self.here and job.light else self._now).run(job)

    @property
    def now(self) -> Executor:
        """The executor of the next job that is not light."""
        return self._now

    @property
    def is_warm(self) -> bool:
        """Whether the other executor runs the next job."""
        return self._there.is_set()

    def check(self) -> None:
        """Raises the error that made the start fail, or that ended the other executor."""
        if self._failure is not None:
            raise self._failure
        if self.is_warm:
            self._start.check()

    def await_requirements(self) -> None:
        """Waits until the requirements of the start are checked; raises if one is missing."""
        self._checked.wait()
        self.check()

    def await_warm(self) -> None:
        """Waits until the other executor is ready; raises the error that made its start fail."""
        self._thread.join()
        self.check()

    def end(self) -> None:
        """Ends the other executor, in any phase of its start."""
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
    """Whether jobs run in this process only until another executor is ready."""
    return isinstance(executor, WarmupExecutor) and not executor.is_warm


def homes_of(executor: Executor) -> ExecutorAffinity | None:
    """Returns the affinity of partitions to executors; None: there is no cluster, or not yet."""
    current = executor.now if isinstance(executor, WarmupExecutor) else executor
    homes: ExecutorAffinity | None = getattr(current, "homes", None)
    return homes


def missed_by(executor: Executor) -> tuple[int, int]:
    """Counts the jobs that did not find a file since the last call, and the next jobs that send
    their blobs by value because of it.
    """
    current = executor.now if isinstance(executor, WarmupExecutor) else executor
    tell: Callable[[], tuple[int, int]] = getattr(current, "miss_counts", lambda: (0, 0))
    return tell()


def cores_of(executor: Executor) -> int:
    """Returns the cores that a cluster's executors had for the last job; 0: there is no cluster."""
    homes = homes_of(executor)
    return 0 if homes is None else homes.stats.cores


def jvm_seconds(executor: Executor) -> float | None:
    """Returns the CPU time of Spark's JVM so far, in s; None: there is no JVM, or it runs on other
    machines.
    """
    current = executor.now if isinstance(executor, WarmupExecutor) else executor
    seconds: Callable[[], float | None] = getattr(current, "jvm_seconds", lambda: None)
    return seconds()


def is_here(executor: Executor) -> bool:
    """Whether light jobs run on the calling thread. Their cost is then the CPU time of that thread,
    without the time that it waits for others.
    """
    return isinstance(executor, LocalExecutor) or (
        isinstance(executor, WarmupExecutor) and executor.here
    )
