"""What a Spark task does around the functions of a job. Runs in the Python workers.

A task is an object that Spark calls with (split, records) and whose results it writes with the
given serializer. The objects are pickled by class and fields: a few dozen bytes and the job's
context, once a stage. Each drains its records before it works (a task that does not costs Spark its
worker), and turns what a function raises into ``TaskFailure``, whose text carries the exception
itself through Spark's own errors back to the driver (``raise_``).

Spark may begin a task again whose first answer others have, and a whole stage of which it does not
tell Python. An answer is the same each time, but for a file that was written into meanwhile; which
the driver finds out (``runtime.driver.records.told_in``).
"""

from __future__ import annotations

import base64
import functools
import gc
import pickle
import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, BinaryIO

from pyspark import TaskContext
from pyspark.serializers import FramedSerializer, NoOpSerializer, write_int, write_long

from levada.errors import EngineError
from levada.frozen import frozen
from levada.runtime.context import cached_plan
from levada.runtime.local import Blob, Job, LocalExecutor, outcome, resolve
from levada.runtime.spark.carrier import Carrier, Sender, receive

Parts = tuple[int, tuple[Blob, bytes]]


class Addressed(FramedSerializer):  # type: ignore[misc]
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


PLAIN = NoOpSerializer()
ADDRESSED = Addressed()


class TaskFailure(Exception):  # noqa: N818 (its text is what matters; nobody catches it by name)
    """Carries another exception through Spark in its text."""


def carrying_failures(
    run: Callable[[Any, int, Iterable[bytes]], Iterable[Any]],
) -> Callable[..., Iterator[Any]]:
    """A task's call whose exceptions leave it as ``TaskFailure``."""

    @functools.wraps(run)
    def call(task: Any, split: int, records: Iterable[bytes]) -> Iterator[Any]:
        try:
            yield from run(task, split, records)
        except Exception as error:
            raise TaskFailure(_carry(error)) from error
        _settle()

    return call


def failed(error: Exception) -> TaskFailure:
    """What carries an exception back to the driver."""
    return TaskFailure(_carry(error))


_plans = 0  # how many plans this process has loaded


def _settle() -> None:
    """Takes a newly loaded plan out of the garbage collector's sight: Spark collects after every
    task, 20 ms with 500 shapes.
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
    carrier: Carrier
    partitions: int

    @carrying_failures
    def __call__(self, split: int, records: Iterable[bytes]) -> Iterator[Parts]:
        """Call intake on each payload and address its blobs."""
        intake = resolve(self.function)
        payloads = list(records)
        sent = [pair for payload in payloads for pair in intake(self.context, payload)]
        return _address(sent, self.carrier, self.partitions, split, "intake")


@frozen
class StageTask:
    """One stage of one partition, but the last."""

    context: bytes
    function: str
    carrier: Carrier
    partitions: int
    stage: int

    @carrying_failures
    def __call__(self, split: int, records: Iterable[bytes]) -> Iterator[Parts]:
        """Read the partition's blobs, call stage and address its blobs."""
        sent = resolve(self.function)(self.context, self.stage, split, receive(records))
        return _address(sent, self.carrier, self.partitions, split, str(self.stage))


@frozen
class LastStageTask:
    """The last stage of one partition."""

    context: bytes
    function: str
    stage: int

    @carrying_failures
    def __call__(self, split: int, records: Iterable[bytes]) -> Iterator[bytes]:
        """Read the partition's blobs and call stage; what it sends are outcomes."""
        for target, blob in resolve(self.function)(
            self.context, self.stage, split, receive(records)
        ):
            yield outcome(target, blob)


@frozen
class FusedTask:
    """A whole job in one task; its payloads are the records."""

    job: Job

    @carrying_failures
    def __call__(self, split: int, records: Iterable[bytes]) -> Iterator[bytes]:
        """Run the job in this process."""
        return iter(LocalExecutor().run(replace(self.job, payloads=list(records))))


def idle_intake(context: bytes, payload: bytes) -> list[tuple[int, Blob]]:
    """The intake of a job that does nothing."""
    return [(0, b""), (1, b"")]


def idle_stage(
    context: bytes, stage: int, partition: int, blobs: list[Blob]
) -> list[tuple[int, Blob]]:
    """The stage of a job that does nothing."""
    return []


def _address(
    sent: Iterable[tuple[int, Blob]], carrier: Carrier, partitions: int, split: int, stage: str
) -> Iterator[Parts]:
    """What a task sends, wrapped; its file has a name that no other task attempt of this Spark
    application uses.
    """
    context = TaskContext.get()
    assert context is not None, "tasks run in Spark's workers"
    with Sender(carrier, split, f"{stage}-{split}-{context.taskAttemptId()}") as sender:
        for target, blob in sent:
            assert 0 <= target < partitions, f"partition {target} is not one of {partitions}"
            yield target, sender.wrap(blob, target)


_CARRIED = re.compile(r"levada-failure:([A-Za-z0-9+/=]+):")


def _carry(error: Exception) -> str:
    """A text that holds the exception with its traceback as a note; an ``EngineError`` if it cannot
    be pickled.
    """
    told = "".join(traceback.format_exception(error)).rstrip()
    error.add_note(told)
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
    except Exception:
        stand_in = EngineError(f"A task failed with {type(error).__name__}: {error}")
        stand_in.add_note(told)
        data = pickle.dumps(stand_in)
    return f"levada-failure:{base64.b64encode(data).decode()}:"


def raise_(text: str) -> Exception | None:
    """The exception that a task raised, from Spark's text; None if Spark itself failed.

    >>> raise_("... " + _carry(ValueError("no")) + " ...")
    ValueError('no')
    """
    match = _CARRIED.search(text)
    if match is None:
        return None
    error = pickle.loads(base64.b64decode(match.group(1)))  # our own worker wrote it
    assert isinstance(error, Exception), "tasks carry exceptions"
    return error
