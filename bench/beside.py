"""``beside``, a part of ``moving``: an executor whose processor others use, too (Parallel windowed
joins, W57).

W1 over two partitions, one at home on each of two executors (``local-cluster[2,1,1024]``), every
epoch spread; each executor is bound to a processor of its own. From an epoch on ``OTHERS``
processes that do nothing but count share the processor of one of them. Balance goes by time as it
passes, since no CPU time tells of such company.

    rounds   of each reorganization: ms of an epoch by the clock (median) before it, and the groups
             that each partition has behind it
    relieved the partition beside the others has so much of the groups in the end
    delay    of an epoch: alone, with the others until groups move, behind three reorganizations
    stages   of each round, by partition: ms that its tasks took in an epoch, and the CPU of that;
             the slower one by the mean of both, which is what a reorganization is to bring down

A machine of two processors has the driver on both of them, and maybe others' work, so delays are
rough. Both partitions suffer from that alike: what one takes by the other in the same epochs tells
what its company does (``tests/integration/runtime/rebalancing/test_balancing.py`` judges it
without clocks).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil

from bench.data import events, pairs_within, write
from bench.executors import Executors, jvms
from bench.join import query
from bench.result import check_count
from levada import Engine
from levada.checkpoint.manifest import Manifest, RebalanceReport
from levada.runtime.driver import parallelism

OTHERS = 3
EPOCH, EVERY, ROUNDS, ALONE = 200_000, 5, 7, 2  # reorganizations; those before the others come
KEYS, WIDTH = 500, 4_000  # 16 partners a row: tasks of few ms get their turn whoever is beside
COUNTS = "while True: pass"


class Company:
    """Two executors, each with a processor, and the others."""

    def __init__(self) -> None:
        self.others: list[subprocess.Popen[bytes]] = []

    def come(self) -> str:
        """The others begin, beside the first executor, whose name this is."""
        first, *more = sorted(dict(jvms()))
        for at, name in enumerate((first, *more)):
            _bind(dict(jvms())[name], at % (os.cpu_count() or 1))
        for _ in range(OTHERS):
            other = subprocess.Popen([sys.executable, "-c", COUNTS])
            os.sched_setaffinity(other.pid, {0})
            self.others.append(other)
        return first

    def go(self) -> None:
        """They end."""
        for other in self.others:
            other.kill()
            other.wait()


def _bind(executor: psutil.Process, processor: int) -> None:
    """All threads of an executor and of its workers; what they start begins there, too."""
    for process in (executor, *executor.children(recursive=True)):
        with suppress(psutil.Error):  # it has ended
            for thread in process.threads():
                with suppress(ProcessLookupError):
                    os.sched_setaffinity(thread.id, {processor})


def beside(scale: float) -> dict[str, Any]:
    """One run."""
    epoch = int(EPOCH * scale)
    n = epoch // 2 * (EVERY * ROUNDS + 3)
    with tempfile.TemporaryDirectory(prefix="levada-beside-") as name:
        folder = Path(name)
        streams = [events(seed, n, KEYS, 1.0) for seed in (1, 2)]
        for side, value, stream in zip("ab", "vw", streams, strict=True):
            write(folder / side, stream, epoch // 2, value)
        return _figures(*_run(folder, epoch, pairs_within(*streams, WIDTH)))


Seen = list[tuple[float, list[int], bool]]
"""Of each epoch: when it was published, groups by partition, whether others are there."""
Stages = dict[int, dict[str, Any]]
"""Of each round, by the epoch behind it."""


def _run(folder: Path, epoch: int, expected: int) -> tuple[Seen, str, dict[int, str], Stages]:
    from levada.runtime.spark.spark_session import start_session, stop_session
    from levada.runtime.warmup_executor import homes_of

    session = start_session("local-cluster[2,1,1024]", scratch=folder / "spark")
    company, seen, beside_, stages = Company(), Seen(), list[str](), Stages()
    try:
        Executors(session).wait(2)
        with (
            patch.object(parallelism, "MOST_BYTES", -1),
            Engine(
                spark=session, checkpoint=folder / "c", epoch_rows=epoch, partitions=2, seed=7,
                keep_results=False, balance={"reorganize_every": EVERY},
            ) as engine,
        ):  # fmt: skip
            for side in "ab":
                engine.stream(side.upper(), folder / side)
            engine.register(query(WIDTH), name="w1", dialect="cql")
            tables = engine._open().tables

            def see(manifest: Manifest) -> None:
                table = tables.load(manifest.group_table_version)
                own = [int((table.partition == p).sum()) for p in range(table.partitions)]
                if len(seen) == EVERY * ALONE + 1:
                    beside_.append(company.come())
                seen.append((time.monotonic(), own, bool(company.others)))
                if manifest.balance is not None:
                    stages[manifest.balance.epoch] = _stages(manifest.balance)

            engine._on_epoch(see)
            engine.start(once=True)
            engine.await_end()
            assert engine._driver is not None, "it has been started"
            check_count("moving", engine._driver.last.results, expected)
            homes = homes_of(engine._driver.epochs.executor)
            at = {p: e for (s, p), e in homes._at[False].items()} if homes else {}
    finally:
        company.go()
        stop_session(session)
    return seen, beside_[0], at, stages


def _stages(balanced: RebalanceReport) -> dict[str, Any]:
    loads = sorted(balanced.loads, key=lambda load: load.partition)
    return {
        "ms": [round(1000 * load.seconds) for load in loads],
        "cpu_ms": [round(1000 * load.cpu_seconds) for load in loads],
        "kinds": [load.kind for load in loads],
        "slower_by_mean": round(balanced.ratio, 2),
    }


def _figures(seen: Seen, first: str, at: dict[int, str], stages: Stages) -> dict[str, Any]:
    took = [1000 * (b[0] - a[0]) for a, b in pairwise(seen)]
    own = [groups for _, groups, _ in seen[1:]]
    came = next(i for i, s in enumerate(seen) if s[2])
    changes = [i for i in range(1, len(own)) if own[i] != own[i - 1]]
    ends = [*(i for i in changes if i > came), len(took)]
    shared = next(p for p, executor in at.items() if executor == first)
    behind = took[min(came + 3 * EVERY + 1, len(took) - 3) : -2]
    return {
        "changes": [{"epoch": i + 2, "groups": own[i]} for i in changes],
        "executor_beside": {"partition": shared, "groups": own[-1][shared] / sum(own[-1])},
        "delay_ms": {
            "alone": round(statistics.median(took[2:came])),
            "beside": round(statistics.median(took[came : ends[0]])),
            "relieved": round(statistics.median(behind)),
        },
        "stages": stages,
        "epochs_ms": [round(t) for t in took],
    }
