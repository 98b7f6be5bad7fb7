"""Defines the two tasks of a network probe: one sends blobs from an executor, one times their
arrival at another.

Blobs of one sender arrive one at a time, since each is a partition of its own, which the reader's
split requests when it has read the previous one (``runtime.spark.network_probe``). Spark passes
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

SMALL_BLOB_BYTES, LARGE_BLOB_BYTES = 1 << 10, 1 << 20  # bytes
SMALL_BLOBS_PER_TURN = 16  # small blobs in a turn
TURNS = 5
SIZES = (
    LARGE_BLOB_BYTES,
    *((SMALL_BLOB_BYTES,) * SMALL_BLOBS_PER_TURN + (LARGE_BLOB_BYTES, LARGE_BLOB_BYTES)) * TURNS,
)
"""The sizes of the blobs of a sender, in order (bytes)."""
_HEAD = 64
"""Bytes that say which executor a blob is from; a record of one byte is a mark."""


class Timed(msgspec.Struct):
    """The measurements of a reader: its executor, its processors' clock in GHz, which part of that
    is assumed, and the arrival times of the large blobs of each sender, in seconds on its own
    clock.
    """

    executor: str
    clock: float
    assumed: tuple[str, ...]
    came: dict[str, list[float]]


@frozen
class SendTask:
    """Sends one blob to each partition of its split."""

    def __call__(self, split: int, records: Iterable[bytes]) -> Iterator[Parts]:
        """Yields blobs that begin with their sender."""
        _drain(records)
        head, first = executor_here().encode().ljust(_HEAD), split * len(SIZES)
        for number, size in enumerate(SIZES):
            yield first + number, (head + bytes(size - _HEAD), b"")


@frozen
class TimeTask:
    """Reads all blobs, and reports their arrival times."""

    def __call__(self, split: int, records: Iterable[bytes]) -> Iterator[Result]:
        """Yields one outcome with the measurements."""
        arrivals: dict[str, list[float]] = {}
        for record in records:
            if len(record) == LARGE_BLOB_BYTES:
                arrivals.setdefault(record[:_HEAD].decode().strip(), []).append(time.perf_counter())
        yield msgspec.json.encode(Timed(executor_here(), *_clock(), arrivals)), OUTCOME


def _clock() -> tuple[float, tuple[str, ...]]:
    try:
        cpus = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        cpus = ""
    return clock_of(Path("/sys"), range(os.cpu_count() or 1), cpus)


def _drain(records: Iterable[bytes]) -> None:
    for _ in records:
        pass
