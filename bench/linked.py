"""Chains and circles for ``multiway``: streams of tuples joined by different columns, two at a
time, in one step with parts at all partitions, and as the engine chooses.

    small    A, B of 20,000 rows in the window, C of 500: C is cheap to have everywhere
    large    three streams of 20,000 rows, each of which finds about one in each other
    wide     A and B have 20 rows a key, so what is joined of both is ten times as large as they
             are; one row in a hundred of C finds its key in B
    skew     half of the rows of A and B have one value of what they share
    circle   three streams of 10,000 rows whose last column is the first one's first
    five     five streams of 10,000 rows, a chain in which each row finds about one

Four partitions, stepped in one process: CPU is that of all of them. ``sent``: bytes of the blobs
that tasks send each other, of a row.
"""

from __future__ import annotations

import functools
import itertools
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.apart import apart
from bench.result import check_count
from levada import Engine
from levada.checkpoint.manifest import Manifest
from levada.runtime.executor import Executor, Job, LocalExecutor, deliver, outcome, resolve

WINDOW = 10_000  # ms
WINDOWS = 5  # of data
WARM = 2  # windows that do not count
FILES = 4  # a window, each an epoch
ROUNDS = 2
PARTITIONS = 4
FORMS = ("binary", "replicated", "auto")


@dataclass(frozen=True, slots=True)
class Linked:
    """Of each stream: rows in a window, how many values its first and its second column have, from
    which of these on; ``heavy``: the share of the rows whose shared value is 0, by stream and
    column. ``circle``: the last one's second is the first one's first.
    """

    rows: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    circle: bool = False
    heavy: tuple[tuple[float, float], ...] = ()
    apart: tuple[float, ...] = ()

    def scaled(self, scale: float) -> Linked:
        """The same with so many times the rows and values."""
        rows, first, second = (
            tuple([max(int(n * scale), FILES) for n in each])
            for each in (self.rows, self.first, self.second)
        )
        return Linked(rows, first, second, self.circle, self.heavy, self.apart)


WORKLOADS = {
    "small": Linked((20_000, 20_000, 500), (20_000,) * 3, (20_000,) * 3),
    "large": Linked((20_000,) * 3, (20_000,) * 3, (20_000,) * 3),
    "wide": Linked(
        (20_000, 20_000, 1_000), (1_000, 1_000, 20_000), (1_000, 20_000, 1_000), apart=(0, 0, 0.9)
    ),
    "skew": Linked(
        (4_000, 200, 2_000), (4_000, 1_000, 1_000), (1_000, 1_000, 4_000),
        heavy=((0, 0.3), (0.3, 0), (0, 0)),
    ),
    "circle": Linked((10_000,) * 3, (5_000,) * 3, (5_000,) * 3, circle=True),
    "five": Linked((10_000,) * 5, (10_000,) * 5, (10_000,) * 5),
}  # fmt: skip


def text(streams: str, *, circle: bool) -> str:
    """The chain of these streams in CQL: the second column of each is the first of the next."""
    read = ", ".join(f"{name} [Range {WINDOW} ms]" for name in streams)
    shown = ", ".join(f"{name}.ts As t{name}" for name in streams)
    pairs = itertools.pairwise(streams)
    equal = [f"{a}.m = {b}.k" for a, b in pairs]
    equal += [f"{streams[-1]}.m = {streams[0]}.k"] if circle else []
    return f"Istream(Select {shown} From {read} Where {' And '.join(equal)})"


