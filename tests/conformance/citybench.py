"""CityBench as cases: Aarhus' sensor records as streams of elements, its static data, and its
queries in three languages.

The suite lies in ``../shared/data/citybench`` and is read, never copied; RSP-QL texts are RSP4J's.
A record is one element: per payload property of its service an observation with its type, service,
property and value (``../shared/data/README.md``). Static data are what the repository says of the
services that are read here and of a few others, with blank nodes named, since results show some.

The reference is asked in SPARQL that is made from the published text by taking the windows out, not
by the engine's parser.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pyoxigraph as ox
from published import DATA

from levada.core.event_time import Window, WindowKind
from levada.testing.reference_model import Element, Graphs, ReferenceQuery

SUITE = DATA / "citybench"
RSPQL = DATA / "rsp4j/csparql2/src/test/resources/citybench"
MISSING = f"CityBench is not there: {SUITE}"
SES = "http://www.insight-centre.org/dataset/SampleEventService#"
CT = "http://www.insight-centre.org/citytraffic#"
SSN = "http://purl.oclc.org/NET/ssnx/ssn#"
SAO = "http://purl.oclc.org/NET/sao/"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
XSD = "http://www.w3.org/2001/XMLSchema#"
DAY = 86_400_000
START = 1_406_851_200_000
"""2014-08-01T00:00Z: on this day all streams have records; the user walks for its first 24 minutes.
"""

_COLUMNS = {
    "AvgSpeed": "avgSpeed",
    "VehicleCount": "vehicleCount",
    "MeasureTime": "avgMeasuredTime",
}
_WEATHER = {"Temperature": "tempm", "Humidity": "hum", "WindSpeed": "wspdm"}
_AIR = ("ozone", "particullate_matter", "carbon_monoxide", "sulfure_dioxide", "nitrogen_dioxide")


def available() -> bool:
    """Whether the suite is there."""
    return (SUITE / "streams").is_dir() and RSPQL.is_dir()


def _number(value: float) -> str:
    text = repr(value) if value % 1 else str(int(value))
    return f'"{text}"^^<{XSD}{"double" if value % 1 else "integer"}>'


@cache
def repository() -> tuple[ox.Quad, ...]:
    """The sensor repository."""
    return tuple(ox.parse(path=SUITE / "dataset/SensorRepository.n3", format=ox.RdfFormat.TURTLE))


@cache
def properties(service: str) -> Mapping[str, str]:
    """What a service observes: the name of a property's type, and the property."""
    observed = {
        q.object
        for q in repository()
        if str(q.subject) == f"<{service}>" and q.predicate.value == SSN + "observes"
    }
    typed = {
        q.subject: q.object
        for q in repository()
        if str(q.predicate) == TYPE and q.subject in observed
    }
    return {kind.value.removeprefix(CT): prop.value for prop, kind in typed.items()}


@cache
def _distances() -> Mapping[str, float]:
    with (SUITE / "dataset/MetaData/trafficMetaData.csv").open(encoding="utf-8") as file:
        return {row["REPORT_ID"]: float(row["DISTANCE_IN_METERS"]) for row in csv.DictReader(file)}


def _values(name: str, row: Mapping[str, str]) -> Iterator[tuple[str, str, float]]:
    """Of a record: the last part of each observation's name, the type of its property, its
    value.
    """
    if "Traffic" in name:
        for kind, column in _COLUMNS.items():
            yield kind, kind, float(row[column])
        distance, speed = _distances()[row["REPORT_ID"]], float(row["avgSpeed"])
        yield "EstimatedTime", "EstimatedTime", distance / speed if speed else -1.0
        yield "CongestionLevel", "CongestionLevel", float(row["vehicleCount"]) / distance
    elif "Parking" in name:
        yield (
            "ParkingVacancy",
            "ParkingVacancy",
            float(row["totalspaces"]) - float(row["vehiclecount"]),
        )
    elif "Pollution" in name:
        for column in _AIR:
            yield column, "API", float(row[column])
    else:
        for kind, column in _WEATHER.items():
            yield kind, kind, float(row[column])


def _time(row: Mapping[str, str]) -> int:
    text = row.get("TIMESTAMP") or row.get("timestamp") or row["updatetime"]
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def _observed(name: str, obs: str, kind: str, value: str) -> Iterator[str]:
    service = SES + name
    yield f"{obs} {TYPE} <{SSN}Observation>"
    yield f"{obs} <{SSN}observedBy> <{service}>"
    yield f"{obs} <{SSN}observedProperty> <{properties(service)[kind]}>"
    yield f"{obs} <{SAO}hasValue> {value}"


