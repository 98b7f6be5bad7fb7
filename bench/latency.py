"""``latency``: from the write of an element to the report that it makes due, in a sink.

A process of its own appends lines to a file, ``rate`` a second, a tick every few milliseconds; an
element's event time is the wall clock's when it is written. The query counts the elements of each
20 ms. A report is due with the first element at or behind its time: its latency is from the return
of that ``write`` to its publication. Warm-up does not count: it lasts until Spark has run epochs
for ``WARM`` seconds. There is no baseline.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.apart import apart
from bench.measure import Tree
from bench.result import Result, check_count
from levada import Engine
from levada.connectors.serialization.serialize import Batch

RATES = (1_000, 100_000)
TICK = 0.005  # s
WARM, SPAN = 10.0, 20.0  # s
WIDTH = 20  # ms
QUERY = f"""PREFIX : <http://e/>
SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT{WIDTH / 1000}S STEP PT{WIDTH / 1000}S]
WHERE {{ WINDOW :w {{ ?s :p ?v }} }}"""


class Clocked:
    """A sink that takes the time of each report, and adds up its counts."""

    def __init__(self) -> None:
        self.at: dict[int, float] = {}
        self.count = 0

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """The reports of an epoch are there now."""
        now = time.monotonic()
        for report, text in zip(batch.report.tolist(), batch.columns["n"].to_list(), strict=True):
            self.at[report] = now
            self.count += int(text.split('"')[1])
        return []


def write(path: str, rate: int, stop: str) -> None:
    """Appends elements until there is a file ``stop``, then one far behind; prints its ticks as
    JSON: event time, when the write had returned, elements so far.
    """
    ticks, written, began = [], 0, time.monotonic()
    with open(path, "ab", buffering=0) as file:
        while not Path(stop).exists():
            due, now = int((time.monotonic() - began) * rate), time.time_ns() // 1_000_000
            lines = (
                f'<http://e/a{i % 100}> <http://e/p> "{i}" {now} .\n' for i in range(written, due)
            )
            if data := "".join(lines).encode():
                file.write(data)
                ticks.append((now, time.monotonic(), due))
                written = due
            time.sleep(TICK)
        last = now + 60_000
        file.write(f'<http://e/a> <http://e/p> "0" {last} .\n'.encode())
    print(json.dumps(ticks))


def levada(rate: int, warm: float, span: float, stepped: bool) -> dict[str, Any]:
    """The side ``levada``, in this process."""
    sink, tree = Clocked(), Tree()
    with tempfile.TemporaryDirectory(prefix="levada-latency-") as folder:
        path, stop = Path(folder) / "s.nt", Path(folder) / "stop"
        path.touch()
        engine = Engine(
            spark=False if stepped else None,
            checkpoint=Path(folder) / "c",
            epoch=0,
            sink=sink,
            keep_results=False,
            seed=7,
        )
        with engine:
            engine.stream("http://e/s", path)
            engine.register(QUERY)
            engine.start()
            command = "import sys; from bench.latency import write; write(*sys.argv[1:2], "
            command += "int(sys.argv[2]), sys.argv[3])"
            writer = subprocess.Popen(
                [sys.executable, "-c", command, str(path), str(rate), str(stop)],
                stdout=subprocess.PIPE,
            )
            engine._await_spark()
            time.sleep(warm)
            began, cpu = time.monotonic(), tree.cpu()
            time.sleep(span)
            over, spent = time.monotonic(), tree.cpu() - cpu
            stop.touch()
            ticks = json.loads(writer.communicate()[0])
            await_report(engine, sink, ticks[-1][0])
    check_count("levada", sink.count, ticks[-1][2])
    found = latencies(sink.at, ticks, began, over) * 1000
    return {
        "rate": rate,
        "reports": len(found),
        "p50_ms": round(float(np.percentile(found, 50)), 1),
        "p90_ms": round(float(np.percentile(found, 90)), 1),
        "p99_ms": round(float(np.percentile(found, 99)), 1),
        "cpu": {name: round(s / (over - began), 2) for name, s in spent.to_json().items()},
    }


def await_report(engine: Engine, sink: Clocked, time_: int) -> None:
    """Waits for the report behind the last tick."""
    until = time.monotonic() + 60
    while max(sink.at, default=0) < time_ and time.monotonic() < until:
        engine.await_end(0.05)


def latencies(
    at: dict[int, float], ticks: list[tuple[int, float, int]], began: float, over: float
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Seconds from the write that made a report due to its publication, of those due between."""
    times = [tick[0] for tick in ticks]
    found = []
    for report, seen in at.items():
        i = bisect_left(times, report)
        if i < len(ticks) and began <= ticks[i][1] < over:
            found.append(seen - ticks[i][1])
    return np.array(found)


def run(scale: float, stepped: bool) -> Result:
    """Each rate in a process of its own."""
    given = {"warm": WARM * scale, "span": max(SPAN * scale, 1), "stepped": stepped}
    sides = [apart("bench.latency:levada", rate=rate, **given) for rate in RATES]
    return Result("latency", sides[0], more={f"at_{side['rate']}": side for side in sides[1:]})
