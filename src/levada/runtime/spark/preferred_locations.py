"""Runs tasks on their preferred executors.

Spark's Python API has no preferred locations; its classes have. A source whose splits each prefer
an executor is a ``ParallelCollectionRDD`` (payloads of the intake). The output of a shuffle has no
preference. It is zipped with such a source of *marks*, one byte for each blob, since each sender
has exactly one blob for each target; readers skip marks (``blob_transport.receive``). Spark follows
a preference if the executor has room soon (``spark_settings.PLACED``), and otherwise runs the task
elsewhere. It does not wait for a lost executor, so executors may join and leave.

An executor is assigned to a machine when it is first needed, and stays assigned while it lives;
then another one replaces it. Spark is not asked where tasks ran: they report it themselves
(``runtime.placement.task_placement``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.runtime.preferred_locations import NOWHERE, PreferredLocations
from levada.runtime.spark.blob_transport import location

JavaObject = Any  # py4j's object
MARK = b"."
MOST_MADE = register(f"{__name__}.MOST_MADE", 64)  # cached sources of marks


@frozen
class PreferredExecutors:
    """The preferred executors of a job's tasks ("": none), as Spark names them in a location."""

    payloads: tuple[str, ...]
    stages: tuple[tuple[str, ...], ...]


class ExecutorAssignment:
    """Assigns executors to machines."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._spark = context._jsc.sc()
        self._ids = ""
        self._of: dict[int, str] = {}  # machine -> executor
        self._location: dict[str, str] = {}  # of each living executor

    def resolve(self, places: PreferredLocations) -> PreferredExecutors:
        """Returns the preferred executors of tasks now; writes the present executors into the
        tally.
        """
        self._look(places.machines)
        at = [self._location.get(self._of.get(m, ""), "") for m in range(places.machines)]
        places.tally.executors = tuple(at)

        def executors_of(machines: Sequence[int]) -> tuple[str, ...]:
            return tuple("" if m == NOWHERE else at[m] for m in machines)

        return PreferredExecutors(
            executors_of(places.payloads), tuple(map(executors_of, places.stages))
        )

    def _look(self, machines: int) -> None:
        ids = str(self._spark.getExecutorIds().mkString(","))
        if ids == self._ids and len(self._of) == machines:
            return
        self._ids = ids
        living = sorted(filter(None, ids.split(",")), key=lambda i: (len(i), i))
        self._location = {i: at for i in living if (at := self._location_of(i))}
        self._of = {m: i for m, i in self._of.items() if i in self._location}
        free = iter([i for i in self._location if i not in self._of.values()])
        for machine in range(machines):
            if machine not in self._of and (new := next(free, None)) is not None:
                self._of[machine] = new

    def _location_of(self, executor: str) -> str:
        """Returns the executor's name in a location; "" as long as Spark does not know where it
        is.
        """
        if executor in self._location:
            return self._location[executor]
        try:
            address = str(self._spark.statusStore().executorSummary(executor).hostPort())
        except Py4JJavaError:
            address = ""
        if not (host := address.rpartition(":")[0]):
            self._ids = ""  # asked again
            return ""
        return location(host, executor)


class Members:
    """The executors of a session."""

    def __init__(self, context: SparkContext) -> None:
        self._spark = context._jsc.sc()
        self._ids = ""
        self._known: dict[str, tuple[str, int]] = {}  # name in a location, cores

    def cores(self) -> dict[str, int]:
        """Returns the cores of each present executor. Two calls into the JVM, some more for a new
        executor.
        """
        ids = str(self._spark.getExecutorIds().mkString(","))
        if ids != self._ids:
            living = sorted(filter(None, ids.split(",")), key=lambda i: (len(i), i))
            members = {i: self._known.get(i) or self._read_member(i) for i in living}
            self._known = {i: member for i, member in members.items() if member is not None}
            self._ids = ids if len(self._known) == len(living) else ""  # else asked again
        return {executor: cores for executor, (_, cores) in self._known.items()}

    def location_of(self, executor: str) -> str:
        """Returns the name of an executor in a location; "" for none."""
        return self._known[executor][0] if executor else ""

    def _read_member(self, executor: str) -> tuple[str, int] | None:
        """Reads an executor's location and cores from Spark; None as long as Spark does not know
        them.
        """
        try:
            summary = self._spark.statusStore().executorSummary(executor)
            host = str(summary.hostPort()).rpartition(":")[0]
            return (location(host, executor), int(summary.totalCores())) if host else None
        except Py4JJavaError:
            return None


class Sources:
    """Makes RDDs whose splits prefer executors. ``tag``: the class of their elements. An RDD
    without records, or of marks alone, is made once: jobs may share it, and each split of a new one
    takes a call into the JVM.
    """

    def __init__(self, context: SparkContext, tag: JavaObject) -> None:
        jvm = context._jvm
        self._spark, self._tag = context._jsc.sc(), tag
        self._collection = jvm.org.apache.spark.rdd.ParallelCollectionRDD
        self._list, self._map = jvm.java.util.ArrayList, jvm.java.util.HashMap
        self._copies = jvm.java.util.Collections.nCopies
        self._to_seq, self._to_map = jvm.PythonUtils.toSeq, jvm.PythonUtils.toScalaMap
        self._made: dict[tuple[int, tuple[str, ...]], JavaObject] = {}

    def placed_records(self, records: Sequence[bytes], where: Sequence[str]) -> JavaObject:
        """Returns an RDD with a record for each split, or with empty splits; each split prefers an
        executor. If there is one split, it has all records.
        """
        if not records:
            return self._marks(0, tuple(where))
        data = self._list()
        for record in records:
            data.add(bytearray(record))
        return self._rdd(data, where)

    def placed_splits(self, values: JavaObject, each: int, where: Sequence[str]) -> JavaObject:
        """Returns an RDD with splits of so many blobs, each of which prefers an executor."""
        return self._marks(each, tuple(where)).zip(values, self._tag)

    def _marks(self, each: int, where: tuple[str, ...]) -> JavaObject:
        key = each, where
        if key not in self._made:
            if len(self._made) >= MOST_MADE:
                self._made.clear()
            self._made[key] = self._rdd(self._copies(each * len(where), bytearray(MARK)), where)
        return self._made[key]

    def _rdd(self, data: JavaObject, where: Sequence[str]) -> JavaObject:
        preferred, at = self._map(), {each: self._only(each) for each in {*where} if each}
        for split, name in enumerate(where):
            if name:
                preferred.put(split, at[name])
        return self._collection(
            self._spark, self._to_seq(data), len(where), self._to_map(preferred), self._tag
        )

    def _only(self, location: str) -> JavaObject:
        one = self._list()
        one.add(location)
        return self._to_seq(one)
