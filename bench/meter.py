"""From the publication of one epoch to that of another: what lies between is measured, what lies
before is warm-up.

The session's start, the loading of kernels and the first epochs (the JVM interprets, caches fill)
do not count: every stream has a prefix of warm-up elements, apart in time from the rest. The
measurement begins when the prefix has been read. With a ``Supply`` it goes on until it is steady
(``bench.steady``), and what counts are the last two thirds of the rounds that had been read by
then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bench.measure import Cpu, Tree, peak_memory
from bench.steady import MOST, Mark, Span, Supply, find_span, rate

LOOK = 5.0  # s between looks at the processes, so that those that end are counted


class Meter:
    """Takes the time at each publication, and CPU where the warm-up and each round end."""

    def __init__(self, warm: int, supply: Supply | None = None) -> None:
        self.warm = warm
        self.supply = supply
        self.tree = Tree()
        self.looked = 0.0
        self.marks: list[Mark] = []
        self.at: list[float] = []
        self.memory = 0
        self.over = threading.Event()  # everything has been read
        self._span: Span | None = None  # what counts, once it is steady
        if supply is not None:
            supply.follow(0, lambda: False)

    def see(self, rows: int, last: bool = False) -> None:
        """An epoch is published: ``rows`` elements have been read so far; ``last``: what comes
        after it does not count.
        """
        if rows >= self.warm and not self.memory:
            self._take(rows, last)
        if self.supply is not None:
            self.supply.follow(rows, self._is_enough)
            if self.supply.is_read(rows):
                self.over.set()

    def _take(self, rows: int, last: bool) -> None:
        now = time.perf_counter()
        self.at.append(now)
        self.looked = self.looked or now
        supply, rounds = self.supply, len(self.marks)
        if supply is None:
            due = last or not rounds
        else:
            due = rows >= self.warm + rounds * supply.rows
            last = supply.ended and rows >= supply.total
        if due:
            self.marks.append(Mark(rows, self.tree.cpu(), now, len(self.at) - 1))
        elif now - self.looked > LOOK:
            self.tree.cpu()
            self.looked = now
        if last:
            self.memory = peak_memory()

    def _is_enough(self) -> bool:
        """Whether no more rounds are needed."""
        if self.supply is None or len(self.marks) < 2:
            return False
        span = find_span(self.marks, self.supply.least)
        if span.steady:
            self._span = self._span or span
        return span.steady or self.cpu.total >= MOST

    @property
    def cpu(self) -> Cpu:
        """All CPU from the first mark to the last."""
        return self.marks[-1].cpu - self.marks[0].cpu

    def side(self, count: int, **more: Any) -> dict[str, Any]:
        """What was measured, for JSON. ``count``: the results, which the caller has checked."""
        assert self.memory, "the last epoch has been seen"
        span = self._span or (
            find_span(self.marks, self.supply.least) if self.supply else Span(0, 1, False)
        )
        begin, end = self.marks[span.first], self.marks[span.last]
        epochs = np.diff(self.at[begin.epochs : end.epochs + 1]).tolist()
        cpu, rows = end.cpu - begin.cpu, end.rows - begin.rows
        told = side(count, rows, end.at - begin.at, cpu, epochs, self.memory)
        if self.supply is not None:
            told |= {
                "steady": span.steady,
                "rounds": span.last - span.first,
                "rounds_before": span.first,
            }
            told["rounds_in_all"] = self.supply.handed
            told["by_round"] = [round(rate(a, b)) for a, b in pairwise(self.marks)]
        return told | more


def side(
    count: int, rows: int, wall: float, cpu: Cpu, epochs: Sequence[float] = (), memory: int = 0
) -> dict[str, Any]:
    """One side of a benchmark: results, input rows a second of wall clock and of CPU, epochs (given
    in s, told in ms).
    """
    told: dict[str, Any] = {
        "count": count,
        "rows": rows,
        "rows_per_s": round(rows / wall),
        "rows_per_cpu_s": round(rows / cpu.total),
        "wall_s": round(wall, 3),
        "cpu_s": round(cpu.total, 3),
        "cpu": cpu.to_json(),
    }
    if len(epochs):
        p50, p99 = np.percentile(np.asarray(epochs) * 1000, [50, 99]).tolist()
        told |= {
            "epochs": len(epochs),
            "epoch_p50_ms": round(p50, 1),
            "epoch_p99_ms": round(p99, 1),
        }
    if memory:
        told["peak_memory_mb"] = round(memory / 1e6)
    return told