def prepare(folder: Path, work: Linked) -> int:
    """Writes the streams; the number of results."""
    made = []
    for i, (rows, first, second) in enumerate(zip(work.rows, work.first, work.second, strict=True)):
        rng, n = np.random.default_rng(i), rows * WINDOWS
        heavy = work.heavy[i] if work.heavy else (0.0, 0.0)
        k, m = (
            np.where(rng.random(n) < share, 0, rng.integers(0, many, n))
            for share, many in zip(heavy, (first, second), strict=True)
        )
        if work.apart:
            k = np.where(rng.random(n) < work.apart[i], k + 10**9, k)
        made.append(pl.DataFrame({"k": k, "m": m, "ts": np.arange(n) * WINDOW // rows}))
        write(folder / "ABCDE"[i], made[-1], max(rows // FILES, 1))
    return combinations(made, circle=work.circle)


def write(folder: Path, stream: pl.DataFrame, rows: int) -> None:
    """Files of so many rows, in the order of their names and times."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, len(stream), rows)):
        path = folder / f"{number:05}.parquet"
        stream[start : start + rows].write_parquet(path, compression="uncompressed")
        os.utime(path, (1_600_000_000 + number,) * 2)


def combinations(streams: list[pl.DataFrame], *, circle: bool) -> int:
    """Rows that agree, and that are in the window together; of the last instant nothing is known
    yet, since streams do not end.
    """
    last = min(int(s["ts"].max()) for s in streams)  # type: ignore[arg-type]
    found = streams[0].rename({"k": "first", "m": "on", "ts": "t0"}).filter(pl.col("t0") < last)
    for i, stream in enumerate(streams[1:], 1):
        nxt = stream.rename({"k": "on", "m": "next", "ts": f"t{i}"}).filter(pl.col(f"t{i}") < last)
        found = found.join(nxt, on="on").drop("on").rename({"next": "on"})
        times = [f"t{j}" for j in range(i + 1)]
        span = pl.max_horizontal(times) - pl.min_horizontal(times)
        found = found.filter(span < WINDOW)
    return len(found.filter(pl.col("on") == pl.col("first")) if circle else found)


class Counting(LocalExecutor):
    """Runs jobs in this process, and counts the bytes that are sent."""

    def __init__(self) -> None:
        self.sent = 0

    def run(self, job: Job) -> list[bytes]:
        """The outcomes of a job."""
        intake, stage = map(resolve, job.functions)
        sent = [pair for payload in job.payloads for pair in intake(job.context, payload)]
        for number in range(1, job.stages + 1):
            self.sent += sum(len(blob) for _, blob in sent)
            inboxes = deliver(sent, job.partitions)
            blobs = (stage(job.context, number, p, inboxes[p]) for p in range(job.partitions))
            sent = [pair for each in blobs for pair in each]
        return [outcome(target, blob) for target, blob in sent]


class Counted(Engine):
    """An engine whose jobs are counted."""

    counting: Counting

    def _executor(self) -> Executor:
        self.counting = Counting()
        return self.counting


def side(folder: str, form: str, streams: str, epoch: int, circle: bool) -> dict[str, Any]:
    """One run: results, CPU of a row and bytes sent for it after the warm-up, bytes of state."""
    marks: list[tuple[int, float, int]] = []
    results = 0

    def see(manifest: Manifest) -> None:
        nonlocal results
        results = manifest.results
        elements = sum(s.elements for s in manifest.streams.values())
        marks.append((elements, time.process_time(), engine.counting.sent))

    with tempfile.TemporaryDirectory(prefix="levada-linked-") as into:
        root = Path(into) / "c"
        with Counted(
            spark=False, checkpoint=root, partitions=PARTITIONS, seed=7, epoch_rows=epoch,
            keep_results=False, join=form,
        ) as engine:  # fmt: skip
            for name in streams:
                engine.stream(name, f"{folder}/{name}", format="parquet")
            engine.register(text(streams, circle=circle), name="q", dialect="cql")
            engine._on_epoch(see)
            engine.start(once=True, keep_open=True)
            engine.await_end()
            assert engine._driver is not None, "it has been started"
            plan = engine._driver.epochs.plan
            assert plan is not None, "there was an epoch"
            kinds = sorted({type(node.step).__name__ for node in plan.nodes.values()})
        state = sum(file.stat().st_size for file in (root / "state").iterdir())
    first, last = marks[len(marks) * WARM // WINDOWS], marks[-1]
    rows = last[0] - first[0]
    return {"count": results, "us": round((last[1] - first[1]) / rows * 1e6, 3),
            "state_kb": round(state / 1000), "sent": round((last[2] - first[2]) / rows, 1),
            "one_step": "LinkedJoin" in kinds}  # fmt: skip


def sides(work: Linked) -> dict[str, Any]:
    """A workload in each form, in turn; ``chosen``: auto by the better of both others."""
    streams, epoch = "ABCDE"[: len(work.rows)], sum(work.rows) // FILES
    best: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="levada-linked-") as folder:
        expected = prepare(Path(folder), work)
        run = functools.partial(
            apart, "bench.linked:side", folder=folder, streams=streams, epoch=epoch,
            circle=work.circle,
        )  # fmt: skip
        for _ in range(ROUNDS):
            for form in FORMS:
                got = run(form=form)
                check_count(f"{form} of {streams}", got["count"], expected)
                best[form] = min(best.get(form, got), got, key=lambda one: float(one["us"]))
    least = min(one["us"] for form, one in best.items() if form != "auto")
    return {**best, "chosen": round(best["auto"]["us"] / least, 3)}


def run(scale: float) -> dict[str, Any]:
    """All workloads."""
    return {name: sides(work.scaled(scale)) for name, work in WORKLOADS.items()}
