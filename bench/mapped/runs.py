"""A run of the engine on a cluster, as one wants it: one task, or spread by a placement; with what
its epochs behind the first ``WARM`` cost, and what Spark says of its stages.

``LEVADA_MASTER`` is the cluster (else ``local-cluster[4,1,1024]``, four executors with a core
each), ``LEVADA_MACHINES`` how many executors it has (else four), ``LEVADA_TURNS`` how often each
way runs (else twice). Executors of one host read each other's shuffle files over the network, as
hosts do, and all blobs go by value (``bench.by_value``).
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import msgspec

from bench.by_value import by_value
from bench.mapped.clock import CLOCKED
from bench.mapped.works import EPOCHS, WARM, Work, Written
from bench.measure import Cpu, Tree
from bench.result import check_count
from levada import Engine
from levada.checkpoint.manifest import Choice, Manifest
from levada.runtime.cost_model.parallelism_choice import SPREAD
from levada.runtime.driver.parallelism import ParallelismPolicy
from levada.runtime.executor import Executor, Job, LocalExecutor
from levada.runtime.spark.spark_executor import SparkExecutor

MACHINES = int(os.environ.get("LEVADA_MACHINES", "4"))
MASTER = os.environ.get("LEVADA_MASTER", f"local-cluster[{MACHINES},1,1024]")
PARTITIONS = 8
TURNS = int(os.environ.get("LEVADA_TURNS", "2"))
T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
CONFIG = {
    "spark.executorEnv.PYTHONPATH": str(ROOT),  # workers call what is in bench
    "spark.shuffle.readHostLocalDisk": "false",
    "spark.locality.wait.process": "30s",  # executors share this machine's cores
    "spark.ui.retainedStages": "100000",
    "spark.ui.retainedJobs": "100000",
    "spark.ui.retainedTasks": "1000000",
}


@contextmanager
def cluster() -> Iterator[Any]:
    """A session of our own on ``MASTER``."""
    from levada.runtime.spark.spark_session import start_session, stop_session

    with tempfile.TemporaryDirectory(prefix="levada-mapped-") as scratch:
        session = start_session(MASTER, config=CONFIG, scratch=Path(scratch))
        try:
            with by_value():
                yield session
        finally:
            stop_session(session)


@dataclass(frozen=True, slots=True)
class SparkStage:
    """What Spark says of a stage of its own: tasks, seconds of CPU time of their threads in the
    JVM, seconds that they ran and waited for blobs, bytes from other executors and from the same.
    """

    number: int
    tasks: int
    cpu: float
    ran: float
    waited: float
    remote: int
    local: int


class Stages:
    """Spark's stages from now on, by their places in their jobs: the i-th is stage i of the
    engine.
    """

    def __init__(self, session: Any) -> None:
        self._context = session.sparkContext
        self._seen = -1
        self.more()

    def more(self) -> list[list[SparkStage]]:
        """Those since this was asked last, job by job."""
        context = self._context
        context._jsc.sc().listenerBus().waitUntilEmpty()
        status = context._jsc.sc().statusStore()
        jobs = status.jobsList(None)
        mine = [jobs.apply(i) for i in range(jobs.size())]
        mine = sorted((j for j in mine if j.jobId() > self._seen), key=lambda j: j.jobId())
        found = []
        for job in mine:
            self._seen = max(self._seen, job.jobId())
            ids = job.stageIds()
            stages = sorted(int(ids.apply(i)) for i in range(ids.size()))
            found.append([self._of(status, n, at) for n, at in enumerate(stages)])
        return found

    def _of(self, status: Any, number: int, at: int) -> SparkStage:
        told = status.lastStageAttempt(at)
        return SparkStage(
            number,
            told.numTasks(),
            told.executorCpuTime() / 1e9,
            told.executorRunTime() / 1e3,
            told.shuffleFetchWaitTime() / 1e3,
            told.shuffleRemoteBytesRead(),
            told.shuffleLocalBytesRead(),
        )


class _Clocked:
    """An executor whose tasks have clocks."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def run(self, job: Job) -> list[bytes]:
        """As the executor does."""
        return self._executor.run(replace(job, functions=CLOCKED))


class ClockedEngine(Engine):
    """An engine whose tasks have clocks; ``session``: of Spark, or None for this process."""

    def __init__(self, session: Any, **options: Any) -> None:
        super().__init__(spark=session or False, **options)
        self._session = session

    def _executor(self) -> Executor:
        return _Clocked(SparkExecutor(self._session) if self._session else LocalExecutor())


