"""Wraps the functions of a job in Spark tasks. Runs in the Python workers.

A task is an object that Spark calls with (split, records) and whose results it writes with the
given serializer. The objects are pickled by class and fields: a few dozen bytes and the job's
context, once a stage. Each drains its records before it works (a task that does not costs Spark its
worker). An exception of a function is a result, too: the task sends it to all partitions of the
next stage, whose tasks do no work and pass it on, and the driver raises it (``task_errors``).
Spark's own text of an exception is never searched, since data can write into it.

Spark may repeat a task whose first output others have used, and a whole stage without notice to
Python. The output is the same each time, unless a file was modified meanwhile, which the driver
detects (``runtime.driver.stream_progress.decode_outcomes``).
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, BinaryIO

from pyspark import TaskContext
from pyspark.serializers import FramedSerializer, NoOpSerializer, write_int, write_long

from levada.checkpoint.epoch_context import cached_plan
from levada.core.frozen import frozen
from levada.runtime.executor import AnyBlob, Blob, Job, LocalExecutor, outcome, resolve
from levada.runtime.spark.blob_transport import (
    BlobTransport,
    Sender,
    SenderFailedError,
    error_parts,
    receive,
)
from levada.runtime.spark.task_errors import encode_error
from levada.runtime.task.work_note import CpuBound

Parts = tuple[int, tuple[Blob, bytes]]
Result = tuple[Blob, bytes]


class PairSerializer(FramedSerializer):  # type: ignore[misc]
    """Writes (target, (body, tail)) as the two framed records of a pair that ``PairwiseRDD`` reads:
    key and value.
    """

    def dump_stream(self, iterator: Iterator[Parts], stream: BinaryIO) -> None:
        """Write all pairs; bodies are not copied."""
        for target, (body, tail) in iterator:
            write_int(8, stream)
            write_long(target, stream)
            write_int(memoryview(body).nbytes + len(tail), stream)
            stream.write(body)
            stream.write(tail)


class Marked(FramedSerializer):  # type: ignore[misc]
    """Writes (body, mark) as one framed record: the body followed by the mark, one byte."""

    def dump_stream(self, iterator: Iterator[tuple[Blob, bytes]], stream: BinaryIO) -> None:
        """Write all records; bodies are not copied."""
        for body, mark in iterator:
            write_int(memoryview(body).nbytes + len(mark), stream)
            stream.write(body)
            stream.write(mark)


PLAIN = NoOpSerializer()
ADDRESSED = PairSerializer()
MARKED = Marked()
OUTCOME, ERROR = b"\0", b"\1"
"""Marks of the records that the driver reads."""


def with_errors(
    run: Callable[[Any, int, Iterable[bytes]], Iterable[Any]],
) -> Callable[..., Iterable[Any]]:
    """Wraps a task's call: an exception becomes the task's error records."""

    @functools.wraps(run)
    def call(task: Any, split: int, records: Iterable[bytes]) -> Iterable[Any]:
        try:
            with CpuBound().bound():
                results = list(run(task, split, records))
        except SenderFailedError as error:
            results = task.error_records(error.document, split)
        except Exception as error:
            results = task.error_records(encode_error(error), split)
        _settle()
        return results

    return call


_plans = 0  # the number of plans that this process has loaded


def _settle() -> None:
    """Hides a newly loaded plan from the garbage collector: Spark collects after every task, 20 ms
    with 500 shapes.
    """
    global _plans
    loaded = cached_plan.cache_info().misses
    if loaded != _plans:
        _plans = loaded
        gc.collect()
        gc.freeze()


@frozen
class IntakeTask:
    """Intake of the payloads of one split."""

    context: bytes
    function: str
    carrier: BlobTransport
    partitions: int

    @with_errors
    def __call__(self, split: int, records: Iterable[bytes]) -> Iterator[Parts]:
        """Call intake on each payload and address its blobs."""
        intake = resolve(self.function)
        payloads = list(records)
        sent = [pair for payload in payloads for pair in intake(self.context, payload)]
        return _address(sent, self.carrier, self.partitions, split, "intake")

    def error_records(self, document: bytes, split: int) -> list[Parts]:
        """Yields the records that report an error to each partition."""
        return _to_all(document, self.partitions, split)


@frozen
class StageTask:
    """One stage of one partition, except the last stage."""

    context: bytes
    function: str
    carrier: BlobTransport
    partitions: int
    stage: int

    @with_errors
    def __call__(self, split: int, records: Iterable[bytes]) -> Iterator[Parts]:
        """Read the partition's blobs, call stage and address its blobs."""
        sent = resolve(self.function)(self.context, self.stage, split, receive(records))
        return _address(sent, self.carrier, self.partitions, split, str(self.stage))

    def error_records(self, document: bytes, split: int) -> list[Parts]:
        """Yields the records that report an error to each partition."""
        return _to_all(document, self.partitions, split)


@frozen
class LastStageTask:
    """The last stage of one partition."""

    context: bytes
    function: str
    stage: int

    @with_errors
    def __call__(self, split: int, records: Iterable[bytes]) -> Iterator[Result]:
        """Read the partition's blobs and call stage, which sends outcomes."""
        for target, blob in resolve(self.function)(
            self.context, self.stage, split, receive(records)
        ):
            yield outcome(target, blob), OUTCOME

    def error_records(self, document: bytes, split: int) -> list[Result]:
        """Yields the record that reports an error to the driver."""
        return [(document, ERROR)]


@frozen
class FusedTask:
    """A whole job in one task; its payloads are the records."""

    job: Job

    @with_errors
    def __call__(self, split: int, records: Iterable[bytes]) -> Iterator[Result]:
        """Run the job in this process."""
        for blob in LocalExecutor().run(replace(self.job, payloads=list(records))):
            yield blob, OUTCOME

    def error_records(self, document: bytes, split: int) -> list[Result]:
        """Yields the record that reports an error to the driver."""
        return [(document, ERROR)]


def idle_intake(context: bytes, payload: bytes) -> list[tuple[int, Blob]]:
    """Returns the intake of a job that does nothing."""
    return [(0, b""), (1, b"")]


def idle_stage(
    context: bytes, stage: int, partition: int, blobs: list[Blob]
) -> list[tuple[int, Blob]]:
    """Returns the output of a stage of a job that does nothing."""
    return []


def _address(
    sent: Iterable[tuple[int, AnyBlob]],
    carrier: BlobTransport,
    partitions: int,
    split: int,
    stage: str,
) -> Iterator[Parts]:
    """Wraps and addresses the output of a task; its file has a name that no other task attempt of
    this Spark application uses.
    """
    context = TaskContext.get()
    assert context is not None, "tasks run in Spark's workers"
    with Sender(carrier, split, f"{stage}-{split}-{context.taskAttemptId()}") as sender:
        for target, blob in sent:
            assert 0 <= target < partitions, f"partition {target} is not one of {partitions}"
            yield target, sender.wrap(blob, target)


def _to_all(document: bytes, partitions: int, split: int) -> list[Parts]:
    return [(target, error_parts(document, split)) for target in range(partitions)]
