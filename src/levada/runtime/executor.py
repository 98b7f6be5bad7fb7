"""Defines the job of an epoch, and runs it in this process.

A job is two pure functions and their data (docs/architecture.md#an-epoch):

    intake(context, payload) -> [(target, blob), ...]
        once for each payload
    stage(context, stage, partition, blobs) -> [(target, blob), ..]
        once for each stage 1..stages and partition

``target`` is the partition that receives the blob in the next stage. In the last stage it is -1,
and the blob is an *outcome* for the driver. The ``stage`` of every partition runs, also without
blobs, since timers are due without data. A partition reads its blobs in the order of (payload or
partition that sent them, place in its list), whichever executor ran them. So all executors return
the same outcomes in the same order, and ``LocalExecutor``, a few loops, is the oracle of the
others.

Executors do not copy blobs. A stage must only read them: they may be views of memory maps. A
``Parcel`` is packed only where it leaves the process that made it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol, TypeVar

from levada.core.code_loading import load_function
from levada.core.frame import Parcel
from levada.core.frozen import frozen
from levada.runtime.preferred_locations import PreferredLocations

Blob = bytes | memoryview
AnyBlob = Blob | Parcel
Intake = Callable[[bytes, bytes], list[tuple[int, AnyBlob]]]
Stage = Callable[[bytes, int, int, list[AnyBlob]], list[tuple[int, AnyBlob]]]
B = TypeVar("B")
OUTCOME = -1
EPOCH = ("levada.runtime.task.entry_points:intake", "levada.runtime.task.entry_points:stage")
"""The functions of an epoch: each call of these sends one blob to each partition."""
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]")


@frozen
class Job:
    """The work of one epoch.

    ``context`` is the data of every call; it is kept small, because each stage receives it once.
    ``payloads`` are the parts of the intake. ``functions`` name intake and stage as
    ``module:function``. A ``fused`` job runs as one task (``parallelism``). A ``light`` job runs in
    the driver's process if tasks may run there (``warmup_executor``). ``places`` are the preferred
    locations of the tasks of a job that is not fused.
    """

    context: bytes
    payloads: list[bytes]
    stages: int
    partitions: int
    functions: tuple[str, str] = EPOCH
    fused: bool = False
    light: bool = False
    places: PreferredLocations | None = None

    def __post_init__(self) -> None:
        assert self.stages >= 1 and self.partitions >= 1, (
            "a job has at least one stage and one partition"
        )


class Executor(Protocol):
    """Runs one job after the other."""

    def run(self, job: Job) -> list[bytes]:
        """Returns the outcomes, by partition and place. Raises an exception that a function
        raised.
        """
        ...


class LocalExecutor:
    """Runs a job in this process, one call after the other."""

    def run(self, job: Job) -> list[bytes]:
        """Returns the outcomes of ``job``."""
        intake: Intake = resolve(job.functions[0])
        stage: Stage = resolve(job.functions[1])
        sent = [pair for payload in job.payloads for pair in intake(job.context, payload)]
        for number in range(1, job.stages + 1):
            inboxes = deliver(sent, job.partitions)
            sent = [
                pair
                for p in range(job.partitions)
                for pair in stage(job.context, number, p, inboxes[p])
            ]
        return [outcome(target, blob) for target, blob in sent]


def deliver(sent: list[tuple[int, B]], partitions: int) -> list[list[B]]:
    """Groups blobs by partition, in the order in which they were sent.

    >>> deliver([(1, b"a"), (0, b"b"), (1, b"c")], 2)
    [[b'b'], [b'a', b'c']]
    """
    inboxes: list[list[B]] = [[] for _ in range(partitions)]
    for target, blob in sent:
        assert 0 <= target < partitions, f"partition {target} is not one of {partitions}"
        inboxes[target].append(blob)
    return inboxes


def outcome(target: int, blob: AnyBlob) -> bytes:
    """Returns the blob of a last stage as bytes."""
    assert target == OUTCOME, f"a last stage sends outcomes to {OUTCOME}, not to partition {target}"
    return bytes(blob)


@cache
def resolve(name: str) -> Callable[..., list[tuple[int, AnyBlob]]]:
    """Imports the function that ``module:function`` names.

    >>> resolve("levada.runtime.executor:deliver") is deliver
    True
    """
    return load_function(name)


def master_of(session: Any, master: str) -> str:
    """Returns the master of a Spark session, or ``master`` if there is none yet."""
    return str(session.sparkContext.master) if _is_classic(session) else master


def _is_classic(session: Any) -> bool:
    """Whether it is a session with a context in this process: Spark Connect has none."""
    return bool(session) and not type(session).__module__.startswith("pyspark.sql.connect")


def cores(master: str, session: Any = None) -> int:
    """Returns the default number of partitions of a master: the cores in its URL, else those that
    the ``session`` has by now, else the cores of this machine.

    >>> cores("local[3]"), cores("local-cluster[4,2,1024]")
    (3, 8)
    """
    if master.startswith("local[") and master[6:-1].isdigit():
        return int(master[6:-1])
    if (match := _LOCAL_CLUSTER.fullmatch(master)) is not None:
        return int(match[1]) * int(match[2])
    if _is_classic(session):
        return int(session.sparkContext.defaultParallelism)
    return os.cpu_count() or 1


def executors(master: str) -> int:
    """Returns the number of executors in a master's URL; 0 if the URL does not contain it.

    >>> executors("local-cluster[4,2,1024]"), executors("spark://host:7077")
    (4, 0)
    """
    match = _LOCAL_CLUSTER.fullmatch(master)
    return int(match[1]) if match is not None else 0
