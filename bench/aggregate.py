"""``aggregate``: W2 (design, section 8), minimum and average by key over a minute every ten
seconds, against Spark's own.

Both sides read the same Parquet files, one an epoch, at epochs of 100,000 events (``ratio_cpu``),
and each side at the size that suits it best (``ratio_cpu_best``). Spark gets one more event at the
end, a year later: without it its last windows would never close. A row is an event.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.apart import apart
from bench.data import SPAN, Events, after, events, groups_at_closes, write
from bench.engine import run_engine
from bench.result import Result, best, check_count, ratio

WIDTH, STEP = 60_000, 10_000
RESULTS = 105_000  # of W2 at scale 1
LEVADA_SIZES = (500_000, 1_000_000)
SPARK_SIZES = (500_000, 1_000_000)
QUERY = "Rstream(Select k, Min(v), Avg(v) From S [Range 60 s Slide 10 s] Group By k)"
YEAR = 365 * 86_400_000


@dataclass(frozen=True, slots=True)
class Shape:
    """How big W2 is: events, keys, events in an epoch, epochs of warm-up."""

    n: int = 1_000_000
    keys: int = 1000
    epoch: int = 100_000
    warm: int = 6

    def scaled(self, scale: float) -> Shape:
        """The same at another scale, epochs too; the keys stay, so windows are sparser."""
        return Shape(
            max(int(self.n * scale), 100), self.keys, max(int(self.epoch * scale), 1), self.warm
        )

    @property
    def warm_rows(self) -> int:
        """Events of warm-up."""
        return self.warm * self.epoch


def prepare(folder: Path, shape: Shape) -> tuple[int, int]:
    """Writes the stream ``s``; gives the results of the workload, and those of the warm-up."""
    rate = shape.n / SPAN
    work, warm = events(1, shape.n, shape.keys, rate), events(3, shape.warm_rows, shape.keys, rate)
    write(folder / "s", after(warm, work), shape.epoch)
    return groups_at_closes(work, WIDTH, STEP), groups_at_closes(warm, WIDTH, STEP)


def levada(folder: str, epoch: int, warm: int, stepped: bool) -> dict[str, Any]:
    """The side ``levada``, in this process."""
    streams = {"S": {"source": str(Path(folder) / "s")}}
    return run_engine(
        streams,
        {"w2": {"text": QUERY, "dialect": "cql"}},
        epoch_rows=epoch,
        warm=warm,
        stepped=stepped,
    )


def spark(folder: str, epoch: int, warm: int) -> dict[str, Any]:
    """The side ``baseline``: a sliding window and two aggregates, in append mode."""
    from pyspark.sql.functions import avg, col, timestamp_millis, window
    from pyspark.sql.functions import min as least

    from bench.spark import measured, reading, spark_session

    source = Path(folder) / "s"
    write(source, Events(np.zeros(1, np.int64), np.zeros(1), np.array([YEAR])), 1)
    session = spark_session()
    stream = reading(session, source, "k bigint, v double, ts bigint")
    grouped = (
        stream.select("k", "v", timestamp_millis(col("ts")).alias("t")).withWatermark("t", "0 seconds")
        .groupBy(window("t", f"{WIDTH} milliseconds", f"{STEP} milliseconds"), "k").agg(least("v"), avg("v"))
    )  # fmt: skip
    return measured(session, grouped, warm) | {"epoch_rows": epoch}


def both(
    shape: Shape, sides: tuple[str, ...], *, stepped: bool = False
) -> dict[str, dict[str, Any]]:
    """Measures sides at one epoch size, on the same files, counts checked; Spark comes last."""
    with tempfile.TemporaryDirectory(prefix="levada-w2-") as folder:
        expected, before = prepare(Path(folder), shape)
        measured = {}
        for name in sides:
            more = {"stepped": stepped} if name == "levada" else {}
            side = apart(
                f"bench.aggregate:{name}",
                folder=folder,
                epoch=shape.epoch,
                warm=shape.warm_rows,
                **more,
            )
            side["count"] -= before
            check_count(name, side["count"], expected)
            measured[name] = side
    return measured


def run(scale: float, stepped: bool) -> Result:
    """Both sides at the same size, then each at further ones."""
    same = both(Shape().scaled(scale), ("levada", "spark"), stepped=stepped)
    if scale == 1:
        check_count("the generator", same["levada"]["count"], RESULTS)
    found = {name: [side] for name, side in same.items()}
    for name, sizes in (("levada", LEVADA_SIZES), ("spark", SPARK_SIZES)):
        for size in sizes:
            found[name].append(
                both(Shape(epoch=size, warm=4).scaled(scale), (name,), stepped=stepped)[name]
            )
    ours, theirs = best(found["levada"]), best(found["spark"])
    more = {"ratio_cpu_best": ratio(ours, theirs), "levada_best": ours, "baseline_best": theirs}
    return Result(
        "aggregate", same["levada"], same["spark"], ratio(same["levada"], same["spark"]), more
    )
