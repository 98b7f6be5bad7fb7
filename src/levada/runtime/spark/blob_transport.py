"""Transports blobs from the tasks that make them to the tasks that read them
(docs/architecture.md#a-triples-way).

A blob travels by value through Spark's shuffle (about 5 CPU-ms a MB). If the reader shares a host
and the blob is not small, it travels by reference to a place in a file in Spark's local scratch
(about 0.6 CPU-ms a MB; BriskStream, section 5.2: tuples stay where they were written). On a cluster
the reader's host is known for tasks with a preferred executor
(``runtime.spark.preferred_locations``). A blob goes by reference if its reader is on the sender's
host, or is the sender's own executor where executors of one host may not read each other's files.
The shuffle carries

    body, tail      tail = kind (1 byte), source (4), place (4)
                    body = the blob; for a reference: offset (8), length (8), path of the file;
                    for an error: what the sender raised (``runtime.spark.task_errors``)

An error goes to every partition, by value. Its readers do no work and pass it on, so the driver
receives it as a record of the last stage. The task writes the kind byte, so no blob is taken for an
error, whatever it contains.

The tail is last, so that a blob by value keeps the alignment of its buffer and is never copied to
strip it. Blobs are read in the order (source, place): source is the partition that sent them, place
the blob's number in it. So the order is that of a run in one process, in whichever order the
shuffle delivers.

One task attempt writes at most one file, under a name of its own; offsets are multiples of 64.
Readers map it. A missing or short file raises ``BlobLostError``: the task fails, and the epoch is
not committed and runs again. The driver removes the folder of a job when the job is over (open maps
stay valid). On a cluster it cannot. There the folder is in the scratch of the sender's executor,
which disappears with that one, and the first file of a later job removes it. A reader that runs on
another host does not find the file: then the whole job runs again, all by value, and so do the next
ones (``HostLocality``).
"""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import BinaryIO

from levada.checkpoint.executor_affinity import executor_here, host_here
from levada.core.frame import Parcel
from levada.core.frozen import frozen
from levada.errors import LostTaskError
from levada.runtime.executor import AnyBlob, Blob

THRESHOLD = 32 * 1024  # bytes; below, a file costs more than the copies through the JVM
_TAIL = struct.Struct("<BII")
_PLACE_IN_FILE = struct.Struct("<QQ")
_BY_VALUE, _BY_REFERENCE, _ERROR = 0, 1, 2
_ALIGN = 64
OLD = 3600  # s after which an executor removes the leftovers of another one's jobs
FIRST_PAUSE, MOST_PAUSE = 16, 4096  # jobs by value after a missing file


class BlobLostError(LostTaskError):
    """A blob's file is missing or short; running the epoch again makes it anew."""


class SenderFailedError(Exception):
    """A previous task failed; ``document`` is its error."""

    def __init__(self, document: bytes) -> None:
        super().__init__("a task before this one failed")
        self.document = document


@frozen
class BlobTransport:
    """The transport of the blobs of one job: by reference into ``folder`` from ``threshold`` bytes
    on (None: all by value). ``hosts``: on a cluster, the preferred location of each target's reader
    ("": unknown), a host or one executor; then the folder is in the scratch of the sender's
    executor.
    """

    folder: str | None = None
    threshold: int = THRESHOLD
    hosts: tuple[str, ...] | None = None


class Sender:
    """Wraps the blobs of one task attempt with a unique ``name``. A context manager."""

    def __init__(self, carrier: BlobTransport, source: int, name: str) -> None:
        self._threshold = max(carrier.threshold, 1)  # an empty file cannot be mapped
        self._source, self._name, self._hosts = source, name, carrier.hosts
        self._folder, self._here = carrier.folder, ("", "")
        if carrier.hosts is not None:
            self._folder = scratch_here(carrier.folder)
            self._here = host_here(), location(host_here(), executor_here())
        self._place = 0
        self._file: BinaryIO | None = None

    def wrap(self, sent: AnyBlob, target: int) -> tuple[Blob, bytes]:
        """Returns the two parts that go through the shuffle, one after the other: body and tail."""
        blob = bytes(sent) if isinstance(sent, Parcel) else sent
        size = memoryview(blob).nbytes
        if self._folder is None or size < self._threshold or not self._is_near(target):
            return blob, self._tail(_BY_VALUE)
        return self._write(self._folder, blob, size), self._tail(_BY_REFERENCE)

    def _is_near(self, target: int) -> bool:
        """Whether the reader's preferred location is this host, or this executor."""
        return self._hosts is None or (
            self._hosts[target] != "" and self._hosts[target] in self._here
        )

    def _tail(self, kind: int) -> bytes:
        self._place += 1
        return _TAIL.pack(kind, self._source, self._place - 1)

    def _write(self, folder: str, blob: Blob, size: int) -> bytes:
        if self._file is None:
            os.makedirs(folder, exist_ok=True)
            if self._hosts is not None:
                _leave(folder)
            # closed by __exit__
            self._file = open(os.path.join(folder, self._name), "xb", buffering=0)  # noqa: SIM115
        offset = -(-self._file.tell() // _ALIGN) * _ALIGN
        self._file.seek(offset)
        rest = memoryview(blob).cast("B")
        while rest:
            rest = rest[self._file.write(rest) :]
        return _PLACE_IN_FILE.pack(offset, size) + os.fsencode(self._file.name)

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()


def scratch_here(name: str | None) -> str | None:
    """Returns a folder in the scratch of this worker's executor; None if the executor has none."""
    scratch = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0]  # Spark sets it for its workers
    return os.path.join(scratch, "levada-xfer", name) if scratch and name else None


