"""``choice``: what the engine's choice of one task or many loses against the better of both.

W1 (two streams joined), W2 (aggregates over a sliding window) and W3 (query 3 of SRBench, closed
elements) at three numbers of rows in an epoch, on Spark with two cores. Each runs twice: with its
epochs in turn as one task and spread over tasks, which says what either takes (the medians, in ms
of wall clock: what else runs on the machine slows both); and as the engine chooses. An epoch counts
as what its way takes, so ``loss`` says how much longer all epochs behind the first ``WARM`` are
than if each had run the better way.

``time_off`` and ``cpu_off``: what was predicted for the epochs of a way, by what they took and by
the CPU time of their tasks, less one; each is predicted before it runs. ``within_10`` counts those
of all workloads, sizes and ways that are not further off, ``worst`` is the one that is furthest.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.aggregate import QUERY as W2
from bench.data import events, write
from bench.join import query as w1
from bench.result import Result, check_count
from bench.srbench import STREAM, Weather, query, write_timed
from bench.ways import in_turn
from levada import Engine
from levada.checkpoint.manifest import Choice
from levada.runtime.cost_model.parallelism_choice import ONE, SPREAD
from levada.runtime.driver.parallelism import ParallelismPolicy

EPOCHS, WARM = 20, 8
SIZES = (10_000, 100_000, 1_000_000)
STATIONS = 100
Streams = dict[str, dict[str, Any]]


def _tuples(folder: Path, names: str, rows: int, epochs: int) -> Streams:
    """Streams of so many rows an epoch together, a file each epoch."""
    each = rows // len(names)
    for seed, name in enumerate(names):
        stream = events(
            seed, each * epochs, 100_000 if len(names) > 1 else 1000, rate=each / 10_000
        )
        write(folder / name, stream, each)
    return {name: {"source": folder / name} for name in names}


def _triples(folder: Path, rows: int, epochs: int) -> Streams:
    """Days of weather; an observation is three triples."""
    minutes = rows * epochs // (3 * STATIONS) + 1
    write_timed(folder / "w.nt", Weather(STATIONS, 0, -(-minutes // 1440)))
    return {STREAM: {"source": folder / "w.nt", "element": "subject", "closed": "element"}}


def work(name: str, folder: Path, rows: int, epochs: int = EPOCHS) -> tuple[Streams, str, str]:
    """The streams, the query and its language."""
    if name == "w1":
        return _tuples(folder, "AB", rows, epochs), w1(10_000).replace("B.w", "B.v"), "cql"
    if name == "w2":
        return _tuples(folder, "S", rows, epochs), W2, "cql"
    return _triples(folder, rows, epochs), query(), "rspql"


def _run(asked: tuple[Streams, str, str], rows: int, session: Any) -> tuple[int, list[Choice]]:
    """Some epochs: how many results, and how each epoch ran."""
    streams, text, dialect = asked
    found: list[Choice] = []
    # an observation is an element, of three triples
    elements = rows // 3 if STREAM in streams else rows
    with Engine(spark=session, partitions=2, epoch_rows=elements, keep_results=False) as engine:
        for name, options in streams.items():
            engine.stream(name, **options)
        engine.register(text, name="q", dialect=dialect)
        engine._on_epoch(
            lambda told: found.append(told.epoch_costs.last_epoch if told.epoch_costs else Choice())
        )
        engine.start(once=True)
        engine.await_end()
        assert engine._driver is not None, "it has been started"
        return engine._driver.last.results, found


def compare(name: str, rows: int, session: Any) -> dict[str, Any]:
    """What a choice loses for one workload at one size."""
    with tempfile.TemporaryDirectory(prefix="levada-choice-") as folder:
        asked = work(name, Path(folder), rows)
        with patch.object(ParallelismPolicy, "_way", in_turn):
            count, forced = _run(asked, rows, session)
        again, chosen = _run(asked, rows, session)
    check_count(f"{name} of {rows}", again, count)
    most = max(c.elements for c in forced)
    full = [c for c in forced[WARM:] if c.elements > most / 2]
    ms = {w: statistics.median(c.measured_ms for c in full if c.mode == w) for w in (ONE, SPREAD)}
    own = [c for c in chosen[WARM:] if c.elements > most / 2][: EPOCHS - WARM]
    best = min(ms.values()) * len(own)
    ways = {way: [c for c in full if c.mode == way and c.predicted_ms] for way in (ONE, SPREAD)}
    return {
        "count": count,
        **{f"{way}_ms": round(each, 1) for way, each in ms.items()},
        "best_ms": round(best, 1),
        "chosen_ms": round(sum(ms[c.mode] for c in own), 1),
        "as_one": sum(c.mode == ONE for c in own) / max(len(own), 1),
        "time_off": {
            w: _off([(c.predicted_ms[w], c.measured_ms) for c in own]) for w, own in ways.items()
        },
        "cpu_off": {
            w: _off([(c.predicted_task_cpu_ms, c.measured_task_cpu_ms) for c in own])
            for w, own in ways.items()
        },
    }


def _off(pairs: Sequence[tuple[float, float]]) -> float:
    """What was predicted, by what was measured, less one: of all epochs together."""
    predicted, measured = (sum(column) for column in zip(*pairs, strict=True))
    return round(predicted / measured - 1, 3)


def quality(found: Sequence[dict[str, Any]], key: str) -> dict[str, Any]:
    """How many predictions are within 10 %, and the one that is furthest off."""
    off = [value for each in found for value in each[key].values()]
    return {
        "of": len(off),
        "within_10": sum(abs(o) <= 0.1 for o in off),
        "worst": max(map(abs, off)),
    }


def run(scale: float, stepped: bool) -> Result:
    """All workloads on one session; ``scale`` is of the rows of an epoch."""
    from levada.runtime.spark.spark_session import start_session, stop_session

    with tempfile.TemporaryDirectory(prefix="levada-choice-spark-") as scratch:
        session = start_session("local[2]", scratch=Path(scratch))
        try:
            compare("w2", 1000, session)  # the JVM compiles itself
            found = {
                f"{name}_{rows}": compare(name, max(int(rows * scale), 1000), session)
                for name in ("w1", "w2", "w3")
                for rows in SIZES
            }
        finally:
            stop_session(session)
    best, chosen = (sum(each[key] for each in found.values()) for key in ("best_ms", "chosen_ms"))
    total = {"count": sum(each["count"] for each in found.values())}
    told = {key: quality(list(found.values()), key) for key in ("time_off", "cpu_off")}
    return Result("choice", total, more={"loss": round(chosen / best - 1, 4), **told, **found})
