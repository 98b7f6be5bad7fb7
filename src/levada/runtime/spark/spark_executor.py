"""Runs an epoch's job as one Spark job on RDDs of bytes (docs/architecture.md#an-epoch).

    payloads (one split each) -> intake -> shuffle by target -> stage 1 -> shuffle -> ... -> last
    stage -> outcomes

Spark moves blobs and nothing else. Without payloads the job starts at stage 1, so timers still run
on every partition; a fused job is one task. The order of blobs and outcomes is that of
``LocalExecutor``.

The RDDs are built on Spark's JVM classes, like pyspark's own ``RDD``, because the small jobs of
quiet epochs are all overhead. Measured against ``RDD.partitionBy`` and ``collect`` (2 cores, 2
partitions, empty blobs; JVM CPU-ms a job):

- the shuffle's key and value are declared as objects, so that Spark keeps its Java serializer: for
  bytes it would choose Kryo, which is built anew in every task (56 -> 40);
- ``collectAsync`` in place of ``collect``: Spark's closure cleaner then reads one small class and
  not its two largest ones (40 -> 30);
- references to JVM classes and methods are looked up once, not for every job.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import time
import uuid
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.util import _load_from_socket

from levada.checkpoint.executor_affinity import ExecutorAffinity
from levada.core.code_loading import write_command
from levada.errors import EngineError, LevadaError, LostTaskError
from levada.runtime.executor import EPOCH, Job
from levada.runtime.preferred_locations import PreferredLocations
from levada.runtime.spark import spark_tasks
from levada.runtime.spark.blob_transport import (
    THRESHOLD,
    BlobLostError,
    BlobTransport,
    HostLocality,
)
from levada.runtime.spark.jvm_failure import GONE, jvm_failure, keep_quiet
from levada.runtime.spark.preferred_locations import (
    ExecutorAssignment,
    Members,
    PreferredExecutors,
    Sources,
)
from levada.runtime.spark.spark_settings import shares_host
from levada.runtime.spark.task_errors import decode_error

if TYPE_CHECKING:
    from levada.runtime.spark.executor_checks import ExecutorChecks

BESIDE = "spark.shuffle.readHostLocalDisk"
_JAVA_CLASS = re.compile(r"^([a-z]\w*\.)+\w+: ")
JavaObject = Any  # py4j's object; pyspark has no types for it


class SparkExecutor:
    """Runs jobs on Spark. ``threshold``: the bytes from which on a blob goes by reference between
    executors of a host.
    """

    def __init__(self, session: SparkSession, *, threshold: int = THRESHOLD) -> None:
        self._context = session.sparkContext
        self._threshold = threshold
        self._serials = itertools.count()
        keep_quiet(self._context)
        local = shares_host(self._context.master)
        # Spark deletes it
        self._scratch = os.path.join(self._context._temp_dir, "levada-xfer") if local else None
        jvm = self._context._jvm
        self._python_rdd = jvm.PythonRDD
        self._read_file, self._values = (
            self._python_rdd.readRDDFromFile,
            self._python_rdd.valueOfPair,
        )
        self._serve = self._python_rdd.serveIterator
        self._function = jvm.SimplePythonFunction
        self._pairs, self._partitioner = jvm.PairwiseRDD, jvm.PythonPartitioner
        self._java_pairs = jvm.org.apache.spark.api.java.JavaPairRDD.fromRDD
        self._as_scala = jvm.scala.jdk.javaapi.CollectionConverters.asScala
        self._object_tag = getattr(getattr(jvm.scala.reflect, "ClassTag$"), "MODULE$").AnyRef()
        self.homes: ExecutorAffinity | None = None if local else ExecutorAffinity()
        self._clock = cpu_clock(jvm.java.lang.ProcessHandle.current().pid()) if local else None
        # called before each epoch with the present executors
        self.sight: ExecutorChecks | None = None
        # if executors of one host may not read each other's files, they count as hosts
        shared = str(self._context.getConf().get(BESIDE, "true")) == "true"
        self._near, self._name = HostLocality(by_host=shared), uuid.uuid4().hex
        if not local:
            self._members = Members(self._context)
            self._roster = ExecutorAssignment(self._context)
            self._sources = Sources(self._context, self._object_tag)

    def run(self, job: Job) -> list[bytes]:
        """Returns the outcomes, by partition and place. Raises an exception that a function raised
        in a task, and ``EngineError`` if Spark has failed, or its JVM has ended.
        """
        try:
            return self._run(job)
        except GONE as error:
            if (failure := jvm_failure(self._context)) is not None:
                raise failure from error
            if isinstance(error, Py4JError):
                raise spark_error(error) from error
            raise

    def _run(self, job: Job) -> list[bytes]:
        homes, others = self._homes_of(job)
        if job.fused:
            payloads = job.payloads
            source = (
                self._sources.placed_records(payloads, homes)
                if homes
                else self._source(payloads, 1)
            )
            return self._collect(
                self._map(source, spark_tasks.FusedTask(replace(job, payloads=[])))
            )
        if job.places is not None and self._scratch is None:
            return self._run_placed(job, job.places)
        if homes:
            # tasks without a preference would also run on requested executors, and wait there
            intake = tuple(itertools.islice(itertools.cycle(homes), len(job.payloads) * others))
            return self._run_near(job, PreferredExecutors(intake, (homes,) * job.stages))
        folder = (
            None if self._scratch is None else os.path.join(self._scratch, str(next(self._serials)))
        )
        try:
            return self._collect(self._stages_rdd(job, BlobTransport(folder, self._threshold)))
        finally:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def jvm_seconds(self) -> float | None:
        """Returns the CPU time of the JVM so far, in s; None if executors have other JVMs."""
        try:
            return None if self._clock is None else time.clock_gettime(self._clock)
        except OSError:  # this system has no such clocks, or the JVM has ended
            return None

    def miss_counts(self) -> tuple[int, int]:
        """Returns the number of jobs that did not find a file of another executor of the host since
        the last call, and of the next ones that go by value because of it.
        """
        return self._near.miss_counts()

    def _stages_rdd(self, job: Job, carrier: BlobTransport) -> JavaObject:
        """Returns the RDD of outcomes of a job, stage after stage."""
        intake, stage = job.functions
        if job.payloads:
            rdd = self._source(job.payloads, len(job.payloads))
            rdd = self._exchange(
                rdd,
                spark_tasks.IntakeTask(job.context, intake, carrier, job.partitions),
                job.partitions,
            )
        else:
            rdd = self._source([], job.partitions)
        for number in range(1, job.stages):
            task = spark_tasks.StageTask(job.context, stage, carrier, job.partitions, number)
            rdd = self._exchange(rdd, task, job.partitions)
        return self._map(rdd, spark_tasks.LastStageTask(job.context, stage, job.stages))

    def _run_placed(self, job: Job, places: PreferredLocations) -> list[bytes]:
        """Returns the outcomes of a job with placed tasks."""
        return self._run_near(job, self._roster.resolve(places))

    def _homes_of(self, job: Job) -> tuple[tuple[str, ...], bool]:
        """Returns the preferred executors of each partition's tasks, (): there is no choice; and
        whether there are executors that must not receive any.
        """
        if self.homes is None or job.functions != EPOCH:
            return (), False
        cores = there = self._members.cores()
        if self.sight is not None:
            responding = self.sight(there, wait=job.places is not None)
            cores = {
                executor: core_count
                for executor, core_count in there.items()
                if executor in responding
            }
        homes = self.homes.assign(job.partitions, cores, one=job.fused)
        return tuple(self._members.location_of(executor) for executor in homes), len(cores) < len(
            there
        )

    def _run_near(self, job: Job, where: PreferredExecutors) -> list[bytes]:
        """Run a job whose tasks prefer executors, and return its outcomes. Blobs to a near task go
        by file; all blobs go by value if such a file was not found.
        """
        if (hosts := self._near.hosts(where.stages)) is not None:
            folder = os.path.join(self._name, str(next(self._serials)))
            carriers = [
                BlobTransport(folder, self._threshold, stage_hosts) for stage_hosts in hosts
            ]
            try:
                return self._collect(self._placed_rdd(job, where, carriers))
            except BlobLostError:
                self._near.record_miss()
        return self._collect(self._placed_rdd(job, where, [BlobTransport()] * job.stages))

    def _placed_rdd(
        self, job: Job, where: PreferredExecutors, carriers: Sequence[BlobTransport]
    ) -> JavaObject:
        """Returns the RDD of outcomes of a job whose tasks prefer executors, with a transport for
        each stage.
        """
        intake, stage = job.functions
        senders = len(job.payloads)
        task: object = spark_tasks.IntakeTask(job.context, intake, carriers[0], job.partitions)
        if senders and not where.payloads:
            rdd = self._source(job.payloads, senders)
        else:
            rdd = self._sources.placed_records(job.payloads, where.payloads or where.stages[0])
        for number, at in enumerate(where.stages, 1):
            if number > 1 or senders:
                sent = self._exchange(rdd, task, job.partitions)
                rdd = self._sources.placed_splits(sent, senders, at)
            ahead = carriers[number % job.stages]  # the last stage sends nothing
            task = spark_tasks.StageTask(job.context, stage, ahead, job.partitions, number)
            senders = job.partitions
        return self._map(rdd, spark_tasks.LastStageTask(job.context, stage, job.stages))

    def _source(self, records: list[bytes], splits: int) -> JavaObject:
        """Returns an RDD of these records, spread evenly over splits."""
        context = self._context
        return context._serialize_to_jvm(
            records,
            spark_tasks.PLAIN,
            lambda path: self._read_file(context._jsc, path, splits),
            lambda: context._jvm.PythonParallelizeServer(context._jsc.sc(), splits),
        ).rdd()

    def _map(self, rdd: JavaObject, task: Any, writer: object = spark_tasks.MARKED) -> JavaObject:
        """Returns the RDD that a task makes of each split of bytes."""
        context = self._context
        command = write_command((task, None, spark_tasks.PLAIN, writer))
        function = self._function(
            bytearray(command),
            context.environment,
            context._python_includes,
            context.pythonExec,
            context.pythonVer,
            [],
            context._javaAccumulator,
        )
        return self._python_rdd(rdd, function, False, False)

    def _exchange(self, rdd: JavaObject, task: object, partitions: int) -> JavaObject:
        """Returns the output of a task, as an RDD of the blobs of each target partition."""
        sent = self._java_pairs(
            self._pairs(self._map(rdd, task, spark_tasks.ADDRESSED)),
            self._object_tag,
            self._object_tag,
        )
        return self._values(sent.partitionBy(self._partitioner(partitions, 0))).rdd()

    def _collect(self, rdd: JavaObject) -> list[bytes]:
        """Run the job and fetch its outcomes."""
        try:
            outcomes = rdd.asJavaRDD().collectAsync().get()
            served = self._serve(self._as_scala(outcomes.iterator()), "levada outcomes")
            loaded = _load_from_socket(served, spark_tasks.PLAIN)
            # PySpark 4.0 and 4.1 return the stream itself, and close it when it is deleted
            with loaded if hasattr(loaded, "__enter__") else nullcontext(loaded) as stream:
                records = list(stream)
        except (Py4JJavaError, PySparkException) as error:
            raise spark_error(error) from error
        return [self._outcome(record) for record in records]

    def _outcome(self, record: bytes) -> bytes:
        """Returns the outcome in a record of the last stage; raises the error that it may contain
        instead.
        """
        body = record[:-1]
        if record[-1:] == spark_tasks.OUTCOME:
            return body
        error = decode_error(body)
        if self._scratch is None and not isinstance(error, LevadaError):
            # a disk or a network of one host may have failed: the epoch runs again
            raise LostTaskError(f"A task failed with {type(error).__name__}: {error}") from error
        raise error


def cpu_clock(pid: int) -> int:
    """Returns the clock of a process's CPU time, as Linux numbers it (``clock_getcpuclockid``).

    >>> time.clock_gettime(cpu_clock(os.getpid())) > 0
    True
    """
    return (~pid << 3) | 2


def spark_error(error: Exception) -> EngineError:
    """Returns a ``LostTaskError`` with the cause that Spark gives; ``EngineError`` if Spark has
    ended.
    """
    kind = EngineError if isinstance(error, Py4JNetworkError) else LostTaskError
    return kind(f"Spark could not run the epoch: {cause(error)}")


def cause(error: Exception) -> str:
    """Returns one line about an exception of Spark's JVM: the first cause, without Java's names and
    traces.

    >>> text = "An error occurred while calling o1.get.\\n: a.BException: x\\n at y\\n"
    >>> cause(Exception(text + "Caused by: c.DException: z"))
    'z'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    raised = [
        line.removeprefix("Caused by: ").removeprefix(": ")
        for line in lines
        if line.startswith(("Caused by: ", ": "))
    ]
    messages = raised[1:] or raised or lines[:1] or [type(error).__name__]
    return _JAVA_CLASS.sub("", messages[0])
