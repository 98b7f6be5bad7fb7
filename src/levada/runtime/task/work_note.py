"""Notes the operator that a thread evaluates now, in a file that outlives the process.

The file is mapped into memory and never synced: the system keeps its page when the process ends. It
has five numbers: a count that grows with each operator, the present operator, the epoch, 1 if the
operator has exceeded its limit (``engine.watchdog``), and the CPU seconds that it may take in
addition to the limit. Cost: three stores an operator.

A worker of Spark writes no file: the system ends it if an operator exceeds its limit
(``CpuBound``). The epoch has then lost a task, and the driver looks for the operator in separate
processes (``runtime.task.crash_probe``). Cost: two system calls an operator.
"""

from __future__ import annotations

import math
import mmap
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from levada.core.checkpoint_files import create
from levada.core.cpu_guard import cpu_limit
from levada.core.durable_files import make_folder
from levada.errors import CheckpointError

FILE = "intentions/work"
IDLE, READING, RECORDS = -1, -2, -3
"""In the place of an operator: no epoch runs; an epoch reads; it reads the records of one
reference, which may take ``extra_seconds`` beside the limit.
"""
UNLIMITED = (IDLE, READING)
_COUNT, _NODE, _EPOCH, _EXCEEDED, _EXTRA = range(5)
_NOTE_BYTES = 40  # bytes
BYTES_A_SECOND = 1 << 20


def extra_seconds(size: int) -> int:
    """Returns the additional CPU seconds for reading so many bytes.

    >>> extra_seconds(3 << 20)
    3
    """
    return size // BYTES_A_SECOND


class WorkNote:
    """The note of an engine, as the previous process left it. The watchdog reads ``node`` and
    ``count``. Raises ``CheckpointError``.
    """

    def __init__(self, root: Path) -> None:
        self._path = root / FILE
        try:
            make_folder(self._path.parent)
            with create(self._path, "ab") as file:
                file.truncate(_NOTE_BYTES)
            with self._path.open("r+b") as file:
                self._map = mmap.mmap(file.fileno(), _NOTE_BYTES)
        except OSError as error:
            raise CheckpointError(
                f"The checkpoint's file {self._path} cannot be written: {error.strerror}."
            ) from error
        self._numbers = memoryview(self._map).cast("q")
        self._numbers[_NODE] = IDLE

    def close(self) -> None:
        """Removes the file: this process ends normally."""
        self._path.unlink(missing_ok=True)

    @property
    def count(self) -> int:
        """The number of operators that have begun."""
        return self._numbers[_COUNT]

    @property
    def node(self) -> int:
        """The present operator, ``IDLE`` or ``READING``."""
        return self._numbers[_NODE]

    def begin_epoch(self, epoch: int) -> None:
        """Notes that this thread begins to evaluate an epoch."""
        self._numbers[_EPOCH] = epoch
        self.begin(READING)
        _thread.note = self

    def end_epoch(self) -> None:
        """Notes that this thread has evaluated the epoch."""
        _thread.note = None
        self._numbers[_NODE] = IDLE
        self._numbers[_EXCEEDED] = 0

    @property
    def extra(self) -> int:
        """The CPU seconds of the operator in addition to the limit."""
        return self._numbers[_EXTRA]

    def begin(self, node: int, extra: int = 0) -> None:
        """Notes that an operator begins, with its additional CPU seconds."""
        self._numbers[_EXTRA] = extra
        self._numbers[_COUNT] += 1
        self._numbers[_NODE] = node

    def exceed(self) -> None:
        """Notes that the present operator has exceeded its limit."""
        self._numbers[_EXCEEDED] = 1

    def has_exceeded(self, epoch: int) -> bool:
        """Whether the previous process ended after an operator of an epoch exceeded its limit."""
        return self._numbers[_EPOCH] == epoch and self._numbers[_EXCEEDED] == 1


class CpuBound:
    """Makes SIGXCPU end this process, a worker of Spark, if an operator exceeds its limit."""

    node = READING

    def __init__(self) -> None:
        self._seconds = cpu_limit()
        self._before, self._core = map(resource.getrlimit, _LIMITS)

    def begin(self, node: int, extra: int = 0) -> None:
        """Gives an operator its CPU seconds from now on."""
        self.node, (_, hard) = node, self._before
        if node in UNLIMITED:
            resource.setrlimit(resource.RLIMIT_CPU, self._before)
            return
        until = math.ceil(time.process_time() + self._seconds) + extra
        until = until if hard == resource.RLIM_INFINITY else min(until, hard)
        resource.setrlimit(resource.RLIMIT_CPU, (until, hard))

    @contextmanager
    def bound(self) -> Iterator[None]:
        """Bounds the operators that this thread evaluates in the block; prevents core dumps."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, self._core[1]))
        _thread.note = self
        try:
            yield
        finally:
            _thread.note = None
            resource.setrlimit(resource.RLIMIT_CPU, self._before)
            resource.setrlimit(resource.RLIMIT_CORE, self._core)


_LIMITS = resource.RLIMIT_CPU, resource.RLIMIT_CORE


class _Thread(threading.local):
    note: WorkNote | CpuBound | None = None


_thread = _Thread()


def note_here() -> WorkNote | CpuBound | None:
    """Returns the note of the engine, or the bound of the worker, for this thread."""
    return _thread.note
