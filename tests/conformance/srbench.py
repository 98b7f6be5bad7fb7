"""SRBench as cases: weather stations that are generated after LinkedSensorData's schema, places,
airports and hurricanes beside them.

Q1 to Q17 are written here from their one-line descriptions, in RSP-QL; Q1 to Q10 besides as others
published them (SPARQLstream, read from ``../shared/data/srbench``), asked of the same data. A
station observes six properties, each now and then; an observation is an element of its own. ``day``
is how long a day lasts: shorter where a test is to be quick.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from generated import asked
from published import DATA

from levada.testing.reference_model import Element, ReferenceQuery
from support.generators import Case, CaseQuery, Clause

SUITE = DATA / "srbench"
STREAM = "http://www.cwi.nl/SRBench/observations"
OM = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#"
WEATHER = "http://knoesis.wright.edu/ssw/ont/weather.owl#"
WGS = "http://www.w3.org/2003/01/geo/wgs84_pos#"
XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
E = "http://example.org/"
MINUTE, HOUR = 60_000, 3_600_000
PREFIXES = (
    f"PREFIX om: <{OM}> PREFIX w: <{WEATHER}> PREFIX wgs: <{WGS}> PREFIX xsd: <{XSD}> "
    f"PREFIX : <{E}>\n"
)
KINDS = {
    "RainfallObservation": ("_PrecipitationAccumulated", 0, 50, 0.3),
    "SnowfallObservation": ("_SnowDepth", 0, 20, 0.1),
    "TemperatureObservation": ("_AirTemperature", 10, 90, 0.9),
    "WindSpeedObservation": ("_WindSpeed", 0, 110, 0.9),
    "WindDirectionObservation": ("_WindDirection", 0, 359, 0.5),
    "VisibilityObservation": ("_Visibility", 1, 60, 0.5),
    "RelativeHumidityObservation": ("_RelativeHumidity", 20, 100, 0.5),
}
"""Of each type of observation its property, its least and greatest value, and how often it is made.
"""


@dataclass(frozen=True, slots=True)
class Weather:
    """So many stations, for so long, an observation of each kind at most every ``pause``."""

    stations: int = 5
    span: int = 4 * HOUR
    pause: int = 20 * MINUTE
    day: int = 2 * HOUR


def _float(value: float) -> str:
    return f'"{value}"^^<{XSD}float>'


def _iri(name: str) -> str:
    return f"<{E}{name}>"


def observations(weather: Weather, seed: int = 1) -> Iterator[Element]:
    """The stream, in order of time. The first station blows a hurricane; the last falls silent
    halfway; one in four is cold.
    """
    rng = random.Random(seed)
    number = 0
    for tick in range(0, weather.span, weather.pause):
        for station in range(weather.stations):
            if station == weather.stations - 1 and tick >= weather.span // 2:
                continue
            for kind, (prop, low, high, often) in KINDS.items():
                if rng.random() < often:
                    number += 1
                    value = _value(rng, station, kind, low, high)
                    ts = tick + rng.randrange(1, weather.pause) // 1000 * 1000
                    yield Element(
                        ts, tuple(_triples(number, station, kind, prop, value, rng.random() < 0.8))
                    )


def _value(rng: random.Random, station: int, kind: str, low: int, high: int) -> float:
    if kind == "WindSpeedObservation" and station == 0:
        low = 74
    if kind == "TemperatureObservation" and station % 4 == 0:
        high = 31
    return rng.randrange(low * 2, high * 2) / 2


def _triples(n: int, station: int, kind: str, prop: str, value: float, unit: bool) -> Iterator[str]:
    o, result, sensor = _iri(f"o{n}"), _iri(f"r{n}"), _iri(f"station{station}")
    yield f"{o} {TYPE} <{WEATHER}{kind}>"
    yield f"{o} <{OM}procedure> {sensor}"
    yield f"{sensor} <{OM}generatedObservation> {o}"
    yield f"{o} <{OM}observedProperty> <{WEATHER}{prop}>"
    yield f"{o} <{OM}result> {result}"
    yield f"{result} <{OM}floatValue> {_float(value)}"
    if unit:
        yield f"{result} <{OM}uom> <{WEATHER}unit{prop}>"


def static(weather: Weather) -> tuple[str, ...]:
    """Where the stations are: coordinates, neighbours, places in places; cities with people and
    airports; shores; hurricanes.
    """
    triples = []
    for i in range(weather.stations):
        s, at = _iri(f"station{i}"), _iri(f"location{i}")
        city = _iri(f"city{i // 2}")
        triples += [
            f"{s} <{OM}processLocation> {at}",
            f"{at} <{WGS}alt> {_float(6300 if i == 1 else 100 * i)}",
        ]
        triples += [f"{at} <{WGS}lat> {_float(32.892 if i == 1 else 30 + i)}"]
        triples += [
            f"{at} <{WGS}long> {_float(-116.4199 if i == 1 else -80 - i)}",
            f"{s} {_iri('in')} {city}",
        ]
        triples += [
            f"{s} {_iri('near')} {_iri(f'station{j}')}"
            for j in (i - 1, i + 1)
            if 0 <= j < weather.stations
        ]
        if i % 3 == 1:
            triples += [
                f"{s} {_iri('at')} {_iri(f'shore{i}')}",
                f"{_iri(f'shore{i}')} {TYPE} {_iri('Shore')}",
            ]
    for c in range((weather.stations + 1) // 2):
        city = _iri(f"city{c}")
        triples.append(f'{city} {_iri("people")} "{9_000 + c * 8_000}"^^<{XSD}integer>')
        triples.append(f"{city} {_iri('parent')} {_iri('Florida' if c % 2 == 0 else 'Georgia')}")
        triples += [f"{_iri(f'airport{c}')} {_iri('serves')} {city}"] * (c % 2 == 0)
    triples += [f"{_iri(state)} {_iri('parent')} {_iri('USA')}" for state in ("Florida", "Georgia")]
    for n, (name, speed) in enumerate((("Andrew", 150), ("Iris", 92.5), ("Zeta", 108.5))):
        triples.append(f"{_iri(name)} {_iri('windSpeed')} {_float(speed)}")
        triples.append(f'{_iri(name)} {_iri("damage")} "{(n + 1) * 100}"^^<{XSD}integer>')
    return tuple(triples)


def _observed(kind: str, value: str, sensor: str = "?sensor") -> str:
    """The pattern of an observation of a kind with its value; its variables are those of
    the value.
    """
    v = value.lstrip("?")
    return (
        f"?o{v} om:procedure {sensor} ; a w:{kind}Observation ; om:result ?r{v} . "
        f"?r{v} om:floatValue {value} ."
    )


def queries(weather: Weather) -> list[CaseQuery]:
    """Q1 to Q17 by their descriptions."""
    tumbling, sliding = Clause("step", HOUR, HOUR), Clause("step", HOUR, 10 * MINUTE)
    long, day = Clause("step", 3 * HOUR, HOUR), Clause("step", weather.day, weather.day)
    before = Clause("step", 2 * HOUR, HOUR, to=HOUR)

    def q(
        number: int, head: str, clause: Clause, body: str, tail: str = "", **more: object
    ) -> CaseQuery:
        return asked(f"q{number}", PREFIXES, head, {"urn:w": (STREAM, clause)}, body, tail, **more)  # type: ignore[arg-type]

    w = "WINDOW <urn:w>"
    wind, temperature = _observed("WindSpeed", "?wind"), _observed("Temperature", "?temp")
    visibility = _observed("Visibility", "?vis")
    mean = (
        "{{ SELECT ?{s} (AVG(?t{s}) AS ?a{s}) WHERE {{ WINDOW <urn:w> {{ {p} }} }} GROUP BY ?{s} }}"
    )
    means = [
        mean.format(s=s, p=_observed("Temperature", f"?t{s}", f"?{s}")) for s in ("sensor", "other")
    ]
    force = (
        "IF(AVG(?wind) < 1, 0, IF(AVG(?wind) < 13, 3, IF(AVG(?wind) < 39, 8, "
        "IF(AVG(?wind) < 73, 10, 12))))"
    )
    blizzard = f"SELECT ?sensor WHERE {{ {w} {{ {temperature} {wind} }} }} GROUP BY ?sensor"
    place = "?sensor om:processLocation ?at . ?at wgs:lat ?lat ; wgs:long ?long ."
    return [
        q(1, "SELECT DISTINCT ?sensor ?v ?uom", tumbling,
          f"{w} {{ {_observed('Rainfall', '?v')} ?rv om:uom ?uom }}"),
        q(2, "SELECT DISTINCT ?sensor ?v ?uom", tumbling, f"{w} {{ {_observed('Rainfall', '?v')} "
          "OPTIONAL { ?rv om:uom ?uom } }"),
        q(3, "ASK", long, f"{{ SELECT ?sensor WHERE {{ {w} {{ {wind} }} }} GROUP BY ?sensor "
          f"HAVING(MIN(?wind) >= 74) }}"),
        q(4, "SELECT ?sensor (AVG(?wind) AS ?w) (AVG(?temp) AS ?t)", sliding,
          f"{w} {{ {temperature} {wind} FILTER(?temp > 32) }}", "GROUP BY ?sensor"),
        q(5, "CONSTRUCT { ?sensor a :Blizzard }", long,
          f"{w} {{ ?sensor om:generatedObservation ?o . ?o a w:SnowfallObservation }} "
          f"{{ {blizzard} HAVING(AVG(?temp) < 32 && MIN(?wind) > 40) }}",
          template=(("?sensor", TYPE, _iri("Blizzard")),)),
        q(6, "SELECT ?sensor", tumbling, f"{w} {{ {{ {visibility} FILTER(?vis < 10) }} UNION "
          f"{{ {_observed('Rainfall', '?rain')} FILTER(?rain > 30) }} "
          f"UNION {{ ?s a w:SnowfallObservation ; om:procedure ?sensor }} }}"),
        asked("q7", PREFIXES, "SELECT DISTINCT ?sensor",
              {"urn:w": (STREAM, tumbling), "urn:b": (STREAM, before)},
              "WINDOW <urn:b> { ?sensor om:generatedObservation ?x } "
              "FILTER NOT EXISTS { WINDOW <urn:w> { ?sensor om:generatedObservation ?y } }"),
        q(8, "SELECT ?sensor (MIN(?temp) AS ?least) (MAX(?temp) AS ?most)", day,
          f"{w} {{ {temperature} }} ?sensor om:processLocation ?at . ?at wgs:alt ?alt "
          "FILTER(?alt = 6300)", "GROUP BY ?sensor"),
        q(9, f"SELECT ?sensor ({force} AS ?force) (AVG(?direction) AS ?d)", day,
          f"{w} {{ {wind} {_observed('WindDirection', '?direction')} }}", "GROUP BY ?sensor"),
        q(10, "SELECT DISTINCT ?lat ?long", day,
          f"{w} {{ {_observed('Snowfall', '?snow')} FILTER(?snow > 5) }} {place}"),
        q(11, "SELECT ?sensor ?other", tumbling, f"{means[0]} {means[1]} ?sensor :near ?other "
          "FILTER(ABS(?asensor - ?aother) > 20)"),
        q(12, "SELECT ?city (AVG(?temp) AS ?t) (AVG(?humidity) AS ?h)", tumbling,
          f"{w} {{ {temperature} {_observed('RelativeHumidity', '?humidity')} }} "
          "?sensor :in ?city . ?city :people ?n FILTER(?n > 15000)", "GROUP BY ?city"),
        q(13, "SELECT DISTINCT ?shore", tumbling,
          f"{w} {{ {wind} FILTER(?wind >= 25 && ?wind < 55) }} "
          "?sensor :at ?shore ; :in ?city . ?shore a :Shore . ?city :parent :Florida"),
        q(14, "SELECT DISTINCT ?airport", tumbling, f"{w} {{ {visibility} FILTER(?vis < 15) }} "
          "?sensor :in ?city . ?airport :serves ?city"),
        q(15, "SELECT DISTINCT ?lat ?long", tumbling, f"{w} {{ {wind} }} {place} "
          "FILTER EXISTS { ?hurricane :windSpeed ?known FILTER(?wind > ?known) }"),
        q(16, "SELECT ?region (COUNT(DISTINCT ?sensor) AS ?n)", tumbling,
          f"{w} {{ {_observed('Rainfall', '?rain')} "
          f"FILTER(?rain > 30) }} ?sensor :in/:parent+ ?region", "GROUP BY ?region"),
        q(17, "SELECT ?hurricane (SUM(?people * ?cost) AS ?damage)", long,
          f"{{ SELECT ?sensor (MAX(?wind) AS ?top) WHERE {{ {w} {{ {wind} }} }} "
          f"GROUP BY ?sensor }} ?sensor :in ?city . "
          "?city :people ?people . ?hurricane :windSpeed ?known ; :damage ?cost "
          "FILTER(?top > ?known)", "GROUP BY ?hurricane"),
    ]  # fmt: skip


_STREAM = re.compile(r"FROM NAMED STREAM <([^>]+)> \[RANGE (\d)([hd]) (STEP(?: 10m)?|TUMBLING)\]")
FAULTY = {5: "HAVING over a variable that is neither grouped nor aggregated"}


def published(number: int) -> CaseQuery | None:
    """A published text as a query; None where the suite is not there or the text is faulty."""
    place = SUITE / f"q{number}.sparql"
    if number in FAULTY or not place.exists():
        return None
    text = place.read_text(encoding="utf-8")
    found = _STREAM.search(text)
    assert found is not None, "a published text has one window"
    width = int(found[2]) * (HOUR if found[3] == "h" else 24 * HOUR)
    step = 10 * MINUTE if "10m" in found[4] else width
    windows = {"urn:w": (found[1], Clause("step", width, step).window({}))}
    reference = ReferenceQuery(_STREAM.sub("", text), windows, merged=("urn:w",))
    return CaseQuery(f"p{number}", text, "sparqlstream", {}, reference)


def case(weather: Weather, seed: int = 1) -> Case:
    """All queries over one stream."""
    every = [*queries(weather), *(p for n in range(1, 11) if (p := published(n)) is not None)]
    return Case({STREAM: tuple(sorted(observations(weather, seed), key=lambda e: e.ts))},
                tuple(every),
                static={None: static(weather)})  # fmt: skip