@cache
def stream(name: str) -> tuple[Element, ...]:
    """The records of the day as elements, in order of time."""
    path = SUITE / "streams" / f"{name}.stream"
    if name == "UserLocationService":
        return tuple(_walk(path))
    found = []
    with path.open(encoding="utf-8") as file:
        for line, row in enumerate(csv.DictReader(file)):
            ts = _time(row)
            if START <= ts < START + DAY:
                triples = [t for last, kind, v in _values(name, row) for t in _observed(
                    name, f"<{SES}{name}/{line}/{last}>", kind, _number(v))]  # fmt: skip
                found.append(Element(ts, tuple(triples)))
    return tuple(sorted(found, key=lambda e: e.ts))


def _walk(path: Path) -> Iterator[Element]:
    """The user's places: one every five seconds."""
    for i, line in enumerate(path.read_text().splitlines()):
        lat, lon = (float(part) for part in line.split("|")[1].split(","))
        obs, place = (
            f"<{SES}UserLocationService/{i}/Location>",
            f"<{SES}UserLocationService/{i}/Location/value>",
        )
        where = (
            f"{place} <{CT}hasLatitude> {_number(lat)}",
            f"{place} <{CT}hasLongitude> {_number(lon)}",
        )
        yield Element(
            START + 5_000 * i, (*_observed("UserLocationService", obs, "Location", place), *where)
        )


def cut(name: str, pieces: tuple[tuple[int, int], ...]) -> tuple[Element, ...]:
    """The elements of these pieces of the day (ms from its start)."""
    return tuple(e for e in stream(name) if any(a <= e.ts - START < b for a, b in pieces))


# --- static data


def _named(term: object) -> str:
    """A term as text, blank nodes as IRIs."""
    return f"<urn:blank:{term.value}>" if isinstance(term, ox.BlankNode) else str(term)


def _text(q: ox.Quad) -> str:
    return f"{_named(q.subject)} {q.predicate} {_named(q.object)}"


@cache
def sensors(others: int) -> tuple[str, ...]:
    """What the repository says of the services of the streams, and of so many others: properties,
    their types and places.
    """
    ours = {f"<{SES}{path.stem}>" for path in (SUITE / "streams").glob("*.stream")}
    services = dict.fromkeys(
        str(q.subject) for q in repository() if q.predicate.value == SSN + "observes"
    )
    reached = ours | set([s for s in services if s not in ours][:others])
    for predicate in ("observes", "isPropertyOf"):
        reached |= {
            str(q.object)
            for q in repository()
            if str(q.subject) in reached and q.predicate.value == SSN + predicate
        }
    return tuple(_text(q) for q in repository() if str(q.subject) in reached)


@cache
def events(kind: str, most: int) -> tuple[str, ...]:
    """So many of Aarhus' events of a kind (Cultural, Library) with their places."""
    quads = list(
        ox.parse(path=SUITE / f"dataset/Aarhus{kind}Events.n3", format=ox.RdfFormat.TURTLE)
    )
    place = {
        str(q.subject): str(q.object)
        for q in quads
        if q.predicate.value == SSN + "featureOfInterest"
    }
    node = {
        str(q.subject): str(q.object) for q in quads if q.predicate.value == CT + "hasFirstNode"
    }
    kept = set(sorted(place)[:most])
    kept |= {place[event] for event in kept}
    kept |= {node[foi] for foi in kept if foi in node}
    return tuple(_text(q) for q in quads if str(q.subject) in kept)


def static(others: int, most: int) -> Graphs:
    """The static graphs under all names by which the texts call them; the default graph is the
    repository.
    """
    cultural, library, places = events("Cultural", most), events("Library", most), sensors(others)
    web = "http://127.0.0.1:9000/WebGlCity/RDF/"
    return {
        None: places,
        f"{web}SensorRepository.rdf": places,
        "http://citybench/SensorRepository.rdf": places,
        f"{web}AarhusCulturalEvents.rdf": cultural,
        "http://citybench/AarhusCulturalEvents.rdf": cultural,
        "culturalevents": cultural,
        f"{web}AarhusLibraryEvents.rdf": library,
        "http://citybench/AarhusLibraryEvents.rdf": library,
        "libraryevents": library,
    }


# --- queries


@dataclass(frozen=True)
class Published:
    """A query: its name, its text, the streams that it reads, and what the reference is asked."""

    name: str
    text: str
    streams: tuple[str, ...]
    reference: ReferenceQuery


_COMMENT = re.compile(r"(<[^<>\s]*>|\"[^\"]*\")|#[^\n]*")
_SPEC = r"\[\s*range\s+(\S+?)\s*(?:(?:slide|step)\s+(\S+?)\s*)?\]"
_CQELS = re.compile(rf"\bstream\s*<([^>]*)>\s*{_SPEC}", re.IGNORECASE)
_CSPARQL = re.compile(rf"\bfrom\s+stream\s*<([^>]*)>\s*{_SPEC}", re.IGNORECASE)
_NAMED = re.compile(rf"\bFROM NAMED WINDOW <(\w+)> ON ses:(\w+)\s*{_SPEC}", re.IGNORECASE)
_FROM = re.compile(r"\bfrom\s+(named\s+)?<([^>]*)>", re.IGNORECASE)


