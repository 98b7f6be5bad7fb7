"""``start``: how long one waits for Levada, on README's three lines: for the help, for a verdict on
a query, for the first report of a run, for its end, and until Spark runs the epochs.

Each is a command in a process of its own, with warm caches, one after the other; the median of
``RUNS`` is told. ``cold`` is the run with an empty cache, as the first of an installation.
``--stepped`` is ``--master none``. There is no baseline.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from bench.apart import apart
from bench.result import Result, check_count
from levada import Engine

RUNS = 5
QUERY = """PREFIX : <http://e/>
SELECT ?room (MAX(?t) AS ?top)
FROM NAMED WINDOW :w ON :rooms [RANGE PT4S STEP PT2S]
WHERE { WINDOW :w { ?room :t ?t } }
GROUP BY ?room ORDER BY ?room
"""
ROOMS = """<http://e/hall> <http://e/t> "20"^^<http://www.w3.org/2001/XMLSchema#integer> 1000 .
<http://e/hall> <http://e/t> "21"^^<http://www.w3.org/2001/XMLSchema#integer> 2500 .
<http://e/lab> <http://e/t> "22"^^<http://www.w3.org/2001/XMLSchema#integer> 3000 .
"""
ROWS = 5


def timed(folder: Path, *arguments: str, **variables: str) -> dict[str, float]:
    """One command: seconds to its first byte on standard output and to its end, CPU, peak memory of
    it and all below it.
    """
    before = os.times()
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "levada", *arguments],
        cwd=folder,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    first = time.perf_counter() - began
    peak = memory(process.pid)
    lines = [line, *process.stdout.readlines()]
    assert process.wait() == 0, f"levada {arguments[0]} failed"
    wall, after = time.perf_counter() - began, os.times()
    cpu = sum(after[2:4]) - sum(before[2:4])
    return {"first_s": first, "s": wall, "cpu_s": cpu, "mb": peak / 1e6, "lines": len(lines)}


def memory(pid: int) -> int:
    """What a process and all below it hold, in bytes."""
    try:
        me = psutil.Process(pid)
        return sum(p.memory_info().rss for p in [me, *me.children(recursive=True)])
    except psutil.Error:
        return 0


def spark_ready(folder: str) -> dict[str, Any]:
    """Seconds from the start of this process until its engine's epochs run on Spark."""
    began = psutil.Process().create_time()
    with Engine() as engine:
        engine.stream("http://e/rooms", f"{folder}/rooms.nt")
        engine.register(QUERY)
        engine.start()
        engine._await_spark()
        ready = time.time() - began
        return {"s": ready, "mb": memory(os.getpid()) / 1e6}


def run(scale: float, stepped: bool) -> Result:
    """All of them, ``RUNS`` times."""
    runs = max(round(RUNS * scale), 1)
    read = ["--stream", "rooms=rooms.nt", "--once", "--format", "csv"]
    given = ["run", "warm.rq", *read, *(["--master", "none"] if stepped else [])]
    with tempfile.TemporaryDirectory(prefix="levada-start-") as name:
        folder = Path(name)
        (folder / "warm.rq").write_text(QUERY)
        (folder / "rooms.nt").write_text(ROOMS)
        cold = timed(folder, *given, LEVADA_CACHE=f"{name}/cache")
        timed(folder, *given)  # what is compiled once does not count
        help_, check = ["--help"], ["check", "warm.rq"]
        found = {
            word: [timed(folder, *command) for _ in range(runs)]
            for word, command in (("help", help_), ("check", check), ("run", given))
        }
        ready = [] if stepped else [apart("bench.start:spark_ready", folder=name)]
    for one in found["run"]:
        check_count("levada", int(one["lines"]) - 1, ROWS)
    side = {
        "help_s": _median(found["help"], "s"),
        "check_s": _median(found["check"], "s"),
        "first_report_s": _median(found["run"], "first_s"),
        "run_s": _median(found["run"], "s"),
        "run_cpu_s": _median(found["run"], "cpu_s"),
        "cold_first_report_s": round(cold["first_s"], 2),
        "cold_cpu_s": round(cold["cpu_s"], 2),
        "first_report_memory_mb": round(_median(found["run"], "mb")),
    }
    if ready:
        side |= {"spark_ready_s": _median(ready, "s"), "spark_memory_mb": round(ready[0]["mb"])}
    return Result("start", side)


def _median(found: list[dict[str, Any]], key: str) -> float:
    return round(statistics.median(float(one[key]) for one in found), 2)
