"""``yabench``: stations that tell a temperature each second, in real time, after YABench: precision
and recall of the results, and delays.

50, 1,000 and 10,000 stations, three queries over five seconds (a filter, the average of each
station, the pairs of a station's observations that are far apart), on Spark. A file appears four
times a second with what has been observed since; event times are those of the wall clock. What is
right follows from the generator's formula, by NumPy; the *delay* of a report is the time at which
its results are published less that of its close. Delays of the first two reports, while everything
warms up, are left out.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from bench.apart import apart
from bench.engine import on_spark
from bench.result import CountError, Result
from levada import Engine
from levada.connectors.serialization.serialize import Batch

STREAM = "http://example.org/temperatures"
STATIONS = (50, 1_000, 10_000)
WINDOW, BEAT, SECOND = 5_000, 250, 1_000
REPORTS, WARM = 8, 2
HOT, APART = 38, 37
Longs = npt.NDArray[np.int64]

_ONE = "?o <http://e/of> ?s ; <http://e/value> ?v ."
_TWO = "?p <http://e/of> ?s ; <http://e/value> ?w ."
BODIES = {
    "filter": ("?s ?v", f"WINDOW <urn:w> {{ {_ONE} FILTER(?v >= {HOT}) }}", ""),
    "average": ("?s (AVG(?v) AS ?a)", f"WINDOW <urn:w> {{ {_ONE} }}", "GROUP BY ?s"),
    "self-join": ("?s ?v ?w", f"WINDOW <urn:w> {{ {_ONE} {_TWO} FILTER(?w - ?v >= {APART}) }}", ""),
}


def text(name: str) -> str:
    """A query in RSP-QL."""
    head, body, tail = BODIES[name]
    window = f"[RANGE PT{WINDOW // 1000}S STEP PT{WINDOW // 1000}S]"
    return (
        f"SELECT {head} FROM NAMED WINDOW <urn:w> ON <{STREAM}> {window} WHERE {{ {body} }} {tail}"
    )


@dataclass(frozen=True, slots=True)
class Stations:
    """So many stations from the instant ``start`` (ms, a close) on; each observes once a second, at
    a time of its own.
    """

    count: int
    start: int
    reports: int = REPORTS

    @property
    def end(self) -> int:
        """The last close."""
        return self.start + self.reports * WINDOW

    def observed(self, low: int, high: int) -> tuple[Longs, Longs, Longs]:
        """Station, value and time of all observations in [low, high), in order of time."""
        second = np.arange((low - self.start) // SECOND, -(-(high - self.start) // SECOND))
        station = np.arange(self.count)
        n, k = (grid.ravel() for grid in np.meshgrid(second, station, indexing="ij"))
        ts = self.start + n * SECOND + k * SECOND // self.count
        keep = (ts >= low) & (ts < high)
        return k[keep], self.value(k[keep], n[keep]), ts[keep]

    def value(self, station: Longs, second: Longs) -> Longs:
        """The formula: what a station observes in a second."""
        return (station * 7 + second * second * 11 + station * second * 5) % 41

    def closes(self) -> range:
        """The reports' times."""
        return range(self.start + WINDOW, self.end + 1, WINDOW)


def right(stations: Stations, name: str) -> pl.DataFrame:
    """The results that the formula gives, as rows of numbers."""
    parts = [
        _at_close(name, *stations.observed(close - WINDOW, close)[:2], close)
        for close in stations.closes()
    ]
    return pl.concat(parts)


def _at_close(name: str, k: Longs, v: Longs, close: int) -> pl.DataFrame:
    rows = pl.DataFrame({"r": np.full(len(k), close), "s": k, "v": v})
    if name == "filter":
        return rows.filter(pl.col("v") >= HOT).cast(pl.Float64)
    if name == "average":
        return rows.group_by("r", "s").agg(pl.col("v").mean().alias("a")).cast(pl.Float64)
    pairs = rows.join(rows.rename({"v": "w"}), on=["r", "s"])
    return pairs.filter(pl.col("w") - pl.col("v") >= APART).cast(pl.Float64)


