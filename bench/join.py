"""``join``: W1, two streams of a million events joined by key within a minute, against Spark's own.

Both sides read the same Parquet files, one a stream and epoch. At epochs of 100,000 events
(``ratio_cpu``), and each side at the size that suits it best (``ratio_cpu_best``), each until it is
steady (``bench.steady``). A row is an event of either stream.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.apart import supplied
from bench.data import SPAN, events, pairs_within, write_rounds
from bench.engine import run_engine
from bench.result import Result, best, check_count, ratio
from bench.steady import LEAST_JVM, Supply

WIDTH = 60_000
RESULTS = 1_164_224  # of a round of W1 at scale 1
ROUNDS = 24  # at most
EPOCH = 100_000
LEVADA_SIZES = (400_000, 1_000_000)
SPARK_SIZES = (400_000, 1_000_000)


@dataclass(frozen=True, slots=True)
class Shape:
    """How big W1 is: events a stream and round, keys, width in ms, events of both streams in an
    epoch, epochs of warm-up, rounds.
    """

    n: int = 1_000_000
    keys: int = 100_000
    width: int = WIDTH
    epoch: int = EPOCH
    warm: int = 6
    rounds: int = ROUNDS

    def scaled(self, scale: float) -> Shape:
        """The same at another scale, epochs too. Below 1 there is one round."""
        n, epoch = max(int(self.n * scale), 100), max(int(self.epoch * scale) // 2 * 2, 2)
        rounds = self.rounds if scale >= 1 else 1
        return Shape(n, max(int(self.keys * scale), 1), self.width, epoch, self.warm, rounds)

    @property
    def warm_rows(self) -> int:
        """Events of warm-up of both streams."""
        return self.warm * self.epoch


def prepare(folder: Path, shape: Shape) -> tuple[int, int]:
    """Writes the streams ``a`` and ``b`` in rounds; gives the results of a round and of warm-up."""
    rate = shape.n / SPAN
    work = [events(seed, shape.n, shape.keys, rate) for seed in (1, 2)]
    warm = [events(seed, shape.warm_rows // 2, shape.keys, rate) for seed in (3, 4)]
    for name, value, w, s in zip("ab", "vw", warm, work, strict=True):
        write_rounds(folder, name, w, s, shape.rounds, shape.epoch // 2, value)
    return pairs_within(work[0], work[1], shape.width), pairs_within(warm[0], warm[1], shape.width)


def query(width: int) -> str:
    """W1 in CQL; a range of ``width`` + 1 ms holds what is ``width`` ms old."""
    window = f"[Range {width + 1} ms]"
    return f"Istream(Select A.k, A.ts, B.ts, A.v, B.w From A {window}, B {window} Where A.k = B.k)"


def levada(supply: dict[str, Any], width: int, stepped: bool) -> dict[str, Any]:
    """The side ``levada``, in this process."""
    given = Supply.of(supply)
    streams = {name.upper(): {"source": str(given.into / name)} for name in "ab"}
    queries = {"w1": {"text": query(width), "dialect": "cql"}}
    return run_engine(
        streams, queries, epoch_rows=given.epoch, warm=given.warm, stepped=stepped, supply=given
    )


def spark(supply: dict[str, Any], width: int) -> dict[str, Any]:
    """The side ``baseline``: the inner join of two streams with watermarks and a condition on their
    times, in append mode.
    """
    from pyspark.sql.functions import col, expr, timestamp_millis

    from bench.spark import measured, reading, spark_session

    given = Supply.of(supply, least=LEAST_JVM)
    session = spark_session()
    sides = [
        reading(session, given.into / name, f"k bigint, {value} double, ts bigint")
        .select(col("k").alias(f"k{name}"), value, timestamp_millis(col("ts")).alias(f"t{name}"))
        .withWatermark(f"t{name}", "0 seconds")
        for name, value in zip("ab", "vw", strict=True)
    ]
    near = expr(
        f"ka = kb and ta >= tb - interval {width} milliseconds "
        f"and ta <= tb + interval {width} milliseconds"
    )
    joined = sides[0].join(sides[1], near).select("ka", "ta", "tb", "v", "w")
    return measured(session, joined, given)


def both(
    shape: Shape, sides: tuple[str, ...], *, stepped: bool = False
) -> dict[str, dict[str, Any]]:
    """Measures sides at one epoch size, on the same files, counts checked."""
    with tempfile.TemporaryDirectory(prefix="levada-w1-") as folder:
        expected, before = prepare(Path(folder), shape)
        given = {
            "rounds": shape.rounds,
            "warm": shape.warm_rows,
            "rows": 2 * shape.n,
            "epoch": shape.epoch,
            "end": 2,
        }
        return {
            name: supplied(
                f"bench.join:{name}",
                Path(folder),
                given,
                expected,
                before,
                width=shape.width,
                **more,
            )
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
    return Result("join", same["levada"], same["spark"], ratio(same["levada"], same["spark"]), more)
