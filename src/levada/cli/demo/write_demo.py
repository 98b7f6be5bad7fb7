"""The folder of the demo: streams and static data as N-Triples, queries, and the app file that
joins them.

    flights.nt weather.nt                      streams, sorted by time, each line with its time
    airports.nt airlines.nt planes.nt          static
    storms.rq departures.rq airlines.rq        queries
    app.yaml                                   levada run --app app.yaml --once

Cost: about 400 MB and a few seconds.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import polars as pl

from levada.cli.demo.nycflights import Tables
from levada.cli.demo.tables_to_ntriples import (
    Shape,
    date_time,
    iri,
    stamp,
    string,
    typed_literal,
    write,
)
from levada.core.durable_files import sink_error
from levada.core.frozen import frozen
from levada.errors import SinkError, UsageError

# The mapping of the demo's tables to RDF: the names that it uses and defines
# (``docs/vocabulary.md`` explains each of them).
#
#     schema:   https://schema.org/                  flights, airports, airlines, names
#     sosa:     http://www.w3.org/ns/sosa/           observations and their features of interest
#     air:      http://levada.example/air#           ours: terms that neither of them has
#     data      http://levada.example/<kind>/<key>   flights, weather, airports, airlines, planes
#
# The event time of a flight is its scheduled departure, which cancelled flights also have, and in
# whose hour its weather is looked up. The event time of a weather record is its full hour. Missing
# values make no triple.


BASE = "http://levada.example/"
AIR = BASE + "air#"
SCHEMA = "https://schema.org/"
SOSA = "http://www.w3.org/ns/sosa/"

_airport_of = BASE + "airport/"
_airline_of = BASE + "airline/"
_plane_of = BASE + "plane/"


def _col(name: str) -> pl.Expr:
    return pl.col(name)


def _integer(name: str) -> pl.Expr:
    return typed_literal(_col(name), "integer")


def _decimal(name: str) -> pl.Expr:
    return typed_literal(_col(name), "decimal")


FLIGHT = Shape(
    iri(
        BASE + "flight/",
        _col("carrier"),
        _col("flight").cast(pl.String),
        pl.lit("-"),
        stamp(_col("ts")),
    ),
    SCHEMA + "Flight",
    (
        (SCHEMA + "flightNumber", string(pl.concat_str("carrier", "flight"))),
        (SCHEMA + "provider", iri(_airline_of, _col("carrier"))),
        (SCHEMA + "departureAirport", iri(_airport_of, _col("origin"))),
        (SCHEMA + "arrivalAirport", iri(_airport_of, _col("dest"))),
        (SCHEMA + "aircraft", iri(_plane_of, _col("tailnum"))),
        (AIR + "departureDelay", _integer("dep_delay")),
        (AIR + "arrivalDelay", _integer("arr_delay")),
    ),
    time=_col("ts"),
)

WEATHER = Shape(
    iri(BASE + "weather/", _col("origin"), pl.lit("-"), stamp(_col("ts"))),
    SOSA + "Observation",
    (
        (SOSA + "hasFeatureOfInterest", iri(_airport_of, _col("origin"))),
        (SOSA + "resultTime", date_time(_col("ts"))),
        (AIR + "temperature", _decimal("temp")),
        (AIR + "dewPoint", _decimal("dewp")),
        (AIR + "humidity", _decimal("humid")),
        (AIR + "windDirection", _integer("wind_dir")),
        (AIR + "windSpeed", _decimal("wind_speed")),
        (AIR + "windGust", _decimal("wind_gust")),
        (AIR + "precipitation", _decimal("precip")),
        (AIR + "pressure", _decimal("pressure")),
        (AIR + "visibility", _decimal("visib")),
    ),
    time=_col("ts"),
)

AIRPORT = Shape(
    iri(_airport_of, _col("faa")),
    SCHEMA + "Airport",
    (
        (SCHEMA + "iataCode", string(_col("faa"))),
        (SCHEMA + "name", string(_col("name"))),
        (SCHEMA + "latitude", _decimal("lat")),
        (SCHEMA + "longitude", _decimal("lon")),
        (AIR + "elevation", _integer("alt")),
        (AIR + "timeZone", string(_col("tzone"))),
    ),
)

AIRLINE = Shape(
    iri(_airline_of, _col("carrier")),
    SCHEMA + "Airline",
    ((SCHEMA + "iataCode", string(_col("carrier"))), (SCHEMA + "name", string(_col("name")))),
)

PLANE = Shape(
    iri(_plane_of, _col("tailnum")),
    SCHEMA + "Vehicle",
    (
        (SCHEMA + "manufacturer", string(_col("manufacturer"))),
        (SCHEMA + "model", string(_col("model"))),
        (SCHEMA + "vehicleModelDate", string(_col("year"))),
        (SCHEMA + "vehicleSeatingCapacity", _integer("seats")),
        (AIR + "engines", _integer("engines")),
        (AIR + "engineType", string(_col("engine"))),
    ),
)

STREAMS = {"flights": FLIGHT, "weather": WEATHER}
STATIC = {"airports": AIRPORT, "airlines": AIRLINE, "planes": PLANE}


APP = "app.yaml"
QUERIES = ("storms", "departures", "airlines")
_APP_TEXT = """\
# The demo of Levada. Change a query, then:  levada run --app app.yaml --once --overwrite
streams:                        # element: all lines of one subject; closed: they come in one place
  flights: {path: flights.nt, element: subject, closed: element}
  weather: {path: weather.nt, element: subject, closed: element}
