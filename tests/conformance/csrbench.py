"""CSRBench as cases: its stream, its seven queries under three report policies, as published and in
RSP-QL, its expected relations.

The suite lies in ``../shared/data/csrbench`` and is read, never copied. ``data_TT.ttl`` is one
element of second TT; t0 = 0 is given. Each query has two parameter sets: reported on close with
RStream (``csparql_*``), and on content change with IStream (``cqels_*``). The expected lists label
a content change with its file's second + 1, and what is reported at second 0 counts to second 1; a
close is listed if its window is not empty, also without solutions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from levada.core.event_time import Window, WindowKind
from levada.core.rdf_terms import Iri, Literal, parse_term
from levada.testing.reference_model import Element, ReferenceQuery, Report

SUITE = Path(__file__).resolve().parents[3] / "shared" / "data" / "csrbench"
MISSING = f"CSRBench is not there: {SUITE}"
STREAM = "http://ex.org/streams/test"
WINDOW = "http://ex.org/w"
POLICIES = ("close", "change", "nonempty")
QUERIES = range(1, 8)

Relation = list[tuple[int, list[dict[str, str | float]]]]
"""(label in ms, rows) with IRIs as strings and numbers as floats."""

_PREFIXES = """PREFIX om: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#>
PREFIX weather: <http://knoesis.wright.edu/ssw/ont/weather.owl#>
PREFIX ssw: <http://knoesis.wright.edu/ssw/>
"""


@dataclass(frozen=True)
class Benchmark:
    """A query under a policy: its RSP-QL text, the options that go with it, and the reference's
    question.
    """

    number: int
    policy: str
    text: str
    options: dict[str, Any]
    reference: ReferenceQuery


def available() -> bool:
    """Whether the suite is there."""
    return (SUITE / "data").is_dir()


@cache
def elements() -> tuple[Element, ...]:
    """The stream in order: one element a file, its second as event time."""
    found = []
    for path in (SUITE / "data").glob("data_*.ttl"):
        triples = tuple(str(q.triple) for q in ox.parse(path=path, format=ox.RdfFormat.TURTLE))
        found.append(Element(int(path.stem.removeprefix("data_")) * 1000, triples))
    return tuple(sorted(found, key=lambda e: e.ts))


def _observation(obs: str, sensor: str, result: str, value: str, of: str = "AirTemperature") -> str:
    """The four patterns of an observation; variables without their question marks, ``sensor`` as
    written.
    """
    return (
        f"?{obs} om:observedProperty weather:_{of} . ?{obs} om:procedure {sensor} . "
        f"?{obs} om:result ?{result} . ?{result} om:floatValue ?{value} ."
    )


def _hot(limit: str) -> tuple[str, str]:
    return (
        "?sensor ?obs",
        f"{_observation('obs', '?sensor', 'res', 'value')} FILTER(?value > {limit})",
    )


def _query(number: int, config: dict[str, str]) -> tuple[str, str]:
    """The projection and the pattern of a query, with its parameters."""
    one = _observation("ob1", "?sensor", "res1", "value1")
    match number:
        case 1 | 2:
            return _hot(config["TEMP"])
        case 3:
            humid = _observation("obs", "?sensor", "res", "value", "RelativeHumidity")
            low, high = config["VALUE_MIN"], config["VALUE_MAX"]
            return "?sensor ?obs ?value", f"{humid} FILTER(?value > {low}) FILTER(?value < {high})"
        case 4:
            return "(AVG(?value) AS ?avg)", _hot(config["VALUE"])[1]
        case 5:
            return _hot(config["VALUE"])
        case 6:
            other = _observation("obs", "?sensor", "res", "value")
            above = f"FILTER(?value1 > ?value) FILTER(?value > {config['VALUE']})"
            return "?sensor ?ob1 ?value1 ?obs", f"{one} {other} {above}"
        case _:
            fixed = _observation("obs", "ssw:System_C1190", "res", "value")
            return "?sensor ?ob1", f"{fixed} {one} FILTER(?value1 > ?value)"


def _folder(number: int, policy: str) -> Path:
    return SUITE / "queries" / f"{'cqels' if policy == 'change' else 'csparql'}_Q{number}"


def _config(number: int, policy: str) -> dict[str, str]:
    config: dict[str, str] = json.loads((_folder(number, policy) / "config.json").read_text())[
        "vars"
    ]
    return config


def _seconds(text: str) -> int:
    return int(text.removesuffix("s"))


def benchmark(number: int, policy: str) -> Benchmark:
    """Query ``number`` (1 to 7) under policy "close", "change" or "nonempty": on close where there
    is content.
    """
    config = _config(number, policy)
    size, slide = _seconds(config["WSIZE"]), _seconds(config.get("WSLIDE", config["WSIZE"]))
    shown, pattern = _query(number, config)
    output = "ISTREAM" if policy == "change" else "RSTREAM"
    text = (
        f"{_PREFIXES}REGISTER {output} <http://ex.org/q{number}> AS SELECT {shown}\n"
        f"FROM NAMED WINDOW <{WINDOW}> ON <{STREAM}> [RANGE PT{size}S STEP PT{slide}S]\n"
        f"WHERE {{ WINDOW <{WINDOW}> {{ {pattern} }} }}"
    )
    sparql = f"{_PREFIXES}SELECT {shown} WHERE {{ GRAPH <{WINDOW}> {{ {pattern} }} }}"
    kind = WindowKind.CHANGE if policy == "change" else WindowKind.CLOSE_OPEN
    window = Window(kind, size * 1000, slide * 1000, t0=0, t0_given=True)
    reference = ReferenceQuery(
        sparql, {WINDOW: (STREAM, window)}, output, nonempty=policy == "nonempty"
    )
    report = "close+nonempty" if policy == "nonempty" else policy
    return Benchmark(number, policy, text, {"t0": 0, "report": report}, reference)


def published(number: int, policy: str) -> Benchmark:
    """The same query in the suite's own text: C-SPARQL on close, CQELS-QL on content change, which
    are their defaults.
    """
    text = _filled((_folder(number, policy) / "engine.query").read_text(), _config(number, policy))
    beside = {"report": "nonempty"} if policy == "nonempty" else {}
    return Benchmark(number, policy, text, {"t0": 0, **beside}, benchmark(number, policy).reference)


def _filled(text: str, config: dict[str, str]) -> str:
    for name, value in config.items():
        text = text.replace(f"${{{name}}}", value)
    return text


def oracle(number: int, policy: str) -> ReferenceQuery:
    """The same question in the suite's own words: its oracle's query, over the window as the one
    graph.
    """
    text = (
        (_folder(number, policy) / "oracle.query")
        .read_text()
        .replace("<http://yabench/avg>", "AVG")
    )
    text = _filled(text, _config(number, policy))
    head, body = re.split(r"\{", text, maxsplit=1)
    asked = benchmark(number, policy).reference
    return ReferenceQuery(f"{head} {{ GRAPH <{WINDOW}> {{ {body} }}", asked.windows, asked.output)


def expected(number: int, policy: str) -> Relation:
    """The expected relation of query 1, 2 or 4, as the suite lists it."""
    key = "onContentChange_istream" if policy == "change" else "onWindowClose_rstream"
    found = json.loads((SUITE / "expected" / f"q{number}.json").read_text())[key]
    return [(entry["t"], _sorted(entry["rows"])) for entry in found]


def listed(reports: Sequence[Report], policy: str, closes: Sequence[int] = ()) -> Relation:
    """Reports in the form of the expected lists.

    ``closes`` are the closes whose windows are not empty: the suite lists them also without
    solutions.
    """
    rows: dict[int, list[dict[str, str | float]]] = {time: [] for time in closes}
    for report in reports:
        label = max(report.time, 1000) + 1000 if policy == "change" else report.time
        found = [
            {name: _value(text) for name, text in solution}
            for solution in report.solutions.elements()
        ]
        rows[label] = rows.get(label, []) + found
    return [(time, _sorted(rows[time])) for time in sorted(rows)]


def _sorted(rows: Sequence[dict[str, str | float]]) -> list[dict[str, str | float]]:
    return sorted(rows, key=lambda row: sorted(row.items()))


def _value(text: str) -> str | float:
    term = parse_term(text)
    if isinstance(term, Literal):
        return float(term.lexical)
    assert isinstance(term, Iri), "CSRBench has no blank nodes"
    return term.value
