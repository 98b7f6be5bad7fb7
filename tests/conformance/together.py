"""The public suites in one engine: W3C's evaluation tests as streams, CSRBench, CityBench, SRBench
and LSBench, all queries beside each other.

A W3C test is judged by its file of results, the others by the naive reference, which knows of each
query alone. All see one set of static graphs, the union of what the suites have, so a W3C test
whose dataset has named graphs says which they are (``FROM NAMED``); one that has none and asks for
graphs is left out, since it would see those of others.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import citybench
import csrbench
import lsbench
import srbench
from w3c_results import difference, expected
from w3c_runs import HOUR, answer, dataset, form_of, windowed
from w3c_suite import W3cTest

from levada.engine.engine import Engine
from levada.engine.query import Query
from levada.language import parse
from levada.testing import MemorySink
from levada.testing.compare import same
from levada.testing.reference import evaluate
from levada.testing.reference_model import Element, Question, Report
from levada.testing.stream_builders import write_graph, write_lines
from support.generators import Case

Judge = Callable[[Query, Sequence[Report]], str | None]
"""What is wrong with what a query has said; None if nothing is."""
MINUTE = 60_000
SHORT = ((0, MINUTE), (470 * MINUTE, 471 * MINUTE))
LONG = ((0, 2 * MINUTE), (470 * MINUTE, 481 * MINUTE))
"""Of CityBench's day, in ms from its start: every stream says something."""


@dataclass(frozen=True)
class Asked:
    """A query with its options, and its judge."""

    name: str
    text: str
    judge: Judge
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Suites:
    """All streams, static graphs and queries."""

    streams: dict[str, Sequence[Element]] = field(default_factory=dict)
    static: dict[str | None, list[str]] = field(default_factory=dict)
    queries: list[Asked] = field(default_factory=list)

    def add(self, name: str, text: str, judged: Question, **options: Any) -> None:
        """A query that the reference judges. None of these has a variable for graphs, so it is
        told of those whose names are in the text, and of the default graph.
        """
        self.queries.append(Asked(name, text, _by_reference(self, text, judged), options))

    def graphs(self, found: Mapping[str | None, Sequence[str]]) -> None:
        """More static triples."""
        for graph, triples in found.items():
            self.static.setdefault(graph, []).extend(triples)


def _by_reference(suites: Suites, text: str, question: Question) -> Judge:
    def judge(_: Query, said: Sequence[Report]) -> str | None:
        read = {stream for stream, _ in question.windows.values()}
        streams = {name: suites.streams[name] for name in read}
        static = {g: tuple(t) for g, t in suites.static.items() if g is None or g in text}
        graphs = citybench.for_reference(static)
        return same(evaluate(question, streams, graphs), said)

    return judge


def generated(suites: Suites, suite: str, case: Case) -> None:
    """A suite whose data are generated."""
    suites.streams |= {name: [e for e in found if isinstance(e, Element)]
                       for name, found in case.streams.items()}  # fmt: skip
    suites.graphs(case.static)
    for query in case.queries:
        suites.add(f"{suite}-{query.name}", query.text, query.reference,
                   dialect=query.dialect, **query.options)  # fmt: skip


def csr(suites: Suites, most: int) -> None:
    """CSRBench: each query under each policy as it was published, over so many elements."""
    suites.streams[csrbench.STREAM] = csrbench.elements()[:most]
    for policy in csrbench.POLICIES:
        for number in csrbench.QUERIES:
            asked = csrbench.published(number, policy)
            suites.add(f"csr-{number}-{policy}", asked.text, asked.reference, **asked.options)


def city(suites: Suites, pieces: tuple[tuple[int, int], ...]) -> None:
    """CityBench in three languages, over pieces of its day."""
    suites.graphs(citybench.static(3, 3))
    for language in ("cqels", "csparql", "rspql"):
        for number in range(1, 13):
            query = citybench.published(language, number)
            if query is not None:
                suites.add(f"city-{query.name}", query.text, query.reference)
                suites.streams |= {
                    citybench.SES + name: citybench.cut(name, pieces) for name in query.streams
                }


def w3c(suites: Suites, tests: Sequence[W3cTest]) -> None:
    """W3C's tests: those over the same data read one stream."""
    of: dict[tuple[str, ...], str] = {}
    suites.streams["urn:tick"] = [Element(0, ("<a:a> <a:b> <a:c>",))]
    for number, test in enumerate(tests):
        unit = parse(test.text)
        data = dataset(test, unit)
        if not data.named and re.search(r"(?i)\bGRAPH\b", test.text):
            continue
        stream = of.setdefault(data.default, f"urn:s:{number}")
        suites.streams[stream] = _elements(stream, data.default)
        suites.static |= {name: list(lines) for name, lines in data.named}
        text = windowed(test.text, unit, stream)
        if data.named and not unit.datasets:
            named = " ".join(f"FROM NAMED <{name}>" for name, _ in data.named)
            text = text.replace(" FROM NAMED WINDOW", f" {named} FROM NAMED WINDOW", 1)
        suites.queries.append(Asked(f"w3c-{number}", text, _by_results(test)))


def _by_results(test: W3cTest) -> Judge:
    unit = parse(test.text)

    def judge(query: Query, said: Sequence[Report]) -> str | None:
        want = expected(test.result, form_of(unit))
        found = answer(query, list(query.results()))
        wrong = difference(want, found, ordered=bool(unit.modifiers.order_by), lax=test.lax)
        return wrong and f"{test.name}: {wrong}"

    return judge


def _elements(stream: str, triples: Sequence[str]) -> list[Element]:
    draw = Random(stream)
    found = [Element(draw.randrange(HOUR), (triple,)) for triple in triples]
    return sorted(found, key=lambda element: element.ts)


@cache
def everything(tests: tuple[W3cTest, ...], whole: bool) -> Suites:
    """All suites, of W3C's these tests; of the others less data unless ``whole``."""
    suites = Suites()
    w3c(suites, tests)
    csr(suites, 60 if whole else 12)
    city(suites, LONG if whole else SHORT)
    network = lsbench.Network() if whole else lsbench.Network(users=20, seconds=30)
    generated(suites, "ls", lsbench.case(network))
    weather = srbench.Weather() if whole else srbench.Weather(stations=3, span=3 * srbench.HOUR)
    generated(suites, "sr", srbench.case(weather))
    return suites


def wrong(suites: Suites, asked: Sequence[Asked], **options: Any) -> Iterator[str]:
    """What is wrong with what these queries say in one engine."""
    sink = MemorySink()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        with Engine(
            spark=False, checkpoint=root / "c", partitions=2, sink=sink, seed=7, **options
        ) as engine:
            for i, (stream, elements) in enumerate(suites.streams.items()):
                engine.stream(stream, write_lines(root / f"{i}.nt", elements))
            for i, (graph, triples) in enumerate(suites.static.items()):
                engine.static(write_graph(root / f"g{i}.nt", triples), graph)
            queries = [engine.register(q.text, name=q.name, **q.options) for q in asked]
            engine.start(once=True)
            engine.await_end()
            for query, handle in zip(asked, queries, strict=True):
                found = query.judge(handle, sink.reports.get(query.name, []))
                if found is not None:
                    yield f"{query.name}\n{query.text}\n{found}"