def _leave(folder: str) -> None:
    """Removes the folders of earlier jobs beside a folder, and those of others without a recent
    job: these have ended, or need theirs no more.
    """
    beside, number = os.path.dirname(folder), int(os.path.basename(folder))
    old_blobs = [os.path.join(beside, name) for name in os.listdir(beside) if int(name) < number]
    with os.scandir(os.path.dirname(beside)) as others:
        for other in others:
            with suppress(FileNotFoundError):  # another task has removed it
                if other.path != beside and time.time() - other.stat().st_mtime > OLD:
                    old_blobs.append(other.path)
    for path in old_blobs:
        shutil.rmtree(path, ignore_errors=True)


class HostLocality:
    """Decides whether blobs go by reference to readers that may read a sender's files. After a job
    that did not find a file, a number of jobs goes by value, twice as many each time. ``by_host``:
    whether executors of one host may read each other's files; otherwise each reads its own.
    """

    def __init__(self, *, by_host: bool) -> None:
        self._by_host, self._rest, self._pause = by_host, 0, FIRST_PAUSE
        self._missed = 0

    def hosts(self, stages: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...] | None:
        """Returns the preferred executors of tasks, or their hosts, by stage, for the next job;
        None: all its blobs go by value.
        """
        if self._rest:
            self._rest -= 1
            return None
        if not self._by_host:
            return tuple(tuple(stage) for stage in stages)
        return tuple(tuple(map(_host_of, stage)) for stage in stages)

    def record_miss(self) -> None:
        """Notes that a file was not found."""
        self._missed += 1
        self._rest, self._pause = self._pause, min(2 * self._pause, MOST_PAUSE)

    def miss_counts(self) -> tuple[int, int]:
        """Returns the number of jobs that did not find a file since the last call, and of those
        that now go by value.
        """
        missed, self._missed = self._missed, 0
        return missed, self._rest


def location(host: str, executor: str) -> str:
    """Returns an executor as Spark names it in a location; "" for none.

    >>> location("10.0.0.7", "3"), location("", "")
    ('executor_10.0.0.7_3', '')
    """
    return f"executor_{host}_{executor}" if host and executor else ""


def _host_of(at: str) -> str:
    """Returns the host of an executor in a location.

    >>> _host_of("executor_10.0.0.7_3"), _host_of("")
    ('10.0.0.7', '')
    """
    return at.removeprefix("executor_").rpartition("_")[0]


def error_parts(document: bytes, source: int) -> tuple[Blob, bytes]:
    """Returns the two parts of an error that go through the shuffle: body and tail."""
    return document, _TAIL.pack(_ERROR, source, 0)


def receive(refs: Iterable[bytes]) -> list[Blob]:
    """Returns the blobs of one partition, as read-only views, in the order (source, place).

    Raises ``SenderFailedError`` with the error of the first source that sent one.
    """
    maps: dict[str, memoryview] = {}
    arrived, errors = [], {}
    for ref in refs:
        if len(ref) < _TAIL.size:  # a mark beside a blob, which determines where the task runs
            continue
        kind, source, place = _TAIL.unpack_from(ref, len(ref) - _TAIL.size)
        body = memoryview(ref)[: -_TAIL.size]
        if kind == _ERROR:
            errors[source] = bytes(body)
        elif not errors:
            arrived.append((source, place, body if kind == _BY_VALUE else _follow(body, maps)))
    if errors:
        raise SenderFailedError(errors[min(errors)])
    arrived.sort(key=lambda blob: blob[:2])
    return [blob for _, _, blob in arrived]


def _follow(reference: memoryview, maps: dict[str, memoryview]) -> memoryview:
    """Returns the place in a file to which a reference points."""
    offset, size = _PLACE_IN_FILE.unpack_from(reference)
    path = os.fsdecode(bytes(reference[_PLACE_IN_FILE.size :]))
    if path not in maps:
        maps[path] = _map(path)
    if len(maps[path]) < offset + size:
        raise BlobLostError(f"The exchange file {path} is shorter than it was written.")
    return maps[path][offset : offset + size]


def _map(path: str) -> memoryview:
    try:
        with open(path, "rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise BlobLostError(f"The exchange file {path} is lost: {error}.") from error