@dataclass
class Published:
    """A sink that keeps results as rows of numbers, and when those of each close were there."""

    rows: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    at: dict[str, dict[int, float]] = field(default_factory=dict)

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Takes a batch."""
        now = time.time() * 1000
        columns = {
            name: batch.columns[name].str.extract(r"(-?\d[\d.]*)[\">]").cast(pl.Float64)
            for name in variables
        }
        frame = pl.DataFrame({"r": batch.report.astype(np.float64), **columns})
        self.rows.setdefault(query, []).append(frame)
        for close in frame["r"].unique().to_list():
            self.at.setdefault(query, {})[int(close)] = now
        return []

    def score(self, stations: Stations, name: str) -> dict[str, Any]:
        """Precision and recall over the bags of results, and the delays."""
        expected = right(stations, name)
        got = pl.concat(self.rows.get(name, [expected.clear()])).select(expected.columns)
        # at the end of the streams what comes after it is reported, too
        got = got.filter(pl.col("r") <= stations.end)
        keys = [pl.col(c).round(9) for c in expected.columns]
        both = (
            expected.group_by(keys).len("n").join(got.group_by(keys).len("m"), on=expected.columns)
        )
        same = both.select(pl.min_horizontal("n", "m").sum()).item() or 0
        delays = np.array(
            [
                at - close
                for close, at in sorted(self.at.get(name, {}).items())
                if close <= stations.end
            ][WARM:]
        )
        told = {
            "expected": expected.height,
            "got": got.height,
            "precision": same / max(got.height, 1),
            "recall": same / max(expected.height, 1),
        }
        if len(delays):
            p50, p99 = np.percentile(delays, [50, 99]).tolist()
            told |= {"delay_p50_ms": round(p50), "delay_p99_ms": round(p99)}
        return told


def _lines(stations: Stations, low: int, high: int) -> str:
    k, v, ts = stations.observed(low, high)
    frame = pl.DataFrame({"k": k, "v": v, "ts": ts})
    o = "<http://e/o{}-{}>"
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    of = pl.format(o + " <http://e/of> <http://e/s{}> {} .", "k", "ts", "k", "ts")
    value = pl.format(o + " <http://e/value> " + number + " {} .", "k", "ts", "v", "ts")
    return (
        frame.select(pl.concat_str([of, value], separator="\n")).to_series().str.join("\n").item()
        + "\n"
    )


def put(folder: Path, stations: Stations, low: int, high: int) -> None:
    """A file of the observations in [low, high), there whole or not at all."""
    hidden = folder / f".{low}"
    hidden.write_text(_lines(stations, low, high))
    hidden.rename(folder / f"{low}.nt")


def beats(stations: Stations) -> Iterator[tuple[int, int]]:
    """The spans of the files: up to the last close, and what comes after and closes it."""
    for low in range(stations.start, stations.end, BEAT):
        yield low, low + BEAT
    yield stations.end, stations.end + SECOND


def _run(
    engine: Engine, folder: Path, sink: Published, stations: Stations, pace: Callable[[int], None]
) -> None:
    engine.stream(STREAM, str(folder))
    for name in BODIES:
        engine.register(text(name), name=name, dialect="rspql")
    if engine._spark is not False:
        engine.start()
    for low, high in beats(stations):
        pace(high)
        put(folder, stations, low, high)
    if engine._spark is False:
        engine.start(once=True)
        engine.await_end()
    until = time.monotonic() + 60
    while time.monotonic() < until and any(
        len(sink.at.get(n, {})) < stations.reports for n in BODIES
    ):
        engine.await_end(0.1)
    engine.stop()


def paced(stations: int, reports: int) -> dict[str, Any]:
    """One size in real time on Spark, in this process. It begins when Spark has started."""
    start = -(-(int(time.time() * 1000) + 25_000) // WINDOW) * WINDOW
    shape = Stations(stations, start, reports)
    sink = Published()
    with tempfile.TemporaryDirectory(prefix="levada-yabench-") as folder:
        (source := Path(folder) / "s").mkdir()
        (source / "0.nt").write_text(
            f'<http://e/none> <http://e/none> "0" {start - WINDOW * 10} .\n'
        )
        with Engine(checkpoint=Path(folder) / "c", sink=sink, keep_results=False, seed=7) as engine:
            on_spark(engine)
            _run(engine, source, sink, shape, _until)
    return {name: sink.score(shape, name) for name in BODIES}


def _until(instant: int) -> None:
    time.sleep(max(instant / 1000 - time.time(), 0))


def at_once(stations: int, reports: int = 3) -> dict[str, Any]:
    """One size without real time and without Spark: whether the results are right."""
    shape = Stations(stations, 0, reports)
    sink = Published()
    with tempfile.TemporaryDirectory(prefix="levada-yabench-") as folder:
        (source := Path(folder) / "s").mkdir()
        with Engine(
            spark=False, checkpoint=Path(folder) / "c", sink=sink, keep_results=False, seed=7
        ) as engine:
            _run(engine, source, sink, shape, lambda instant: None)
    found = {name: sink.score(shape, name) for name in BODIES}
    return {
        name: {k: v for k, v in told.items() if "delay" not in k} for name, told in found.items()
    }


def run(scale: float, stepped: bool) -> Result:
    """All sizes; ``levada`` is the largest. Raises ``CountError`` where a result is wrong, missing,
    or too much.
    """
    sizes = {}
    for count in STATIONS:
        stations = max(int(count * scale), 1)
        told = apart(
            "bench.yabench:" + ("at_once" if stepped else "paced"),
            stations=stations,
            reports=3 if stepped else REPORTS,
        )
        for name, side in told.items():
            if side["precision"] < 1 or side["recall"] < 1:
                raise CountError(f"{stations} stations, {name}: {side}")
        sizes[str(stations)] = told
    return Result("yabench", sizes[str(stations)], more={"stations": sizes})
