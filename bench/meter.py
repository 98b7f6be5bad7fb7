"""From the publication of one epoch to that of another: what lies between is measured, what lies
before is warm-up.

The session's start, the loading of kernels and the first epochs (the JVM interprets, caches fill)
do not count: every stream has a prefix of warm-up elements, apart in time from the rest. The
measurement begins when the prefix has been read. With a ``Supply`` it begins when also the CPU of
the JVM falls no more, and goes on until it is steady (``bench.steady``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from bench.measure import Cpu, Tree, peak_memory
from bench.steady import MOST, Mark, Span, Supply, find_span, is_settled, rate

LOOK = 5.0  # s between looks at the processes, so that those that end are counted


class Meter:
    """Takes the time at each publication; CPU where the warm-up and each round end, and of a supply
    at each publication.
    """

    def __init__(self, warm: int, supply: Supply | None = None) -> None:
        self.warm = warm
        self.supply = supply
        self.tree = Tree()
        self.looked = 0.0
        self.epochs: list[Mark] = []  # of a supply, from the first epoch on
        self.marks: list[Mark] = []
        self.at: list[float] = []
        self.memory = 0
        self.over = threading.Event()  # everything has been read
        self.settled: int | None = None  # epochs with data until the JVM's CPU fell no more
        self._warm_rounds = 0  # until then
        self._span: Span | None = None  # what counts, once it is steady
        if supply is not None:
            supply.follow(0, lambda: False)

    @property
    def is_warm(self) -> bool:
        """Whether warm-up is over."""
        return bool(self.marks) and (self.supply is None or self.settled is not None)

    def see(self, rows: int, last: bool = False) -> None:
        """An epoch is published: ``rows`` elements have been read so far; ``last``: what comes
        after it does not count.
        """
        if self.supply is not None:
            self._follow(rows, self.supply)
        elif rows >= self.warm and not self.memory:
            self._take(rows, last)

    def _take(self, rows: int, last: bool) -> None:
        now = time.perf_counter()
        self.at.append(now)
        self.looked = self.looked or now
        if last or not self.marks:
            self.marks.append(Mark(rows, self.tree.cpu(), now, len(self.at) - 1))
        elif now - self.looked > LOOK:
            self.tree.cpu()
            self.looked = now
        if last:
            self.memory = peak_memory()

    def _follow(self, rows: int, supply: Supply) -> None:
        if not self.memory:
            self._mark(rows, supply)
        supply.follow(rows, self._is_enough)
        if supply.is_read(rows):
            self.over.set()

    def _mark(self, rows: int, supply: Supply) -> None:
        """Notes the epoch, and the round if it ends one."""
        is_end = rows >= self.warm + len(self.marks) * supply.rows
        now = time.perf_counter()
        mark = Mark(rows, self.tree.cpu(scan=is_end or not self.epochs), now, len(self.epochs))
        self.epochs.append(mark)
        self.at.append(now)
        if self.settled is None and is_settled(jvm := self._jvm()):
            self.settled = len(jvm)
        if is_end:
            self.marks.append(mark)
            if self.settled is None:
                self._warm_rounds = len(self.marks)
        if supply.ended and rows >= supply.total:
            self.memory = peak_memory()

    def _jvm(self) -> list[float]:
        """CPU seconds of the JVM in each epoch with data."""
        return [(b.cpu - a.cpu).jvm for a, b in pairwise(self.epochs) if b.rows > a.rows]

    def _is_enough(self) -> bool:
        """Whether no more rounds are needed."""
        if self.supply is None or len(self.marks) < 2:
            return False
        span = self._find(self.supply)
        if span.steady:
            self._span = self._span or span
        return span.steady or self.cpu.total >= MOST

    def _find(self, supply: Supply) -> Span:
        return find_span(self.marks, supply.least, self._warm_rounds)

    @property
    def cpu(self) -> Cpu:
        """All CPU from the first mark to the last."""
        return self.marks[-1].cpu - self.marks[0].cpu

    def side(self, count: int, **more: Any) -> dict[str, Any]:
        """What was measured, for JSON. ``count``: the results, which the caller has checked."""
        assert self.memory, "the last epoch has been seen"
        span = self._span or (self._find(self.supply) if self.supply else Span(0, 1, False))
        begin, end = self.marks[span.first], self.marks[span.last]
        epochs = np.diff(self.at[begin.epochs : end.epochs + 1]).tolist()
        cpu, rows = end.cpu - begin.cpu, end.rows - begin.rows
        told = side(count, rows, end.at - begin.at, cpu, epochs, self.memory)
        if self.supply is not None:
            own = self.epochs[begin.epochs : end.epochs + 1]
            told |= {
                "steady": span.steady,
                "spread": spread([(b.rows - a.rows, b.cpu - a.cpu) for a, b in pairwise(own)]),
                "warm_epochs": _with_data(self.epochs[: begin.epochs + 1]),
                "settled_epochs": self.settled,
                "rounds": span.last - span.first,
                "rounds_before": span.first,
            }
            told["rounds_in_all"] = self.supply.handed
            told["by_round"] = [round(rate(a, b)) for a, b in pairwise(self.marks)]
        return told | more


def _with_data(epochs: Sequence[Mark]) -> int:
    return sum(b.rows > a.rows for a, b in pairwise(epochs))


def spread(epochs: Sequence[tuple[int, Cpu]]) -> dict[str, float]:
    """Quartiles of the rows per CPU-second of epochs of at least half the rows of the largest, and
    how far they are apart, by the median.
    """
    full = max((rows for rows, _ in epochs), default=0) / 2
    rates = [rows / max(cpu.total, 1e-9) for rows, cpu in epochs if rows and rows >= full]
    lower, middle, upper = np.percentile(rates or [0.0], [25, 50, 75]).tolist()
    return {
        "lower": round(lower),
        "median": round(middle),
        "upper": round(upper),
        "apart": round((upper - lower) / max(middle, 1e-9), 3),
    }


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
