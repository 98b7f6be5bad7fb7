"""``memory``: a join whose window is far larger than ``--memory``, beside the same without a bound.

Two streams of 36,000,000 events each, few of which find a partner, in a window that holds all: some
4 GB of state (``state``), under 512 MB. Both sides step epochs of at most 1,000,000 rows in one
process, on one partition. ``--scale`` is of events and of the bound.

    private    the most of its own (Private_Dirty of /proc/self/smaps_rollup, looked at twenty times
               a second): before the stream begins, with the libraries and a small run's compiled
               kernels (``before``), at most (``most``), and what the bound is about (``grown``)
    speed      rows per CPU-second and per second under the bound by those without
"""

from __future__ import annotations

import gc
import re
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.apart import apart
from bench.data import Events, write
from bench.measure import Tree
from bench.result import Result, check_count
from levada import Engine
from levada.checkpoint.file_inventory import names_of

EVENTS, BOUND, FILES = 36_000_000, 512_000_000, 36
FEW, EPOCH = 4_000, 1_000_000
QUERY = (
    "Istream(Select A.k, A.v, B.w From A [Range 30 days], B [Range 30 days] Where A.k = B.k)"  # all
)
COLUMNS = {"A": "v", "B": "w"}


def events(seed: int, n: int) -> Events:
    """One a millisecond, with keys of a hundred times as many: one in a hundred has a partner."""
    rng = np.random.default_rng(seed)
    return Events(rng.integers(0, 100 * n, n), rng.random(n), np.arange(n, dtype=np.int64))


def pairs(a: Events, b: Events) -> int:
    """Pairs of equal key."""
    sides = np.sort(a.k), np.sort(b.k)
    return int((np.searchsorted(sides[1], sides[0], "right") - np.searchsorted(*sides[::-1])).sum())


class Private:
    """The most that this process has had of its own since it was last asked."""

    def __init__(self) -> None:
        self._most, self._ends = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        text = Path("/proc/self/smaps_rollup").read_text()
        dirty = re.search(r"Private_Dirty: *([0-9]+)", text)
        self._most = max(self._most, int(dirty[1]) << 10 if dirty else 0)

    def _watch(self) -> None:
        while not self._ends.wait(0.05):
            self._look()

    def most(self) -> int:
        """Bytes; counted anew from here on."""
        self._look()
        found, self._most = self._most, 0
        return found

    def end(self) -> None:
        """No further looks."""
        self._ends.set()
        self._thread.join()


def run(scale: float, stepped: bool) -> Result:
    """Both sides; ``stepped`` or not, epochs are stepped."""
    n, bound = int(EVENTS * scale), int(BOUND * scale)
    with tempfile.TemporaryDirectory(prefix="levada-bench-") as name:
        few, many = (_written(Path(name), *each) for each in (("few", FEW), ("many", n)))
        given: dict[str, Any] = {"folder": name, "want": [few, many]}
        bounded = apart("bench.memory:side", **given, memory=str(bound), rows=2 * n)
        free = apart("bench.memory:side", **given, memory="", rows=2 * n)
    speed = {
        unit: round(bounded[f"rows_per_{unit}"] / free[f"rows_per_{unit}"], 3)
        for unit in ("cpu_s", "s")
    }
    more = {"bound": bound, "speed": speed}
    return Result("memory", bounded, free, speed["cpu_s"], more)


def _written(folder: Path, name: str, n: int) -> int:
    """Both streams as files; how many pairs they have."""
    both = [events(seed, n) for seed in (1, 2)]
    for stream, each in zip(COLUMNS, both, strict=True):
        write(folder / name / stream, each, -(-n // FILES), COLUMNS[stream])
    return pairs(*both)


def side(folder: str, want: list[int], memory: str, rows: int) -> dict[str, Any]:
    """A small run and then all, in this process."""
    private = Private()
    _engine(Path(folder, "few"), want[0], memory)
    gc.collect()
    before, tree = private.most(), Tree()
    start, began = tree.cpu(), time.perf_counter()
    size = _engine(Path(folder, "many"), want[1], memory)
    cpu, wall = (tree.cpu() - start).total, time.perf_counter() - began
    most = private.most()
    private.end()
    return {
        "count": want[1],
        "rows": rows,
        "rows_per_cpu_s": round(rows / cpu),
        "rows_per_s": round(rows / wall),
        "cpu_s": round(cpu, 1),
        "wall_s": round(wall, 1),
        "state": size,
        "private": {"before": before, "most": most, "grown": most - before},
    }


def _engine(folder: Path, want: int, memory: str) -> int:
    """Reads all that is there; bytes of the checkpoint's state at the end."""
    options: dict[str, Any] = {"partitions": 1, "epoch_rows": EPOCH, "keep_results": False}
    with Engine(spark=False, memory=memory, **options) as engine:
        for stream in COLUMNS:
            engine.stream(stream, folder / stream)
        engine.register(QUERY, dialect="cql")
        engine.start(once=True, keep_open=True)
        engine.await_end()
        assert engine._driver is not None, "it has been started"
        last = engine._driver.last
        count, files = last.results, names_of(engine.root, last).files
        size = sum((engine.root / file).stat().st_size for file in files)
    check_count("bounded" if memory else "not bounded", count, want)
    return size
