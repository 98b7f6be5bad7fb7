"""``counting``: what it costs to count what tasks send (``--slice``): CPU seconds with and without.

W1, W2 and W3 (``bench.choice``), ``ROWS`` in an epoch, without Spark, so that all of it is in one
process; both in turn, ``TIMES`` times, the first two of which are warm-up. ``more`` is the median
CPU time with counting by that without, less one; ``runs`` are the CPU seconds of each. There is no
baseline.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.choice import STREAM, Streams, work
from bench.result import Result, check_count
from levada import Engine

ROWS, TIMES, WARM = 100_000, 12, 2


def _cpu(streams: Streams, text: str, dialect: str, rows: int, slices: str) -> tuple[int, float]:
    """One run: how many results, and its CPU seconds from the start on."""
    elements = rows // 3 if STREAM in streams else rows
    with Engine(
        spark=False, partitions=2, epoch_rows=elements, keep_results=False, slices=slices
    ) as engine:
        for name, options in streams.items():
            engine.stream(name, **options)
        engine.register(text, name="q", dialect=dialect)
        began = time.process_time()
        engine.start(once=True)
        engine.await_end()
        spent = time.process_time() - began
        assert engine._driver is not None, "it has been started"
        return engine._driver.last.results, spent


def compare(name: str, rows: int) -> dict[str, Any]:
    """One workload, with and without in turn."""
    runs: dict[str, list[float]] = {"": [], "1d": []}
    counts = set()
    with tempfile.TemporaryDirectory(prefix="levada-counting-") as folder:
        streams, text, dialect = work(name, Path(folder), rows)
        for _ in range(TIMES):
            for slices, spent in runs.items():
                count, cpu = _cpu(streams, text, dialect, rows, slices)
                spent.append(round(cpu, 3))
                counts.add(count)
    check_count(name, len(counts), 1)
    off, on = (statistics.median(spent[WARM:]) for spent in runs.values())
    return {"count": counts.pop(), "more": round(on / off - 1, 4), "runs": list(runs.values())}


def run(scale: float, stepped: bool) -> Result:
    """All workloads; ``scale`` is of the rows of an epoch."""
    rows = max(int(ROWS * scale), 1000)
    found = {name: compare(name, rows) for name in ("w1", "w2", "w3")}
    return Result("counting", {"count": sum(e["count"] for e in found.values())}, more=found)
