"""``windowed``: Parallel windowed stream joins, its figures (``bench.papers.windowed_joins``).

W1 over two Poisson streams with keys of a b-model (b = 0.7), windows of ten minutes, which are full
before anything counts, epochs of 2 s. It is stepped in this process, one task after the other, and
the CPU time of each is taken: a cluster of one slave a partition is predicted from these. The
results of each run are counted first. ``--scale`` is of the windows (1: ten minutes).

    curves   by rate (a second and stream) and slaves: delay and service of an epoch in s, the share
             of time that slaves are idle, bytes and blobs of an epoch, bytes to the slave that
             gets least, on average and most; ``knee``: the rate beyond which delays grow
    chosen   4 slaves, of which balance takes as many as the load needs: bytes and blobs as above
    lengths  the paper's rate, 4 slaves, by the length of an epoch: delay, bytes and blobs a second,
             the most bytes that are in exchange at once (all of an epoch)
    peak     the most rows in the buffer of the paper's master, by how many groups of slaves it
             serves one after the other
    tuning   CPU-ms of a second of both streams in one of 60 groups, every pair looked at (scan), as
             a whole and in parts of at most two theta; of the engine on 4 slaves without and with
             theta
    to_all   by slaves: bytes of an epoch where one stream goes to all of them
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numba as nb
import numpy as np

from bench.data import pairs_within, write
from bench.join import query
from bench.papers import windowed_joins as paper
from bench.papers.windowed_joins import DISTRIBUTION, GROUPS, RATE, THETA, TUPLE, WINDOW, Served
from bench.result import Result, check_count
from levada import Engine
from levada.core.array_types import Longs
from levada.runtime.executor import AnyBlob, Job, LocalExecutor, deliver, outcome, resolve

RATES, SLAVES, LENGTHS = (1_500, 4_000, 8_000), (1, 2, 4, 8), (0.5, 1.0, 2.0, 4.0)
FOUR, EPOCHS = 4, 20  # epochs that count
MEMORY = f"512MB,theta={THETA}"


@dataclass(slots=True)
class Slaves(LocalExecutor):
    """Runs jobs in this process, and takes down what each epoch sends and takes."""

    master: list[float] = field(default_factory=list)
    slaves: list[list[float]] = field(default_factory=list)
    sent: list[list[int]] = field(default_factory=list)  # bytes, by slave
    blobs: list[int] = field(default_factory=list)

    def run(self, job: Job) -> list[bytes]:
        """The outcomes of ``job``."""
        intake, stage = (resolve(name) for name in job.functions)
        began = time.process_time()
        pairs = [pair for payload in job.payloads for pair in intake(job.context, payload)]
        self.master.append(time.process_time() - began)
        self.slaves.append([0.0] * job.partitions)
        self.sent.append([0] * job.partitions)
        self.blobs.append(0)
        for number in range(1, job.stages + 1):
            inboxes = deliver(pairs, job.partitions)
            self.blobs[-1] += len(pairs)
            pairs = []
            for p, boxed in enumerate(inboxes):
                inbox = [bytes(blob) for blob in boxed]
                self.sent[-1][p] += sum(map(len, inbox))
                began = time.process_time()
                found: list[tuple[int, AnyBlob]] = stage(job.context, number, p, inbox)
                self.slaves[-1][p] += time.process_time() - began
                pairs += found
        return [outcome(target, blob) for target, blob in pairs]


class Stepped(Engine):
    """An engine whose tasks these slaves run."""

    slaves: Slaves

    def _executor(self) -> Slaves:
        self.slaves = Slaves()
        return self.slaves


@dataclass(frozen=True, slots=True)
class Load:
    """Both streams in files of an epoch each, and how many pairs they have."""

    root: Path
    rate: int
    length: float  # s of an epoch
    window: float  # s
    pairs: int

    @property
    def rows(self) -> int:
        """Of an epoch, both streams."""
        return 2 * round(self.rate * self.length)


def load(root: Path, rate: int, length: float, window: float) -> Load:
    """Makes streams of a window and the epochs that count."""
    streams = [paper.poisson(s, rate, window + (EPOCHS + 1) * length) for s in (1, 2)]
    for name, value, stream in zip("ab", "vw", streams, strict=True):
        write(root / name, stream, max(round(rate * length), 1), value)
    return Load(root, rate, length, window, pairs_within(*streams, round(window * 1000)))


def ran(given: Load, slaves: int, **how: Any) -> Slaves:
    """One run over a load; the number of its results is right."""
    with (
        tempfile.TemporaryDirectory(prefix="levada-windowed-") as folder,
        Stepped(
            checkpoint=Path(folder) / "c", epoch_rows=given.rows, partitions=slaves,
            keep_results=False, spark=False, seed=7, **how,
        ) as engine,
    ):  # fmt: skip
        for name in "ab":
            engine.stream(name.upper(), given.root / name)
        engine.register(query(round(given.window * 1000)), name="w1", dialect="cql")
        engine.start(once=True)
        engine.await_end()
        assert engine._driver is not None, "it has been started"
        check_count("windowed", engine._driver.last.results, given.pairs)
        return engine.slaves


def seen(run: Slaves, length: float) -> dict[str, Any]:
    """Of the epochs that count: those before the last one, which has what was left."""
    last = slice(-EPOCHS - 1, -1)
    width = max(map(len, run.slaves[last]))
    tasks = np.array([[*row, *[0.0] * (width - len(row))] for row in run.slaves[last]])
    served = Served(np.array(run.master[last]), tasks)
    sent = np.array([[*row, *[0] * (width - len(row))] for row in run.sent[last]])
    each = sent.mean(axis=0)
    return {
        "delay_s": round(served.delay(length), 3),
        "service_s": round(float(served.service.mean()), 4),
        "cpu_s": round(float(served.master.mean() + served.slaves.sum(axis=1).mean()), 4),
        "idle": round(served.idle(length), 3),
        "bytes": round(float(sent.sum(axis=1).mean())),
        "bytes_peak": int(sent.sum(axis=1).max()),
        "bytes_each": [round(float(x)) for x in (each.min(), each.mean(), each.max())],
        "blobs": round(float(np.mean(run.blobs[last])), 1),
    }


def run(scale: float, stepped: bool) -> Result:
    """All figures; ``stepped`` or not, it is one process."""
    window = max(WINDOW * scale, 4.0)
    with tempfile.TemporaryDirectory(prefix="levada-w1-") as folder:
        root = Path(folder)
        loads = {r: load(root / str(r), r, DISTRIBUTION, window) for r in RATES}
        curves = {
            str(n): {str(r): seen(ran(loads[r], n), DISTRIBUTION) for r in RATES} for n in SLAVES
        }
        for found in curves.values():
            services = [found[str(r)]["service_s"] for r in RATES]
            found["knee"] = {"rate": round(paper.knee(RATES, services, DISTRIBUTION), -2)}
        chosen = ran(loads[RATE], FOUR, balance="windowed-joins")
        tuned = {r: seen(ran(loads[r], FOUR, memory=MEMORY), DISTRIBUTION) for r in RATES}
        lengths = {str(s): _of_length(root / f"of{s}", s, window) for s in LENGTHS}
    tuning = {
        str(r): {
            **scans(r, window),
            "engine": _a_second(curves[str(FOUR)][str(r)]),
            "engine, theta": _a_second(tuned[r]),
        }
        for r in RATES
    }
    half = {n: curves[n][str(RATE)]["bytes"] / 2 for n in curves}
    more = {
        "figures": paper.FIGURES,
        "quoted": paper.QUOTED,
        "curves": curves,
        "chosen": seen(chosen, DISTRIBUTION),
        "lengths": lengths,
        "tuning": tuning,
        "to_all": {n: round(paper.to_all(b, b, int(n))) for n, b in half.items()},
        "peak": {n: paper.peak(2 * RATE, DISTRIBUTION, n) for n in (1, 2, 4, 8)},
    }
    count = {"count": loads[RATES[-1]].pairs, "rows": loads[RATES[-1]].rows}
    return Result("windowed", count | curves[str(FOUR)][str(RATES[-1])], more=more)


def _of_length(root: Path, length: float, window: float) -> dict[str, Any]:
    found = seen(ran(load(root, RATE, length, window), FOUR), length)
    return {
        "delay_s": found["delay_s"],
        "bytes_a_second": round(found["bytes"] / length),
        "bytes_peak": found["bytes_peak"],
        "blobs_a_second": round(found["blobs"] / length, 1),
        "cpu_a_second": round(found["cpu_s"] / length, 4),
    }


def _a_second(found: dict[str, Any]) -> float:
    """CPU-ms of a second of both streams, of one of the groups on average."""
    return round(1000 * found["cpu_s"] / DISTRIBUTION / GROUPS, 3)


def scans(rate: int, window: float) -> dict[str, float]:
    """CPU-ms of a second of a group where each new tuple looks at all of the other window's."""
    rows = max(round(rate * window / GROUPS), 1)
    parts = 1
    while 2 * rows * TUPLE / parts > 2 * THETA:
        parts *= 2
    return {
        name: round(2 * n * _scan_ms(max(rate // GROUPS // n, 1), rows // n), 3)
        for name, n in (("scan", 1), ("scan in parts", parts))
    }


def _scan_ms(fresh: int, rows: int) -> float:
    rng = np.random.default_rng(5)
    keys, probes = (rng.integers(0, 1 << 40, n) for n in (rows, fresh))
    _scan(probes[:1], keys[:1])
    best = []
    for _ in range(5):
        began = time.process_time()
        _scan(probes, keys)
        best.append(time.process_time() - began)
    return 1000 * min(best)


@nb.njit(nogil=True, cache=False)  # type: ignore[untyped-decorator]
def _scan(probes: Longs, keys: Longs) -> int:
    """Pairs of equal key, by looking at all of them."""
    found = 0
    for probe in probes:
        for key in keys:
            if key == probe:
                found += 1
    return found