static:
  - airports.nt
  - airlines.nt
  - planes.nt
queries:
  storms: {file: storms.rq}
  departures: {file: departures.rq}
  airlines: {file: airlines.rq}
options: {out: results, epoch: 0, epoch_rows: 20000}
"""


@frozen
class Written:
    """The contents of a folder: ``elements`` and triples (``streamed``) of the streams, ``static``
    triples, the bytes of all files, and the last event time of the streams (``until``, ms).
    """

    elements: int
    until: int
    streamed: int
    static: int
    size: int


def empty_folder(folder: Path) -> Path:
    """Returns the folder, which it creates if needed. Raises ``UsageError`` if the folder is not
    empty, ``SinkError`` if it cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = next(iter(sorted(folder.iterdir())), None)
    except OSError as error:
        raise sink_error(error, folder) from error
    if there is not None:
        hint = (
            "Choose another folder; if it is an earlier demo: "
            f"levada run --app {folder / APP} --once"
        )
        raise UsageError(f"{folder} is not empty, it holds {there.name}.", hint=hint)
    return folder


def fill(folder: Path, tables: Tables) -> Written:
    """Writes all files into an existing folder. Raises ``SinkError``."""
    until = streamed = static = size = elements = 0
    try:
        for name, shape in (STREAMS | STATIC).items():
            table: pl.DataFrame = getattr(tables, name)
            path = folder / f"{name}.nt"
            write(table, shape, path)
            triples, is_stream = shape.triples(table), name in STREAMS
            streamed += triples * is_stream
            static += triples * (not is_stream)
            elements += table.height * is_stream
            until = max(until, int(table["ts"][-1])) if is_stream else until
            size += path.stat().st_size
        for name in QUERIES:
            (folder / f"{name}.rq").write_text(query_text(name), encoding="utf-8")
        (folder / APP).write_text(_APP_TEXT, encoding="utf-8")
    except OSError as error:
        raise sink_error(error, folder) from error
    except pl.exceptions.PolarsError as error:
        raise SinkError(f"{folder} cannot be written: {error}") from error
    return Written(elements, until, streamed, static, size)


def discard(folder: Path) -> None:
    """Removes the files that ``fill`` may have written, so that an interrupted demo can start again
    in the same folder.
    """
    for name in (
        *(f"{name}.nt" for name in STREAMS | STATIC),
        *(f"{name}.rq" for name in QUERIES),
        APP,
    ):
        (folder / name).unlink(missing_ok=True)


def query_text(name: str) -> str:
    """Returns the text of one of the demo's queries.

    >>> query_text("storms").splitlines()[0][:9]
    '# Storms:'
    """
    return (
        resources.files("levada.cli.demo")
        .joinpath("queries", f"{name}.rq")
        .read_text(encoding="utf-8")
    )
