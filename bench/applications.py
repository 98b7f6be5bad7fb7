"""``applications``: BriskStream's word count, fraud detection, spike detection and Linear Road in
Levada, each with its number of results counted by plain Python first.

Events (words, transactions, readings, reports) per CPU-second of all processes, from files of an
epoch each (Parquet), beside the issue's targets and what BriskStream reaches per core on its
server A (Zhang et al., SIGMOD 2019), which generates its input in memory. Of word count the cutting
of sentences into words is Python's, before the engine, and its CPU counts (``split_cpu_s``). State
goes on growing as the applications say, so there are no rounds: a run has a warm-up of some epochs,
and what follows is told. There is no baseline.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from bench.apart import apart
from bench.engine import run_engine
from bench.result import Result, check_count
from bench.streaming import word_count
from bench.streaming.all import APPLICATIONS
from bench.streaming.application import Application, Frames

WARM = 4
"""Epochs."""
SEED = 11


def write(folder: Path, streams: Frames, rows: int) -> None:
    """The streams as folders of Parquet files of so many rows each."""
    for name, frame in streams.items():
        (folder / name).mkdir(parents=True)
        for i in range(0, frame.height, rows):
            frame.slice(i, rows).write_parquet(
                folder / name / f"{i // rows:05}.parquet", compression="uncompressed"
            )


def split_cost(n: int) -> float:
    """CPU-seconds that cutting so many words out of sentences takes."""
    given = word_count.sentences(max(n // word_count.WORDS, 1), SEED)
    began = time.process_time()
    word_count.split(given)
    return time.process_time() - began


def side(name: str, n: int, epoch: int, stepped: bool) -> dict[str, Any]:
    """One application, in this process; its number of results is checked."""
    app = APPLICATIONS[name]
    streams = app.make(n + WARM * epoch, SEED)
    expected = sum(len(rows) for q, rows in app.answers(streams).items() if q in app.measured)
    with tempfile.TemporaryDirectory(prefix="levada-applications-") as folder:
        write(Path(folder), streams, epoch)
        told = run_engine(
            {
                stream: {"source": f"{folder}/{stream}"}
                | ({"sign": "sign"} if stream in app.relations else {})
                for stream in streams
            },
            {q: {"text": app.queries[q], "dialect": "cql"} for q in app.measured},
            epoch_rows=epoch,
            warm=WARM * epoch,
            stepped=stepped,
        )
    check_count(name, told["count"], expected)
    return told | _split(app, told)


def _split(app: Application, told: dict[str, Any]) -> dict[str, Any]:
    """The rate with what stands before the engine."""
    before = split_cost(told["rows"]) if app.name == "WC" else 0.0
    rate = told["rows"] / (told["cpu_s"] + before)
    return {
        "split_cpu_s": round(before, 3),
        "rows_per_cpu_s": round(rate),
        "target": round(app.target * 1e6),
        "by_target": round(rate / app.target / 1e6, 2),
        "briskstream": round(app.brisk * 1e6),
        "by_briskstream": round(rate / app.brisk / 1e6, 2),
    }


def run(scale: float, stepped: bool) -> Result:
    """All four, each in a process of its own."""
    found = {
        name: apart(
            "bench.applications:side",
            name=name,
            n=max(int(app.events * scale), 1000),
            epoch=max(int(app.epoch * min(scale, 1)), 100),
            stepped=stepped,
        )
        for name, app in APPLICATIONS.items()
    }
    met = sum(one["by_target"] >= 1 for one in found.values())
    return Result("applications", {"count": sum(one["count"] for one in found.values()), **found},
                  more={"targets_met": met})  # fmt: skip
