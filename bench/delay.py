"""``delay``: from the write of the element that makes a report due to its publication, at half of
what the engine can take, where results are to come within ``DELAY`` ms.

W3 (query 3 of SRBench, closed elements, every station in each report) on Spark. First all that was
made is read as fast as it can be, with the delay: that is the whole load. Then a process of its own
appends the same minutes to a file, at half of it; the latency of a report is from the return of the
write of the first minute behind its close. What comes in the first ``WARM`` seconds does not count.
There is no baseline.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.result import CountError, Result
from bench.srbench import HOUR, MINUTE, STREAM, Weather, _text, query
from levada import Engine
from levada.checkpoint.manifest import Manifest
from levada.engine.query import Report

DELAY = 250
STATIONS = 100
WARM, SPAN = 8.0, 20.0  # s; less where what is made does not last so long
MOST = 60_000  # minutes that are made: 3 GB


def make(path: Path, minutes: int) -> list[int]:
    """A file of so many minutes, and where each ends."""
    weather, ends = Weather(STATIONS, 0, -(-minutes // 1440)), []
    with path.open("wb") as file:
        for _, minute in zip(range(minutes), weather.round(), strict=False):
            file.write(_text([minute], timed=True).encode())
            ends.append(file.tell())
    return ends


def append(made: str, into: str, plan: str) -> None:
    """Appends minute after minute to a file, so many seconds apart; prints when each was there."""
    every, ends = json.loads(Path(plan).read_text())
    began, there, at = time.monotonic(), [], 0
    with open(made, "rb") as source, open(into, "ab", buffering=0) as target:
        for i, end in enumerate(ends):
            time.sleep(max(began + i * every - time.monotonic(), 0))
            target.write(source.read(end - at))
            there.append(time.monotonic())
            at = end
    print(json.dumps(there))


def _engine(folder: Path, name: str, path: Path, stepped: bool) -> tuple[Engine, Any]:
    engine = Engine(
        spark=False if stepped else None, checkpoint=folder / name, master="local[2]", delay=DELAY
    )
    engine.stream(STREAM, path, element="subject", closed="element")
    return engine, engine.register(query(0.0), name="q", dialect="rspql")


def capacity(folder: Path, made: Path, stepped: bool) -> float:
    """Minutes a second with everything there; the first quarter is warm-up."""
    engine, _ = _engine(folder, "all", made, stepped)
    seen: list[tuple[float, int]] = []

    def see(manifest: Manifest) -> None:
        elements = sum(s.elements for s in manifest.streams.values())
        seen.append((time.monotonic(), elements))

    with engine:
        engine._on_epoch(see)
        engine.start(once=True)
        engine.await_end()
    quarter = next(i for i, (_, n) in enumerate(seen) if n >= seen[-1][1] / 4)
    (began, first), (over, last) = seen[quarter], seen[-1]
    return (last - first) / STATIONS / (over - began)


def latencies(
    folder: Path, made: Path, ends: list[int], rate: float, *, warm: float, stepped: bool
) -> tuple[list[float], list[dict[str, Any]]]:
    """Seconds of each report behind the warm-up, and how the delay was kept, by epoch."""
    live, plan = folder / "live.nt", folder / "plan.json"
    live.touch()
    plan.write_text(json.dumps([1 / rate, ends]))
    engine, asked = _engine(folder, "live", live, stepped)
    seen: dict[int, float] = {}
    told: list[dict[str, Any]] = []

    def see(report: Report) -> None:
        seen.setdefault(int(report.time or 0), time.monotonic())

    def note(manifest: Manifest) -> None:
        delay = manifest.epoch_costs and manifest.epoch_costs.delay
        if delay and manifest.epoch_costs:
            last = manifest.epoch_costs.last_epoch
            told.append(
                {
                    "rows": delay.epoch_rows,
                    "read": last.elements,
                    "way": last.mode,
                    "ms": last.measured_ms,
                }
            )

    with engine:
        asked.subscribe(see)
        engine._on_epoch(note)
        engine.start()
        if not stepped:
            engine._await_spark()
        command = "import sys; from bench.delay import append; append(*sys.argv[1:])"
        given = [sys.executable, "-c", command, str(made), str(live), str(plan)]
        there = json.loads(subprocess.run(given, stdout=subprocess.PIPE, check=True).stdout)
        time.sleep(2.0)
    found = []
    for close, at in sorted(seen.items()):
        minute = -(-(close - MINUTE // 2) // MINUTE)  # the first that is not before the close
        if close % HOUR == 0 and minute < len(there) and there[minute] - there[0] >= warm:
            found.append(at - there[minute])
    return found, told


def run(scale: float, stepped: bool) -> Result:
    """Both runs; ``scale`` is of the minutes that are made at most, and of the time."""
    with tempfile.TemporaryDirectory(prefix="levada-delay-") as scratch:
        folder = Path(scratch)
        ends = make(folder / "made.nt", int(MOST * scale))
        most = capacity(folder, folder / "made.nt", stepped)
        many = min(int((WARM + SPAN) * scale * most / 2), len(ends))
        warm = min(WARM * scale, many / (most / 2) / 3)
        found, told = latencies(
            folder, folder / "made.nt", ends[:many], most / 2, warm=warm, stepped=stepped
        )
    if not found:
        raise CountError("Too little was made for a report behind the warm-up.")
    ms = np.array(found) * 1000
    more = {
        "triples_per_s": round(most * 3 * STATIONS),
        "reports": len(found),
        **{f"p{p}_ms": round(float(np.percentile(ms, p)), 1) for p in (50, 90, 99)},
        "most_ms": round(float(ms.max()), 1),
        "load": [round(x, 2) for x in os.getloadavg()],
        "epochs": len(told),
        "rows": int(np.median([each["rows"] for each in told])),
    }
    return Result("delay", {"count": len(found)}, more=more)