@dataclass
class Told:
    """A run: what was right and came, elements and epochs that count, their CPU and time; tasks
    that were placed and ran elsewhere; Spark's jobs that count, the first epoch that does.
    """

    count: int
    rows: int = 0
    epochs: int = 0
    cpu: Cpu = field(default_factory=Cpu)
    wall: float = 0.0
    first: int = 0
    wanted: int = 0
    missed: int = 0
    jobs: list[list[SparkStage]] = field(default_factory=list)

    def brief(self) -> dict[str, Any]:
        """Rows a second and a CPU-second, remote bytes."""
        remote = sum(s.remote for job in self.jobs for s in job)
        near = sum(s.local for job in self.jobs for s in job)
        return {
            "count": self.count,
            "rows_per_s": round(self.rows / max(self.wall, 1e-9)),
            "rows_per_cpu_s": round(self.rows / max(self.cpu.total, 1e-9)),
            "cpu_ms_an_epoch": round(self.cpu.total / max(self.epochs, 1) * 1e3, 1),
            "ms_an_epoch": round(self.wall / max(self.epochs, 1) * 1e3, 1),
            "cpu": self.cpu.to_json(),
            "remote_bytes_a_row": round(remote / max(self.rows, 1), 1),
            "remote_share": round(remote / max(remote + near, 1), 4),
            "tasks": self.wanted,
            "missed": self.missed,
        }


def together(found: Sequence[Told]) -> Told:
    """Several runs as one."""
    told = Told(found[0].count)
    for one in found:
        told.rows, told.epochs = told.rows + one.rows, told.epochs + one.epochs
        told.cpu, told.wall = told.cpu + one.cpu, told.wall + one.wall
        told.wanted, told.missed = told.wanted + one.wanted, told.missed + one.missed
        told.jobs = [*told.jobs, *one.jobs]
    return told


def in_turns(ways: Mapping[str, Callable[[int], T]]) -> dict[str, list[T]]:
    """Each way ``TURNS`` times, to and fro, since a JVM gets faster as it goes on.

    >>> in_turns({"a": str, "b": str})["b"] == [str(turn) for turn in range(TURNS)]
    True
    """
    found: dict[str, list[T]] = {way: [] for way in ways}
    for turn in range(TURNS):
        for way in list(ways)[:: 1 - 2 * (turn % 2)]:
            found[way].append(ways[way](turn))
    return found


class Watch:
    """Looks at manifests: the CPU and time between the end of the warm-up and the last epoch that
    read something.
    """

    def __init__(self, warm: int, rows: int) -> None:
        self._warm, self._rows, self._tree = warm, rows, Tree()
        self._marks: list[tuple[int, int, Cpu, float]] = []
        self.over = threading.Event()

    def see(self, manifest: Manifest) -> None:
        """An epoch has been committed."""
        read = sum(stream.elements for stream in manifest.streams.values())
        if (read >= self._warm and not self._marks) or (read >= self._rows and self._is_open):
            at = time.perf_counter()
            self._marks.append((manifest.epoch, read, self._tree.cpu(), at))

    @property
    def _is_open(self) -> bool:
        return len(self._marks) == 1

    def tell(self, told: Told) -> None:
        """What lies between."""
        assert len(self._marks) == 2, "warm-up is over before the rows are"
        (first, before, cpu, at), (last, rows, after, end) = self._marks
        told.rows, told.epochs, told.first = rows - before, last - first, first + 1
        told.cpu, told.wall = after - cpu, end - at


@contextmanager
def forced(way: str) -> Iterator[None]:
    """All epochs go one way; "": as the engine chooses."""
    own = ParallelismPolicy.decide

    def decide(self: ParallelismPolicy, *given: Any, **named: Any) -> Choice:
        choice = own(self, *given, **named)
        self.choice = msgspec.structs.replace(choice, mode=way or choice.mode)
        return self.choice

    with patch.object(ParallelismPolicy, "decide", decide):
        yield


def run(
    work: Work,
    written: Written,
    root: Path,
    *,
    make: Callable[..., Engine] = Engine,
    stages: Stages | None = None,
    way: str = SPREAD,
    options: Mapping[str, Any],
) -> Told:
    """A run over what was written; the number of its results is checked. ``make`` takes
    ``options`` and those that all runs have.
    """
    epoch = -(-written.rows // (WARM + EPOCHS))
    given = {"checkpoint": root, "seed": 7, "epoch_rows": epoch, "keep_results": False}
    watch = Watch(WARM * epoch, written.rows)
    with forced(way), make(**given, **{"partitions": PARTITIONS, **options}) as engine:
        for name, stream in written.streams.items():
            engine.stream(name, **stream)
        for name, (text, dialect) in work.queries.items():
            engine.register(text, name=name, dialect=dialect)
        engine._on_epoch(watch.see)
        engine.start(once=True)
        engine.await_end()
        assert engine._driver is not None, "it has been started"
        last = engine._driver.last
    check_count(f"{work.name} in {root.name}", last.results, written.results)
    told = Told(last.results)
    watch.tell(told)
    if last.placement is not None:
        told.wanted, told.missed = last.placement.preferred_tasks, last.placement.displaced_tasks
    if stages is not None:
        told.jobs = stages.more()[told.first - 1 :][: told.epochs]
    return told
