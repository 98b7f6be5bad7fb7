"""One run of Levada's engine, measured: streams and queries in, counts and costs out.

Results go the whole way to published segments, which the driver reads once, as it does for any
sink. ``stepped`` runs the same epochs in this process without Spark (for profiles). The warm-up is
the elements that the caller says, two epochs at least, and behind the first of them some epochs
without data, which run in the driver. On Spark the others of the warm-up run as one task and spread
over tasks in turn, so the JVM and the workers are warm for either. With a ``Supply`` the engine
reads folders to which rounds are added until it is steady; without, what is there.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bench.empty import empty_after_first
from bench.measure import Tree, peak_memory
from bench.meter import Meter
from bench.steady import Supply
from bench.ways import each_way_until
from levada import Engine
from levada.checkpoint.manifest import Manifest

Streams = Mapping[str, Mapping[str, Any]]
Queries = Mapping[str, Mapping[str, str]]
EMPTY = 50  # epochs of warm-up without data, which run in the driver


@dataclass
class Loading:
    """A static file in the default graph; ``told`` gets the time, the CPU and the memory of the
    first epoch, which reads it.
    """

    path: str
    replaceable: bool = False
    told: dict[str, Any] = field(default_factory=dict)

    def watch(self, engine: Engine, tree: Tree) -> None:
        """Measures from now to the publication of the first epoch."""
        began, before = time.perf_counter(), tree.cpu()

        def see(manifest: Manifest) -> None:
            if not self.told:
                spent = tree.cpu() - before
                self.told["load_s"] = round(time.perf_counter() - began, 2)
                self.told["load_cpu_s"], self.told["loaded_memory_mb"] = (
                    round(spent.total, 2),
                    peak_memory() // 10**6,
                )

        engine._on_epoch(see)


def run_engine(
    streams: Streams,
    queries: Queries,
    *,
    epoch_rows: int,
    warm: int,
    stepped: bool,
    by: str = "elements",
    given: Mapping[str, Any] | None = None,
    static: Loading | None = None,
    supply: Supply | None = None,
) -> dict[str, Any]:
    """The side ``levada``: ``count`` are all solutions, ``warm`` the rows that do not count.

    ``epoch_rows`` are the most elements in an epoch; ``by``: whether a row is one of the "elements"
    or of the "triples".

    ``streams`` maps names to ``{"source": path, ..}``, ``queries`` to ``{"text": .., "dialect":
    ..}``; ``given`` are further arguments of the engine.
    """
    assert warm > epoch_rows, "the first epoch is warm-up, and the empty ones behind it"
    meter = Meter(warm, supply)
    results = {"count": 0}

    def see(manifest: Manifest) -> None:
        if not meter.over.is_set():
            results["count"] = manifest.results
        meter.see(
            sum(getattr(stream, by) for stream in manifest.streams.values()), manifest.has_ended
        )

    with (
        each_way_until(lambda: meter.is_warm),
        _engine(
            streams, queries, epoch_rows=epoch_rows, stepped=stepped, **(given or {})
        ) as engine,
    ):
        if static is not None:
            engine.static(static.path, replaceable=static.replaceable)
            static.watch(engine, meter.tree)
        engine._on_epoch(see)
        empty_after_first(engine, EMPTY)
        engine.start(once=supply is None)
        while not engine.await_end(0.05) and not meter.over.is_set():
            pass
    return meter.side(results["count"], epoch_rows=epoch_rows)


def on_spark(engine: Engine) -> None:
    """Has all epochs after the first one run on Spark: what is measured is not its start."""

    def wait(manifest: Manifest) -> None:
        engine._await_spark()

    engine._on_epoch(wait)


def run_empty(streams: Streams, queries: Queries, *, epochs: int, stepped: bool) -> dict[str, Any]:
    """The floor: ``epochs`` epochs without data, between publications.

    What there is of the streams (at most a million elements) is read in the first. As warm-up there
    are at least 600 before: in the first seconds what was put off until it is needed is loaded.
    """
    warm = max(epochs, 600)
    meter = Meter(warm)  # counted in epochs here
    with _engine(streams, queries, epoch_rows=1_000_000, stepped=stepped) as engine:
        engine._on_epoch(
            lambda manifest: meter.see(manifest.epoch, manifest.epoch == warm + epochs)
        )
        empty_after_first(engine)
        engine.start()
        while not meter.memory:
            engine.await_end(0.05)
        plan = engine._driver.epochs.plan if engine._driver else None
        stages = plan.stages if plan else 0
    each = np.diff(meter.at) * 1000
    cpu = {
        name: round(seconds * 1000 / len(each), 2) for name, seconds in meter.cpu.to_json().items()
    }
    return {
        "median_ms": round(statistics.median(each.tolist()), 2),
        "p99_ms": round(float(np.percentile(each, 99)), 2),
        "least_ms": round(float(each.min()), 2),
        "cpu_ms": round(meter.cpu.total * 1000 / len(each), 2),
        "cpu": cpu,
        "epochs": len(each),
        "stages": stages,
        "peak_memory_mb": round(meter.memory / 1e6),
    }


@contextmanager
def _engine(
    streams: Streams, queries: Queries, *, epoch_rows: int, stepped: bool, **given: Any
) -> Iterator[Engine]:
    """An engine on a checkpoint of its own, with its streams and queries, not started."""
    with tempfile.TemporaryDirectory(prefix="levada-bench-") as folder:
        spark = False if stepped else None
        engine = Engine(
            spark=spark,
            checkpoint=Path(folder) / "c",
            epoch_rows=epoch_rows,
            keep_results=False,
            seed=7,
            **given,
        )
        with engine:
            on_spark(engine)
            for name, stream in streams.items():
                engine.stream(name, **stream)
            for name, query in queries.items():
                engine.register(query["text"], name=name, dialect=query["dialect"])
            yield engine
