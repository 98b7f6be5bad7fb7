"""What the processes of a soak take: memory and descriptors by kind of process, files of the
checkpoint; and whether it stays so.
"""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import psutil

SLACK_MB, SLACK = 60, 1.3
SLACK_FILES = 60


@dataclass
class Life:
    """From a start to a kill: samples (age in s, value) by what was looked at."""

    began: float = field(default_factory=time.monotonic)
    seen: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    cpu: float = 0.0

    def sample(self, process: psutil.Process, checkpoint: Path) -> None:
        age = time.monotonic() - self.began
        cpu = 0.0
        for each in [process, *process.children(recursive=True)]:
            try:
                kind = "driver" if each.pid == process.pid else each.name()
                self.seen[f"{kind} MB"].append((age, each.memory_info().rss / 1e6))
                self.seen[f"{kind} descriptors"].append((age, each.num_fds()))
                cpu += sum(each.cpu_times()[:2])
            except psutil.Error:
                continue
        self.cpu = max(cpu, self.cpu)
        files = sum(
            path.is_file() for path in checkpoint.rglob("*") if "spark-local" not in path.parts
        )
        self.seen["files of the checkpoint"].append((age, files))

    @property
    def age(self) -> float:
        return time.monotonic() - self.began


def grown(lives: list[Life], settled: float) -> list[str]:
    """What grew, in sentences: from life to life at the same age, and within a life once it has
    ``settled`` (s).
    """
    told = []
    for what in sorted({w for life in lives for w in life.seen}):
        whole = [[v for _, v in life.seen[what]] for life in lives if life.seen.get(what)]
        peaks = [statistics.quantiles(v, n=10)[-1] for v in whole if len(v) > 5]
        slack = SLACK_MB if what.endswith("MB") else SLACK_FILES
        if len(peaks) > 2 and peaks[-1] > max(peaks[:2]) * SLACK + slack:
            told.append(f"{what} from life to life: {[round(p) for p in peaks]}")
        for life in lives:
            late = [v for age, v in life.seen.get(what, ()) if age > settled]
            third = len(late) // 3
            if third < 5:
                continue
            first, last = statistics.median(late[:third]), statistics.median(late[-third:])
            if last > first * SLACK + slack:
                told.append(f"{what} within a life: {first:.0f} to {last:.0f}")
    return told


def table(lives: list[Life]) -> str:
    """The medians of each life's last third, a line each."""
    rows = []
    for what in sorted({w for life in lives for w in life.seen}):
        values = [life.seen.get(what, []) for life in lives]
        last = [
            f"{statistics.median(x for _, x in v[-len(v) // 3 - 1 :]):.0f}" if v else "-"
            for v in values
        ]
        rows.append(f"{what:28} {' '.join(last)}")
    return "\n".join(rows)
