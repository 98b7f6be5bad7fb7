"""From the publication of one epoch to that of another: what lies between is measured, what lies
before is warm-up.

The session's start, the loading of kernels and the first epochs (the JVM interprets, caches fill)
do not count: every stream has a prefix of warm-up elements, apart in time from the rest. The
measurement begins when the prefix has been read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.measure import Cpu, Tree, peak_memory

LOOK = 5.0  # s between looks at the processes, so that those that end are counted


class Meter:
    """Takes the time at each publication, and CPU at the first and last that count."""

    def __init__(self, warm: int) -> None:
        self.warm = warm
        self.tree = Tree()
        self.looked = 0.0
        self.first = Cpu()
        self.cpu = Cpu()
        self.rows = 0
        self.at: list[float] = []
        self.memory = 0

    def see(self, rows: int, last: bool) -> None:
        """An epoch is published: ``rows`` elements have been read so far; ``last``: what comes
        after it does not count.
        """
        if rows < self.warm or self.memory:
            return
        if not self.at:
            self.first, self.rows = self.tree.cpu(), -rows
        self.at.append(time.perf_counter())
        self.looked = self.looked or self.at[0]
        if last:
            self.cpu, self.rows = self.tree.cpu() - self.first, self.rows + rows
            self.memory = peak_memory()
        elif self.at[-1] - self.looked > LOOK:
            self.tree.cpu()
            self.looked = self.at[-1]

    def side(self, count: int, **more: Any) -> dict[str, Any]:
        """What was measured, for JSON. ``count``: the results, which the caller has checked."""
        assert self.memory, "the last epoch has been seen"
        return (
            side(
                count,
                self.rows,
                self.at[-1] - self.at[0],
                self.cpu,
                np.diff(self.at).tolist(),
                self.memory,
            )
            | more
        )


def side(
    count: int, rows: int, wall: float, cpu: Cpu, epochs: Sequence[float] = (), memory: int = 0
) -> dict[str, Any]:
    """One side of a benchmark: results, input rows a second of wall clock and of CPU, epochs (given
    in s, told in ms).
    """
    told: dict[str, Any] = {
        "count": count, "rows": rows, "rows_per_s": round(rows / wall), "rows_per_cpu_s": round(rows / cpu.total),
        "wall_s": round(wall, 3), "cpu_s": round(cpu.total, 3), "cpu": cpu.to_json(),
    }  # fmt: skip
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
