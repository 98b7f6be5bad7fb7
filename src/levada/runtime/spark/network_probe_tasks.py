"""The two tasks of a ping: one sends blobs from an executor, one times their coming at another.

Blobs of one sender come one at a time, since each is a partition of its own which the reader's
split asks for when the one before has been read (``runtime.spark.network_probe``). Spark hands
small blobs on together, so these are timed between two large ones.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from levada.checkpoint.executor_affinity import executor_here
from levada.core.frozen import frozen
from levada.placement.hardware.cpu_topology import clock_of
from levada.runtime.spark.spark_tasks import OUTCOME, Parts, Result

SMALL, LARGE = 1 << 10, 1 << 20  # bytes
MANY = 16  # small blobs in a turn
TURNS = 5
SIZES = (LARGE, *((SMALL,) * MANY + (LARGE, LARGE)) * TURNS)
"""Of the blobs of one sender, in their order."""
_HEAD = 64
"""Bytes that say which executor a blob is from; a record of one byte is a mark."""


class Timed(msgspec.Struct):
    """What a reader has seen: its executor, its processors' clock in GHz, what of that is assumed,
    and the moments in seconds, on a clock of its own, when the large blobs of each sender had come.
    """

    executor: str
    clock: float
    assumed: tuple[str, ...]
    came: dict[str, list[float]]


@frozen
class SendTask:
    """Sends one blob to each partition of its split."""

    def __call__(self, split: int, records: Iterable[bytes]) -> Iterator[Parts]:
        """Blobs that begin with who sends them."""
        _drain(records)
        head, first = executor_here().encode().ljust(_HEAD), split * len(SIZES)
        for number, size in enumerate(SIZES):
            yield first + number, (head + bytes(size - _HEAD), b"")


@frozen
class TimeTask:
    """Reads all blobs, and tells when they came."""

    def __call__(self, split: int, records: Iterable[bytes]) -> Iterator[Result]:
        """One outcome: what was seen."""
        came: dict[str, list[float]] = {}
        for record in records:
            if len(record) == LARGE:
                came.setdefault(record[:_HEAD].decode().strip(), []).append(time.perf_counter())
        yield msgspec.json.encode(Timed(executor_here(), *_clock(), came)), OUTCOME


def _clock() -> tuple[float, tuple[str, ...]]:
    try:
        cpus = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        cpus = ""
    return clock_of(Path("/sys"), range(os.cpu_count() or 1), cpus)


def _drain(records: Iterable[bytes]) -> None:
    for _ in records:
        pass
