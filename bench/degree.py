"""``degree``: the number of partitions that the model chooses, against the best fixed number.

W1, W2 and W3 (``bench.choice``) at three numbers of rows in an epoch, on Spark with two cores; with
``LEVADA_MASTER=local-cluster[4,1,1024]`` on that. Each runs over 1, 2, 4 .. partitions up to the
cores, which stay (``fixed``: medians of ms an epoch, and CPU-ms of all processes an epoch), and
with ``--partitions auto``, which begins with the cores: its number at the end, and how often it
changed. Each twice, in turn, since what else runs on the machine slows all of them; the better half
of each counts. Epochs behind the first ``WARM`` count, of ``auto`` those behind ``SETTLED``.

``loss``: how much longer the epochs of the numbers that ``auto`` ended with take than those of the
best fixed numbers, in sum, by what the fixed runs took; ``loss_cpu`` the same by CPU time;
``cores_loss`` and ``cores_cpu`` what as many as there are cores lose by the same count.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench.choice import Streams, work
from bench.measure import Tree
from bench.result import Result, check_count
from bench.srbench import STREAM
from levada import Engine
from levada.checkpoint.manifest import Manifest
from levada.runtime.executor import cores

EPOCHS, WARM, SETTLED, TURNS = 80, 20, 50, 2
SIZES = (1_000, 10_000, 100_000)
Asked = tuple[Streams, str, str]


class Watch:
    """What an engine's epochs take: of each its ms, and CPU seconds of all processes so far."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.tree = engine, Tree()
        self.told: list[Manifest] = []
        self.cpu: dict[int, float] = {}

    def see(self, manifest: Manifest) -> None:
        """An epoch has been published."""
        self.told.append(manifest)
        if len(self.told) in (WARM, SETTLED, EPOCHS):
            self.cpu[len(self.told)] = self.tree.cpu().total
        if len(self.told) == EPOCHS and self.engine._driver is not None:
            self.engine._driver.loop.request_stop()

    def found(self, first: int) -> dict[str, Any]:
        """Of the epochs behind the first ones: the number of partitions at the end, medians."""
        costs = [m.epoch_costs for m in self.told[first:EPOCHS] if m.epoch_costs is not None]
        spent = self.cpu[EPOCHS] - self.cpu[first]
        degree = costs[-1].partition_policy
        assert degree is not None, "this version tells who chooses"
        return {
            "partitions": costs[-1].partitions,
            "ms": round(median(c.last_epoch.measured_ms for c in costs), 1),
            "cpu_ms": round(1000 * spent / (EPOCHS - first), 1),
            "changes": [
                [
                    d.epoch,
                    d.partitions_before,
                    d.partitions,
                    d.ms_before,
                    d.expected_ms,
                    d.measured_ms,
                ]
                for d in degree.decisions
            ],
        }


def _run(asked: Asked, rows: int, session: Any, master: str, parts: int | str) -> Watch:
    """So many epochs over these partitions."""
    streams, text, dialect = asked
    elements = rows // 3 if STREAM in streams else rows
    said: dict[str, Any] = {"partitions": parts, "master": master, "spark": session}
    with Engine(epoch_rows=elements, keep_results=False, **said) as engine:
        for name, options in streams.items():
            engine.stream(name, **options)
        engine.register(text, name="q", dialect=dialect)
        watch = Watch(engine)
        engine._on_epoch(watch.see)
        engine.start(once=True)
        engine.await_end()
    return watch


def compare(name: str, rows: int, session: Any, master: str) -> dict[str, Any]:
    """What each number takes for one workload at one size, and what was chosen."""
    most = cores(master)
    fixed: dict[int, list[dict[str, Any]]] = {}
    chosen, counts = [], []
    with tempfile.TemporaryDirectory(prefix="levada-degree-") as folder:
        asked = work(name, Path(folder), rows, EPOCHS)
        for _ in range(TURNS):
            for n in sorted({most, *(2**k for k in range(most.bit_length()))}):
                watch = _run(asked, rows, session, master, n)
                fixed.setdefault(n, []).append(watch.found(WARM))
                counts.append(watch.told[EPOCHS - 1].results)
            watch = _run(asked, rows, session, master, "auto")
            chosen.append(watch.found(SETTLED))
            counts.append(watch.told[EPOCHS - 1].results)
    for count in counts:
        check_count(f"{name} of {rows}", count, counts[0])
    least = {key: {n: min(t[key] for t in ts) for n, ts in fixed.items()} for key in _KINDS}
    return {
        "count": counts[0],
        "fixed": least,
        "chosen": chosen,
        "load": round(os.getloadavg()[0], 1),
    }


_KINDS = ("ms", "cpu_ms")


def _lost(found: dict[str, Any], key: str, *, at_cores: bool) -> tuple[float, float]:
    """What the chosen numbers take by the fixed runs (or the cores), and what the best does."""
    took = found["fixed"][key]
    ends = [max(took)] if at_cores else [each["partitions"] for each in found["chosen"]]
    mine = [took.get(n, max(took.values())) for n in ends]
    return sum(mine) / len(mine), min(took.values())


def run(scale: float, stepped: bool) -> Result:
    """All workloads on one session; ``scale`` is of the rows of an epoch."""
    from levada.runtime.spark.spark_session import start_session, stop_session

    master = os.environ.get("LEVADA_MASTER", "local[2]")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="levada-degree-spark-") as scratch:
        session = start_session(master, scratch=Path(scratch))
        try:
            found = {
                f"{name}_{rows}": compare(name, max(int(rows * scale), 100), session, master)
                for rows in SIZES
                for name in ("w1", "w2", "w3")
            }
        finally:
            stop_session(session)
    more: dict[str, Any] = {}
    for name, key, at_cores in (
        ("loss", "ms", False), ("loss_cpu", "cpu_ms", False),
        ("cores_loss", "ms", True), ("cores_cpu", "cpu_ms", True),
    ):  # fmt: skip
        mine, best = zip(*(_lost(f, key, at_cores=at_cores) for f in found.values()), strict=True)
        more[name] = round(sum(mine) / sum(best) - 1, 4)
    total = {"count": sum(f["count"] for f in found.values()), "seconds": time.monotonic() - began}
    return Result("degree", total, more={**more, **found})
