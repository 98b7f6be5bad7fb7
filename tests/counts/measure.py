"""Counts the work of epochs: ``python measure.py WORKLOAD`` writes the means of 20
epochs, after 12, as JSON. No clock decides a count.

Epochs run in this process, without Spark. Calls are those of Python's and C's functions in the
thread of the epochs; the other counts are of that thread, too.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

WARM, EPOCHS = 12, 20
FILES = {"open": "files opened", "os.listdir": "folders listed", "os.scandir": "folders listed"}
SYNCS = ("fsync", "fdatasync", "sync_file_range")


class Counts:
    """Counts of one thread, while it is on."""

    def __init__(self) -> None:
        self.total: Counter[str] = Counter()
        self.thread = 0
        self.epochs = 0

    def add(self, name: str, count: int = 1) -> None:
        if self.thread == threading.get_ident():
            self.total[name] += count

    def profile(self, _frame: Any, event: str, arg: Any) -> None:
        if self.thread == threading.get_ident() and event in ("call", "c_call"):
            self.total["calls"] += 1
            if event == "c_call" and getattr(arg, "__module__", "") == "msgspec._core":
                self.total["msgspec calls"] += 1

    def audit(self, event: str, _arguments: Any) -> None:
        if event in FILES:
            self.add(FILES[event])

    def see(self, _manifest: Any) -> None:
        """An epoch has been published: counting begins after the warm ones, and ends."""
        self.epochs += 1
        if self.epochs == WARM:
            gc.disable()
            self.thread = threading.get_ident()
        elif self.epochs == WARM + EPOCHS:
            self.thread = 0

    def count_calls(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            self.add(name)
            return call(*given, **named)

        return counted

    def means(self) -> dict[str, float]:
        return {name: round(count / EPOCHS, 2) for name, count in sorted(self.total.items())}


def workload(name: str, folder: Path) -> tuple[dict[str, Any], str, str, int, int]:
    """Streams, text and dialect, rows of an epoch, and partitions."""
    from bench.choice import STREAM, work

    kind, rows, partitions = {
        "empty": ("w3", 201, 2),
        "w3 201 rows, 1 partition": ("w3", 201, 1),
        "w3 201 rows, 2 partitions": ("w3", 201, 2),
        "w1": ("w1", 100_000, 2),
        "w2": ("w2", 100_000, 2),
        "w3 100,000 rows": ("w3", 99_999, 2),
    }[name]
    streams, text, dialect = work(kind, folder, rows, WARM + EPOCHS + 3)
    return streams, text, dialect, rows // 3 if STREAM in streams else rows, partitions


def measure(name: str) -> dict[str, float]:
    """The counts of an epoch of a workload."""
    counts = Counts()
    for sync in SYNCS:
        if hasattr(os, sync):
            setattr(os, sync, counts.count_calls("syncs", getattr(os, sync)))
    sys.addaudithook(counts.audit)
    warnings.simplefilter("ignore")
    from bench.empty import empty_after_first

    from levada import Engine

    with tempfile.TemporaryDirectory() as folder:
        streams, text, dialect, elements, partitions = workload(name, Path(folder))
        with Engine(
            spark=False,
            checkpoint=Path(folder) / "checkpoint",
            partitions=partitions,
            epoch_rows=elements,
            seed=7,
        ) as engine:
            for stream, options in streams.items():
                engine.stream(stream, **options)
            engine.register(text, name="q", dialect=dialect)
            engine._on_epoch(counts.see)
            if name == "empty":
                empty_after_first(engine, WARM + EPOCHS + 3)
            threading.setprofile(counts.profile)
            engine.start(once=True)
            while counts.epochs < WARM + EPOCHS and not engine.await_end(0.05):
                pass
    assert counts.epochs >= WARM + EPOCHS, "the workload has enough epochs"
    return counts.means()


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
