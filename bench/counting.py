"""``counting``: what it costs to count what tasks send (``--slice``), in CPU seconds.

W1, W2 and W3 (``bench.choice``), ``ROWS`` in an epoch, without Spark, so that all of it is in one
process; with and without in turn, ``TIMES`` times, the first two of which are warm-up.
``LEVADA_SLICES`` says what is counted (1d). Two ways to say what it costs:

    inside   of the runs with counting, the part of their CPU time that is within the calls that
             count (``CALLS``), and that counts take on their way with outcomes and manifests,
             which is done once more here to be measured, by the number of times that it is done
    more     the CPU time of an epoch with counting by that of the same epoch in the run without
             that stands beside it, less one: the median of all such pairs, and their quartiles,
             which say how much more single epochs differ. Nothing is measured within these runs

There is no baseline.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np

from bench.choice import STREAM, Streams, work
from bench.result import Result, check_count
from levada import Engine
from levada.checkpoint.epoch_context import TaskOutcome
from levada.checkpoint.manifest import EpochIntent
from levada.runtime.epoch_pipeline import EpochRunner

ROWS, TIMES, WARM, WARM_EPOCHS = 100_000, 10, 2, 3
SLICES = os.environ.get("LEVADA_SLICES", "1d")
TASK = "levada.runtime.task."
CALLS = {
    "rows": TASK + "exchange.Exchange._count",
    "one group": TASK + "exchange.mark_one_group",
    "packed": TASK + "exchange.Exchange.group_counts",
    "blobs": "levada.runtime.placement.send_graph.ReceivedCounts.count",
    "kept": "levada.runtime.epoch_pipeline.count_sent",
}
ON_THE_WAY = "on the way"


class Inside:
    """CPU seconds within calls that count, by what they do; ``extra``: those of measuring."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = dict.fromkeys((*CALLS, ON_THE_WAY), 0.0)
        self.extra = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Has all of these calls measured."""
        patches = [patch(where, self._timed(what, where)) for what, where in CALLS.items()]
        with ExitStack() as patched:
            for each in patches:
                patched.enter_context(each)
            yield

    def _timed(self, what: str, where: str) -> Callable[..., Any]:
        call = _found(where)

        def timed(*given: Any, **named: Any) -> Any:
            began = time.thread_time()
            found = call(*given, **named)
            self.spent[what] += time.thread_time() - began
            if what == "kept":
                self._on_the_way(given[0], given[3])
            return found

        return timed

    def _on_the_way(self, manifest: Any, done: list[TaskOutcome]) -> None:
        """Counts are written and read once a stage behind the one that made them, and once to the
        driver; what stands in the manifest is written, and read twice.
        """
        began = time.thread_time()
        stages = max(told.stage for told in done)
        for told in done:
            once = time.thread_time()
            text = msgspec.json.encode(
                [told.sent, told.received_by_sender, told.received_by_executor]
            )
            msgspec.json.decode(text)
            hops = stages - told.stage + 1
            self.spent[ON_THE_WAY] += hops * (time.thread_time() - once)
        once = time.thread_time()
        text = msgspec.json.encode([manifest.pending_group_counts, manifest.slice_counts])
        written = time.thread_time()
        msgspec.json.decode(text)
        self.spent[ON_THE_WAY] += written - once + 2 * (time.thread_time() - written)
        self.extra += time.thread_time() - began


def _found(where: str) -> Callable[..., Any]:
    import importlib

    parts = where.split(".")
    at = next(
        i for i, part in enumerate(parts) if i > 2 and (part[0].isupper() or i == len(parts) - 1)
    )
    found: Any = importlib.import_module(".".join(parts[:at]))
    for part in parts[at:]:
        found = getattr(found, part)
    call: Callable[..., Any] = found
    return call


def _cpu(
    work: tuple[Streams, str, str], rows: int, slices: str, inside: Inside
) -> tuple[int, list[float]]:
    """One run: how many results, and the CPU seconds of its epochs (tasks, and the driver's part up
    to the commit), without those of measuring.
    """
    streams, text, dialect = work
    spent: list[float] = []
    run = EpochRunner.run

    def timed(self: EpochRunner, intention: EpochIntent) -> Any:
        began, extra = time.thread_time(), inside.extra
        try:
            return run(self, intention)
        finally:
            spent.append(time.thread_time() - began - (inside.extra - extra))

    elements = rows // 3 if STREAM in streams else rows
    engine = Engine(
        spark=False, partitions=2, epoch_rows=elements, keep_results=False, slices=slices
    )
    with patch.object(EpochRunner, "run", timed), engine:
        for name, options in streams.items():
            engine.stream(name, **options)
        engine.register(text, name="q", dialect=dialect)
        engine.start(once=True)
        engine.await_end()
        assert engine._driver is not None, "it has been started"
        return engine._driver.last.results, spent


def compare(name: str, rows: int) -> dict[str, Any]:
    """One workload, with and without in turn."""
    runs: dict[str, list[list[float]]] = {"": [], SLICES: []}
    parts: list[dict[str, float]] = []
    counts = set()
    with tempfile.TemporaryDirectory(prefix="levada-counting-") as folder:
        given = work(name, Path(folder), rows)
        for time_ in range(TIMES):
            for slices in list(runs)[:: -1 if time_ % 2 else 1]:
                count, spent = _cpu(given, rows, slices, Inside())
                runs[slices].append(spent)
                counts.add(count)
            if time_ >= WARM and time_ % 2:
                inside = Inside()
                with inside.watching():
                    count, spent = _cpu(given, rows, SLICES, inside)
                parts.append({what: s / sum(spent) for what, s in inside.spent.items()})
    check_count(name, len(counts), 1)
    off, on = (np.array(spent)[WARM:, WARM_EPOCHS:] for spent in runs.values())
    low, more, high = (np.quantile(on / off, (0.25, 0.5, 0.75)) - 1).round(4).tolist()
    shares = {what: round(statistics.median(p[what] for p in parts), 5) for what in parts[0]}
    return {
        "count": counts.pop(),
        "inside": round(sum(shares.values()), 5),
        "parts": shares,
        "more": more,
        "quartiles": [low, high],
        "pairs": on.size,
        "epoch_ms": [round(float(np.median(side)) * 1e3, 2) for side in (off, on)],
    }


def run(scale: float, stepped: bool) -> Result:
    """All workloads; ``scale`` is of the rows of an epoch."""
    rows = max(int(ROWS * scale), 1000)
    found = {name: compare(name, rows) for name in ("w1", "w2", "w3")}
    return Result("counting", {"count": sum(e["count"] for e in found.values())}, more=found)
