"""The mapping of the demo's tables to RDF: the names that it uses and defines
(``docs/vocabulary.md`` explains each of them).

    schema:   https://schema.org/                  flights, airports, airlines, names
    sosa:     http://www.w3.org/ns/sosa/           observations and their features of interest
    air:      http://levada.example/air#           ours: terms that neither of them has
    data      http://levada.example/<kind>/<key>   flights, weather, airports, airlines, planes

The event time of a flight is its scheduled departure, which cancelled flights also have, and in
whose hour its weather is looked up. The event time of a weather record is its full hour. Missing
values make no triple.
"""

from __future__ import annotations

import polars as pl

from levada.cli.demo.tables_to_ntriples import Shape, date_time, iri, stamp, string, typed_literal

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
