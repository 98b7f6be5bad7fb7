"""``aggregate``: W2, least and average by key over a minute every ten seconds, against Spark's own.

Both sides read the same Parquet files, one an epoch, at epochs of 100,000 events (``ratio_cpu``),
and each side at the size that suits it best (``ratio_cpu_best``), each until it is steady
(``bench.steady``). A row is an event.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.apart import supplied
from bench.data import SPAN, events, groups_at_closes, write_rounds
from bench.engine import run_engine
from bench.result import Result, best, check_count, ratio
from bench.steady import LEAST_JVM, Supply

WIDTH, STEP = 60_000, 10_000
RESULTS = 105_000  # of a round of W2 at scale 1
ROUNDS = 50  # at most; of a million events in 160 ns each they are 8 CPU-seconds
LEVADA_SIZES = (500_000, 1_000_000)
SPARK_SIZES = (500_000, 1_000_000)
QUERY = "Rstream(Select k, Min(v), Avg(v) From S [Range 60 s Slide 10 s] Group By k)"


@dataclass(frozen=True, slots=True)
class Shape:
    """W2's size: events of a round, keys, events in an epoch, epochs of warm-up, rounds at most."""

    n: int = 1_000_000
    keys: int = 1000
    epoch: int = 100_000
    warm: int = 6
    rounds: int = ROUNDS

    def scaled(self, scale: float) -> Shape:
        """The same at another scale, epochs too; the keys stay, so windows are sparser. Below 1
        there is one round.
        """
        n, epoch = max(int(self.n * scale), 100), max(int(self.epoch * scale), 1)
        return Shape(n, self.keys, epoch, self.warm, self.rounds if scale >= 1 else 1)

    @property
    def warm_rows(self) -> int:
        """Events of warm-up."""
        return self.warm * self.epoch


def prepare(folder: Path, shape: Shape) -> tuple[int, int]:
    """Writes the stream ``s`` in rounds; gives the results of a round, and those of the warm-up."""
    rate = shape.n / SPAN
    work, warm = events(1, shape.n, shape.keys, rate), events(3, shape.warm_rows, shape.keys, rate)
    write_rounds(folder, "s", warm, work, shape.rounds, shape.epoch)
    return groups_at_closes(work, WIDTH, STEP), groups_at_closes(warm, WIDTH, STEP)


def levada(supply: dict[str, Any], stepped: bool) -> dict[str, Any]:
    """The side ``levada``, in this process."""
    given = Supply.of(supply)
    streams, queries = (
        {"S": {"source": str(given.into / "s")}},
        {"w2": {"text": QUERY, "dialect": "cql"}},
    )
    return run_engine(
        streams, queries, epoch_rows=given.epoch, warm=given.warm, stepped=stepped, supply=given
    )


def spark(supply: dict[str, Any]) -> dict[str, Any]:
    """The side ``baseline``: a sliding window and two aggregates, in append mode."""
    from pyspark.sql.functions import avg, col, timestamp_millis, window
    from pyspark.sql.functions import min as least

    from bench.spark import measured, reading, spark_session

    given = Supply.of(supply, least=LEAST_JVM)
    session = spark_session()
    stream = reading(session, given.into / "s", "k bigint, v double, ts bigint")
    grouped = (
        stream.select("k", "v", timestamp_millis(col("ts")).alias("t"))
        .withWatermark("t", "0 seconds")
        .groupBy(window("t", f"{WIDTH} milliseconds", f"{STEP} milliseconds"), "k")
        .agg(least("v"), avg("v"))
    )
    return measured(session, grouped, given)


def both(
    shape: Shape, sides: tuple[str, ...], *, stepped: bool = False
) -> dict[str, dict[str, Any]]:
    """Measures sides at one epoch size, on the same files, counts checked."""
    with tempfile.TemporaryDirectory(prefix="levada-w2-") as folder:
        expected, before = prepare(Path(folder), shape)
        given = {
            "rounds": shape.rounds,
            "warm": shape.warm_rows,
            "rows": shape.n,
            "epoch": shape.epoch,
        }
        return {
            name: supplied(f"bench.aggregate:{name}", Path(folder), given, expected, before, **more)
            for name, more in (("levada", {"stepped": stepped}), ("spark", {}))
            if name in sides
        }


def run(scale: float, stepped: bool) -> Result:
    """Both sides at the same size, then each at further ones."""
    same = both(Shape().scaled(scale), ("levada", "spark"), stepped=stepped)
    if scale == 1:
        check_count(
            "the generator", same["levada"]["count"], RESULTS * same["levada"]["rounds_in_all"]
        )
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
