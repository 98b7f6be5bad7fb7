"""``queries``: many queries in one dataflow. W3's stream with 1, 100 and 10,000 queries of one
shape; 500 shapes without data.

The queries of one shape are W3's with other thresholds: a few of them give results, which are
counted apart. The cost of a triple with 10,000 is to be at most three times that with one
(``cost_10000``); an epoch without data with 500 shapes less than twice one with a single shape
(``floor_500_ms``, ``floor_500_cpu``). Registration is told in seconds of wall clock, it is part of
no cost.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench.apart import apart, supplied
from bench.engine import run_empty, run_engine
from bench.result import Result
from bench.srbench import MINUTES, STREAM, Weather, query, supply_of, write_rounds
from bench.steady import Supply

COUNTS = (1, 100, 10_000)
SHAPES = 500
STATIONS, EPOCH, WARM = 100, 480, 2
EPOCHS = 60  # of the floor
ROUNDS = 20  # at most, of a day each
_FILTERS = (
    "?v > 1",
    "?v >= 1",
    "?v < 1",
    "?v <= 1",
    "?v = 1",
    "?v != 1",
    "?v + 1 > 2",
    "?v - 1 > 2",
    "?v * 2 > 2",
    "?v / 2 > 2",
    "ABS(?v) > 1",
    "CEIL(?v) > 1",
    "FLOOR(?v) > 1",
    "ROUND(?v) > 1",
    "?v > 1 && ?v < 9",
    "?v < 1 || ?v > 9",
    "!(?v > 1)",
    "?v IN (1, 2)",
    "isLITERAL(?v)",
    "-?v < 1",
)
_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")
_WIDTHS = range(1, 6)

LEAST_MS = 0.01  # of a few epochs the clock of the CPU may see none


def thresholds(n: int) -> list[float]:
    """From W3's own, 74, a thousandth at a time."""
    return [round(74 + i / 1000, 3) for i in range(n)]


def of_shapes(n: int) -> Iterator[str]:
    """``n`` shapes of queries: stars of one to five triples, twenty filters, five aggregates."""
    for width, form, aggregate in itertools.islice(
        itertools.product(_WIDTHS, _FILTERS, _AGGREGATES), n
    ):
        star = " ; ".join(f"<http://example.org/p{i}> ?v{i or ''}" for i in range(width))
        yield (
            f"SELECT ?s ({aggregate}(?v) AS ?x) FROM NAMED WINDOW <w> ON <{STREAM}> "
            f"[RANGE PT3H STEP PT1H] WHERE {{ WINDOW <w> {{ ?s {star} }} FILTER({form}) }} "
            "GROUP BY ?s"
        )


def levada(supply: dict[str, Any], n: int, stepped: bool) -> dict[str, Any]:
    """W3 with ``n`` thresholds, in this process."""
    given = Supply.of(supply)
    queries = {f"q{i}": {"text": query(t), "dialect": "rspql"} for i, t in enumerate(thresholds(n))}
    streams = {STREAM: {"source": str(given.into / "w3")}}
    return run_engine(
        streams, queries, epoch_rows=given.epoch, warm=given.warm, stepped=stepped, supply=given
    )


def floor(path: str, n: int, epochs: int, stepped: bool) -> dict[str, Any]:
    """Epochs without data with ``n`` shapes, in this process."""
    queries = {f"q{i}": {"text": text, "dialect": "rspql"} for i, text in enumerate(of_shapes(n))}
    return run_empty({STREAM: {"source": path}}, queries, epochs=epochs, stepped=stepped)


def expected(weather: Weather, n: int) -> int:
    """All results of ``n`` thresholds in a round: at each close, the stations whose minimum over
    three hours reaches them.
    """
    speeds = weather.speeds().reshape(MINUTES // 60, 60, -1).min(axis=1)
    least = np.stack([speeds[max(h - 2, 0) : h + 1].min(axis=0) for h in range(len(speeds))])
    least = np.concatenate([least, speeds[-2:].min(axis=0)[None], speeds[-1:]])
    return sum(int(np.count_nonzero(least >= t)) for t in thresholds(n))


def run(scale: float, stepped: bool) -> Result:
    """The stream with each number of queries, then the floors."""
    weather = Weather(max(int(STATIONS * scale) // 4 * 4, 4), warm=WARM * EPOCH)
    rounds = ROUNDS if scale >= 1 else 1
    counts = [max(int(n * scale), 1) for n in COUNTS]
    with tempfile.TemporaryDirectory(prefix="levada-queries-") as folder:
        root = Path(folder)
        write_rounds(root, weather, rounds)
        given = supply_of(weather, rounds, EPOCH)
        sides = [
            supplied(
                "bench.queries:levada", root, given, expected(weather, n), 0, n=n, stepped=stepped
            )
            | {"queries": n}
            for n in counts
        ]
        empty = Path(folder) / "empty.nt"
        empty.write_text('<http://example.org/s> <http://example.org/p> "1" 0 .\n' * 2)
        shapes = {"path": str(empty), "epochs": max(int(EPOCHS * scale), 3), "stepped": stepped}
        floors = [
            apart("bench.queries:floor", n=n, **shapes) for n in (1, max(int(SHAPES * scale), 1))
        ]
    one, many = sides[0], sides[-1]
    more = {
        f"cost_{s['queries']}": round(one["rows_per_cpu_s"] / s["rows_per_cpu_s"], 2)
        for s in sides[1:]
    }
    ratios = {
        f"floor_{k}": round(floors[1][f"{name}_ms"] / max(floors[0][f"{name}_ms"], LEAST_MS), 2)
        for k, name in (("ms", "median"), ("cpu", "cpu"))
    }
    return Result(
        "queries",
        many,
        one,
        round(many["rows_per_cpu_s"] / one["rows_per_cpu_s"], 3),
        more | ratios | {"middle": sides[1], "one_shape": floors[0], "shapes": floors[1]},
    )
