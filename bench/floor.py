"""``floor``: the least that a placed epoch costs, beside one that is not placed.

W3's query, of two stages, over a day of four stations, on ``local-cluster[2,1,1024]``, always
spread over tasks. Epochs without data are forced (``bench.empty``) and follow one another at once,
as in ``epoch``; one engine is placed by a file, one is not, in turn, ``TURNS`` times. ``more_ms``
is the median of what the placed one of a turn takes longer, by the medians of their epochs.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.empty import empty_after_first
from bench.result import Result
from bench.srbench import STREAM, Weather, query, write_timed
from levada import Engine
from levada.checkpoint.manifest import Manifest
from levada.runtime.driver import parallelism

MASTER, MACHINES, TURNS, EPOCHS, WARM = "local-cluster[2,1,1024]", 2, 8, 100, 60


def _epochs(session: Any, path: Path, place: str, epochs: int) -> dict[str, Any]:
    """Some epochs without data: ms from one publication to the next, and what was placed."""
    at: list[float] = []
    last: list[Manifest] = []

    def see(manifest: Manifest) -> None:
        at.append(time.perf_counter())
        last[:] = [manifest]

    with Engine(
        spark=session, partitions=MACHINES, epoch_rows=1_000_000, keep_results=False, place=place
    ) as engine:
        engine.stream(STREAM, path, files="parallel")
        engine.register(query(), name="q", dialect="rspql")
        engine._on_epoch(see)
        empty_after_first(engine)
        engine.start()
        while len(at) < WARM + epochs:
            engine.await_end(0.05)
        told = last[0].placement
    each = np.diff(np.array(at[WARM:])) * 1000
    wanted = {} if told is None else {"tasks": told.preferred_tasks, "missed": told.displaced_tasks}
    return {"median_ms": round(statistics.median(each.tolist()), 2), **wanted}


def run(scale: float, stepped: bool) -> Result:
    """Both in turn."""
    from levada.runtime.spark.spark_session import start_session, stop_session

    parallelism.MOST_BYTES = -1  # a job in one task is not placed
    turns: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="levada-floor-") as folder:
        root = Path(folder)
        write_timed(root / "w3.nt", Weather(4))
        machine = {f"group {i}/2": i for i in range(MACHINES)} | {f"{STREAM} w3.nt": 0}
        whole = {"levada": "placement", "machines": MACHINES, "machine": machine}
        (root / "p.json").write_text(json.dumps(whole))
        session = start_session(MASTER, scratch=root / "spark")
        try:
            for turn in range(max(int(TURNS * scale), 2) + 1):
                ways = ["", str(root / "p.json")][:: -1 if turn % 2 else 1]
                found = {p: _epochs(session, root / "w3.nt", p, EPOCHS) for p in ways}
                plain, placed = found[""], found[str(root / "p.json")]
                turns.append({"plain": plain, "placed": placed})
        finally:
            stop_session(session)
    del turns[0]  # the JVM compiles
    more = [turn["placed"]["median_ms"] - turn["plain"]["median_ms"] for turn in turns]
    side = {"count": len(turns), "more_ms": round(statistics.median(more), 2)}
    return Result("floor", side, more={"turns": turns})