def _ms(length: str) -> int:
    if length.startswith("PT"):
        return round(float(length[2:-1]) * 1000)
    return int(length[:-2]) if length.endswith("ms") else int(length[:-1]) * 1000


def _window(kind: WindowKind, length: str, step: str | None) -> Window:
    if step is None:
        return Window(WindowKind.RANGE, _ms(length))
    return Window(kind, _ms(length), _ms(step))


MENDS: Mapping[int, tuple[tuple[str, str], ...]] = {
    1: (("ssn:hasValue", "<http://purl.oclc.org/NET/sao/hasValue>"),),
    2: (("ssn:hasValue", "<http://purl.oclc.org/NET/sao/hasValue>"),),
    3: (
        ("ssn:hasValue", "<http://purl.oclc.org/NET/sao/hasValue>"),
        ("?obId2", "?obId3"),
        ("?v2", "?v3"),
        ("?p2", "?p3"),
    ),
    4: (
        ("ON ses:AarhusTrafficData158505", "ON ses:UserLocationService"),
        ("FILTER (((?lat2", "} FILTER (((?lat2"),
        ("< 0.1)\n\t}", "< 0.1)"),
    ),
    6: (("ses:observedProperty", "?p1"),),
    7: (
        (
            "?obId1 a ?ob ;\n\t\t\t   ssn:observedProperty ?p2",
            "?obId2 a ?ob ;\n\t\t\t   ssn:observedProperty ?p2",
        ),
    ),
}
"""What is mended in RSP4J's texts, by number; docs/dialects.md says what is wrong with them."""


def published(language: str, number: int, *, mended: bool = False) -> Published | None:
    """A query in "cqels", "csparql" or "rspql"; None if the suite has none (RSP-QL's ninth) or it
    is no query (the twelfth).
    """
    place = (
        RSPQL / f"q{number}.rspql"
        if language == "rspql"
        else SUITE / f"{language}_query/Q{number}.txt"
    )
    if not place.exists() or (language, number) == ("rspql", 12):
        return None
    text = place.read_text(encoding="utf-8")
    for wrong, right in MENDS.get(number, ()) if mended else ():
        assert wrong in text, "what is mended is there"
        text = text.replace(wrong, right)
    bare = _COMMENT.sub(lambda m: m.group(1) or "", text)
    build = {"cqels": _cqels, "csparql": _csparql, "rspql": _rspql}[language]
    reference = build(bare)
    streams = tuple(sorted({on.removeprefix(SES) for on, _ in reference.windows.values()}))
    return Published(f"{language}-{number}{'-mended' * mended}", text, streams, reference)


def _cqels(text: str) -> ReferenceQuery:
    windows: dict[str, tuple[str, Window]] = {}

    def as_graph(m: re.Match[str]) -> str:
        name = f"urn:w:{len(windows)}"
        windows[name] = (m.group(1), _window(WindowKind.CHANGE, m.group(2), m.group(3)))
        return f"GRAPH <{name}>"

    sparql = (
        _FROM.sub("", _CQELS.sub(as_graph, text))
        .replace("graph <", "GRAPH <")
        .replace("graph<", "GRAPH <")
    )
    return ReferenceQuery(_absolute(sparql), windows, "ISTREAM")


def _csparql(text: str) -> ReferenceQuery:
    found = [
        (m.group(1), _window(WindowKind.CLOSE_OPEN, m.group(2), m.group(3)))
        for m in _CSPARQL.finditer(text)
    ]
    windows = {f"urn:w:{i}": entry for i, entry in enumerate(found)}
    graphs = tuple(m.group(2) for m in _FROM.finditer(text)) or None
    sparql = _FROM.sub("", _CSPARQL.sub("", text))
    return ReferenceQuery(sparql, windows, "RSTREAM", graphs=graphs, merged=tuple(windows))


def _rspql(text: str) -> ReferenceQuery:
    close = WindowKind.CLOSE_OPEN
    windows = {f"urn:{w}": (SES + on, _window(close, a, b)) for w, on, a, b in _NAMED.findall(text)}
    text = re.sub(r"REGISTER RSTREAM <\w+> AS", "", _NAMED.sub("", text))
    graphs = tuple(m.group(2) for m in _FROM.finditer(text)) or None
    sparql = re.sub(r"WINDOW <(\w+)>", r"GRAPH <urn:\1>", _FROM.sub("", text))
    return ReferenceQuery(sparql, windows, "RSTREAM", graphs=graphs)


def _absolute(sparql: str) -> str:
    """Graph names without a scheme, which pyoxigraph does not take, as ``urn:graph:`` IRIs."""
    return re.sub(r"<(\w+events)>", r"<urn:graph:\1>", sparql)


def for_reference(graphs: Graphs) -> Graphs:
    """The static graphs under the names that the reference's texts use."""
    return {f"urn:graph:{g}" if g and ":" not in g else g: triples for g, triples in graphs.items()}
