"""KATTS' two queries over files that are cut by key: OpenGov equals the paper's eviction rules,
written down one by one; SRBench's query 3 over a file for some stations each is that over one file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl
from bench import srbench
from bench.papers import opengov
from bench.papers.opengov import DAY, FACTOR, RANGE, Contract, Price, Shape

from levada import Engine

SHAPE = Shape(companies=40, days=60, contracts=50)
Row = tuple[int, str, str, str, str, float, float, float]


@dataclass(frozen=True)
class Interval:
    """What the partitioner says of a symbol's last twenty days: ``start`` and ``end`` belong to
    them.
    """

    symbol: str
    company: str
    least: float
    most: float
    start: int
    end: int

    @property
    def factor(self) -> float:
        return self.most / self.least


def intervals(prices: list[Price]) -> Iterator[Interval]:
    """At each midnight of every symbol that has had a price; those that pass the filter."""
    for day in range(1, SHAPE.days + RANGE + 1):
        start, end = (day - RANGE) * DAY, day * DAY
        held: dict[tuple[str, str], list[float]] = {}
        for p in prices:
            if start <= p.ts < end:
                held.setdefault((p.symbol, p.company), []).append(p.price)
        for (symbol, company), values in held.items():
            found = Interval(symbol, company, min(values), max(values), start, end - 1)
            if found.factor > FACTOR:
                yield found


def by_rules(prices: list[Price], contracts: list[Contract]) -> Iterator[Row]:
    """Both streams in the order of their end dates, the four rules before each join."""
    arriving: list[tuple[int, Interval | Contract]] = [(i.end, i) for i in intervals(prices)]
    arriving += [(c.ts, c) for c in contracts]
    tickers: list[Interval] = []
    given: list[Contract] = []
    for _, one in sorted(arriving, key=lambda pair: pair[0]):
        if isinstance(one, Interval):
            tickers = [t for t in tickers if not t.end < one.end]
            given = [c for c in given if not c.ts < one.start]
            tickers.append(one)
            yield from (row(one, c) for c in given if c.vendor == one.company)
        else:
            tickers = [t for t in tickers if not t.start < one.ts]
            given = [c for c in given if not c.ts + RANGE * DAY < one.ts]
            given.append(one)
            yield from (row(t, one) for t in tickers if t.company == one.vendor)


def row(t: Interval, c: Contract) -> Row:
    number = f"{opengov.NAME}contract/{c.number}"
    return (t.end + 1, t.symbol, t.company, c.agency, number, t.least, t.most, t.factor)


def test_opengov_equals_the_rules_of_eviction(tmp_path: Path) -> None:
    opengov.write(tmp_path, SHAPE, seed=4)
    assert len(list((tmp_path / "ticker").iterdir())) == opengov.FILES
    with Engine(spark=False, partitions=3, epoch_rows=700) as engine:
        for name in ("ticker", "contracts"):
            engine.stream(
                opengov.NAME + name, tmp_path / name, files="parallel", element="subject",
                closed="element",
            )  # fmt: skip
        query = engine.register(opengov.query(), name="opengov")
        engine.start(once=True)
        engine.await_end()
        table = query.to_polars().with_columns(pl.col("report").dt.epoch("ms"))
    expected = sorted(by_rules(list(opengov.prices(SHAPE, 4)), list(opengov.contracts(SHAPE, 4))))
    assert len(expected) > 100
    assert sorted(table.rows()) == expected


def test_rates_are_those_of_the_published_graphs() -> None:
    shape = Shape()
    assert 164_000 <= 21 * shape.companies <= 190_000
    assert 19_500 <= 30 * shape.contracts <= 39_000


def test_srbench_by_station_is_srbench_in_one_file(tmp_path: Path) -> None:
    weather = srbench.Weather(24)
    srbench.write_stations(tmp_path / "stations", weather)
    srbench.write_timed(tmp_path / "one.nt", weather)
    assert len(list((tmp_path / "stations").iterdir())) == 12
    found = []
    kinds: dict[str, Literal["sequence", "parallel"]] = {
        "one.nt": "sequence",
        "stations": "parallel",
    }
    for path, files in kinds.items():
        with Engine(spark=False, partitions=2, epoch_rows=20_000) as engine:
            engine.stream(
                srbench.STREAM, tmp_path / path, files=files, element="subject", closed="element"
            )
            query = engine.register(srbench.query(), name="q3")
            engine.start(once=True)
            engine.await_end()
            found.append(query.to_polars())
    one, stations = (sorted(table.rows()) for table in found)
    assert one == stations and len(one) == weather.results
