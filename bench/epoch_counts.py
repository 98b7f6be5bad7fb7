"""Counts of the work of epochs, which no busy machine changes.

Epochs run in this process without Spark. Counted are, in the thread of the epochs, calls of
functions of Python and C, files that Python opens, folders that it lists, and syncs; in all threads
bytes that are read and written by system calls. Files that a library opens by itself, and mapped
files, are not seen. A count is the mean of some epochs behind warm-up.

Some kernels read every byte of a text (``SCANS``). The bytes that they read by those of the input
are the passes over the input.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.spark_counts import SparkCounts
from bench.tree_engine import Spec, await_spark, empty_epochs, on_epoch, open_engine

WARM, EPOCHS = 12, 20
FILES = {"open": "files opened", "os.listdir": "folders listed", "os.scandir": "folders listed"}
SYNCS = ("fsync", "fdatasync", "sync_file_range")
IO = {"rchar": "bytes read", "wchar": "bytes written"}
SCANNED = "bytes scanned by kernels"
SCANS: dict[str, Callable[..., int]] = {
    "scan_ends": lambda text, begin, end: end - begin,
    "_count_elements": lambda text, begin, end: end - begin,
    "_line_by_line": lambda text, begin, end, *_: end - begin,
    "count_byte": lambda text, end, byte: end,
    "count_line_ends": lambda text, end: end,
    "guess_subjects": lambda text, rows: len(text),
    "parse_lines": lambda text, *_: len(text),
}
"""The bytes that a call of a kernel reads, by the kernel's name, at most."""


class EpochCounts:
    """Counts of one thread, over ``epochs`` epochs behind ``warm`` ones."""

    def __init__(self, warm: int = WARM, epochs: int = EPOCHS) -> None:
        self.warm, self.epochs = warm, epochs
        self.total: Counter[str] = Counter()
        self.thread = 0
        self.published = 0

    def add(self, name: str, count: int = 1) -> None:
        """Adds to a count, if this is the thread that is counted."""
        if self.thread == threading.get_ident():
            self.total[name] += count

    def profile(self, _frame: Any, event: str, arg: Any) -> None:
        """Counts a call; for ``threading.setprofile``."""
        if self.thread == threading.get_ident() and event in ("call", "c_call"):
            self.total["calls"] += 1
            if event == "c_call" and getattr(arg, "__module__", "") == "msgspec._core":
                self.total["msgspec calls"] += 1

    def audit(self, event: str, _arguments: Any) -> None:
        """Counts what opens a file or lists a folder; for ``sys.addaudithook``."""
        if event in FILES:
            self.add(FILES[event])

    def see(self, _manifest: Any) -> None:
        """An epoch has been published: counting begins behind the warm ones, and ends."""
        self.published += 1
        if self.published == self.warm:
            gc.disable()
            self._add_io(-1)
            self.thread = threading.get_ident()
        elif self.is_over and self.thread:
            self.thread = 0
            self._add_io(1)

    @property
    def is_over(self) -> bool:
        """Whether all epochs have been counted."""
        return self.published >= self.warm + self.epochs

    def _add_io(self, sign: int) -> None:
        for name, count in process_io().items():
            self.total[name] += sign * count

    def count_calls(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function that counts its calls and calls another."""

        def counted(*given: Any, **named: Any) -> Any:
            self.add(name)
            return call(*given, **named)

        return counted

    def means(self) -> dict[str, float]:
        """The counts of an epoch, by name."""
        return {name: round(n / self.epochs, 2) for name, n in sorted(self.total.items())}


def process_io() -> dict[str, int]:
    """Bytes that this process has read and written by system calls: files, pipes and sockets."""
    lines = Path("/proc/self/io").read_text().splitlines()
    known = dict(line.split(": ") for line in lines)
    return {name: int(known[key]) for key, name in IO.items()}


def _count_scans(counts: EpochCounts) -> None:
    """Counts the bytes that kernels read. It replaces the call of numba's dispatchers."""
    from numba.core.dispatcher import Dispatcher

    call = Dispatcher.__call__

    def counted(self: Any, *given: Any, **named: Any) -> Any:
        size = SCANS.get(self.__name__)
        if size is not None:
            counts.add(SCANNED, int(size(*given)))
        return call(self, *given, **named)

    Dispatcher.__call__ = counted  # type: ignore[assignment]


def count_epochs(
    spec: Spec, *, warm: int = WARM, epochs: int = EPOCHS, input_counts: bool = True
) -> dict[str, float]:
    """The counts of an epoch. It changes this process: call it once, in a process of its own.

    Without ``input_counts`` bytes are not counted, and no call of a kernel has a call around it.
    """
    counts = EpochCounts(warm, epochs)
    for sync in SYNCS:
        if hasattr(os, sync):
            setattr(os, sync, counts.count_calls("syncs", getattr(os, sync)))
    sys.addaudithook(counts.audit)
    if input_counts:
        _count_scans(counts)
    warnings.simplefilter("ignore")
    with open_engine(spec, stepped=True, keep_results=True) as engine:
        on_epoch(engine, counts.see)
        if spec.empty:
            empty_epochs(engine, warm + epochs + 3)
        threading.setprofile(counts.profile)
        engine.start(once=True)
        while not counts.is_over and not engine.await_end(0.05):
            pass
    assert counts.is_over, "the workload has enough epochs"
    means = counts.means()
    return means if input_counts else {n: m for n, m in means.items() if n not in IO.values()}


def count_on_spark(spec: Spec, *, warm: int, epochs: int) -> dict[str, float]:
    """What an epoch has Spark do (``bench.spark_counts``). Call it in a process of its own, too."""
    counts, marks = SparkCounts(), list[dict[str, int]]()

    def see(_manifest: Any) -> None:
        gc.disable()  # objects of the JVM are let go by calls
        if len(marks) <= warm + epochs:
            marks.append(counts.so_far())

    warnings.simplefilter("ignore")
    with open_engine(spec, stepped=False) as engine:
        on_epoch(engine, lambda manifest: await_spark(engine))
        on_epoch(engine, see)
        engine.start(once=True)
        while len(marks) <= warm + epochs and not engine.await_end(0.05):
            pass
    assert len(marks) > warm + epochs, "the workload has enough epochs"
    first, last = marks[warm], marks[warm + epochs]
    return {name: round((last[name] - first[name]) / epochs, 2) for name in last}
