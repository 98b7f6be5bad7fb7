"""The operator that a thread evaluates now, noted in a file that outlives the process.

The file is mapped into memory and never synced: the system keeps its page when the process ends.
It has four numbers: a count that grows with each operator, the operator at work, the epoch, and 1
if the operator has exceeded its limit (``engine.watchdog``). Cost: two stores an operator.
"""

from __future__ import annotations

import mmap
import threading
from pathlib import Path

from levada.errors import CheckpointError
from levada.model.files import create
from levada.runtime.store.durable import make_folder

FILE = "intentions/work"
IDLE, READING = -1, -2
"""In the place of an operator: no epoch runs; an epoch reads."""
_COUNT, _NODE, _EPOCH, _EXCEEDED = range(4)
_SIZE = 32  # bytes


class WorkNote:
    """The note of an engine, as the process before left it. Its watchdog reads ``node`` and
    ``count``. Raises ``CheckpointError``.
    """

    def __init__(self, root: Path) -> None:
        self._path = root / FILE
        try:
            make_folder(self._path.parent)
            with create(self._path, "ab") as file:
                file.truncate(_SIZE)
            with self._path.open("r+b") as file:
                self._map = mmap.mmap(file.fileno(), _SIZE)
        except OSError as error:
            raise CheckpointError(
                f"The checkpoint's file {self._path} cannot be written: {error.strerror}."
            ) from error
        self._numbers = memoryview(self._map).cast("q")

    def close(self) -> None:
        """Removes the file: this process ends well."""
        self._path.unlink(missing_ok=True)

    @property
    def count(self) -> int:
        """How many operators have been begun."""
        return self._numbers[_COUNT]

    @property
    def node(self) -> int:
        """The operator at work, ``IDLE`` or ``READING``."""
        return self._numbers[_NODE]

    def begin_epoch(self, epoch: int) -> None:
        """Notes that this thread evaluates an epoch from now on."""
        self._numbers[_EPOCH] = epoch
        self.begin(READING)
        _thread.note = self

    def end_epoch(self) -> None:
        """Notes that it does not any more."""
        _thread.note = None
        self._numbers[_NODE] = IDLE
        self._numbers[_EXCEEDED] = 0

    def begin(self, node: int) -> None:
        """Notes that an operator is evaluated."""
        self._numbers[_COUNT] += 1
        self._numbers[_NODE] = node

    def exceed(self) -> None:
        """Notes that the operator at work has exceeded its limit."""
        self._numbers[_EXCEEDED] = 1

    def has_exceeded(self, epoch: int) -> bool:
        """Whether the process before ended since an operator of an epoch exceeded its limit."""
        return self._numbers[_EPOCH] == epoch and self._numbers[_EXCEEDED] == 1


class _Thread(threading.local):
    note: WorkNote | None = None


_thread = _Thread()


def note_here() -> WorkNote | None:
    """The note of the engine whose epoch this thread evaluates; None in a task of Spark."""
    return _thread.note
