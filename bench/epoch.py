"""``epoch``: what an epoch costs that has nothing to do, on Spark, through two stages; CPU by
driver, JVM and Python workers.

W3's query: a star joined by observation in the first stage, grouped by sensor in the second. It has
seen a day of four stations, so there is state to open. The epochs are forced (``bench.empty``) and
follow one another at once, so an epoch's time is that from one publication to the next: intention,
Spark's log, the job, manifest, publication.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench.apart import apart
from bench.engine import run_empty
from bench.result import Result
from bench.srbench import STREAM, Weather, query, write_timed

EPOCHS = 150


def levada(path: str, epochs: int, stepped: bool) -> dict[str, Any]:
    """The side ``levada``, in this process."""
    queries = {"w3": {"text": query(), "dialect": "rspql"}}
    return run_empty({STREAM: {"source": path}}, queries, epochs=epochs, stepped=stepped)


def run(scale: float, stepped: bool) -> Result:
    """The floor; there is no baseline."""
    with tempfile.TemporaryDirectory(prefix="levada-epoch-") as folder:
        path = Path(folder) / "w3.nt"
        write_timed(path, Weather(4))
        measured = apart(
            "bench.epoch:levada",
            path=str(path),
            epochs=max(int(EPOCHS * scale), 3),
            stepped=stepped,
        )
    assert measured["stages"] == 2, "the query has two stages"
    more = {"median_ms": measured["median_ms"], "cpu_ms": measured["cpu_ms"]}
    return Result("epoch", measured, more=more)
