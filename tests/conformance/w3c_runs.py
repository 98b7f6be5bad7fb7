"""A W3C test on the engine, as a static query and as a stream.

As a stream the test's default graph comes as elements of one window, in random epochs, on four
partitions: the query's pattern is put into ``WINDOW <urn:w> { .. }``, and ``FROM <x>`` (which
chooses what the window holds) is taken out. Named graphs stay static. A window without a single
element reports nothing, so a second window, which no pattern reads, always holds one.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyoxigraph as ox
from w3c_results import Expected, row
from w3c_suite import W3cTest, iri, triples

from levada.engine.engine import Engine
from levada.engine.query import Query, Report
from levada.errors import Span
from levada.language import parse
from levada.language.sparql import ast
from levada.testing.reference_model import Element
from levada.testing.stream_builders import write_lines

HOUR = 3_600_000
WINDOW = "[RANGE PT1H STEP PT1H]"
_TOKEN = re.compile(
    r"\"\"\".*?\"\"\"|'''.*?'''|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|<[^<>\"{}|^`\\\s]*>|#[^\n]*|[{}]",
    re.DOTALL,
)


@dataclass(frozen=True)
class Dataset:
    """What a test is asked over: the triples of its default graph, and its named graphs."""

    default: tuple[str, ...]
    named: tuple[tuple[str, tuple[str, ...]], ...]


def form_of(unit: ast.QueryUnit) -> str:
    """SELECT, ASK, CONSTRUCT or DESCRIBE."""
    return type(unit.form).__name__.upper()


def as_static(test: W3cTest, entailment: str = "none") -> Expected:
    """The answer to a test's query over static data, which are also the ontology if there is to be
    any entailment.
    """
    unit = parse(test.text)
    with (
        tempfile.TemporaryDirectory() as folder,
        Engine(
            spark=False, checkpoint=Path(folder) / "c", partitions=2, seed=7, entailment=entailment
        ) as engine,
    ):
        if unit.datasets:
            for path in {Path(_name(clause).removeprefix("file://")) for clause in unit.datasets}:
                engine.static(triples(path), iri(path))
        else:
            data = dataset(test, unit)
            engine.static(data.default)
            for name, lines in data.named:
                engine.static(lines, name)
        query = engine.register(test.text, name="q")
        engine.start(once=True)
        engine.await_end()
        return answer(query, list(query.results()))


def as_stream(test: W3cTest, entailment: str = "none") -> Expected:
    """The answer to a test's query over one window that holds its default graph; the ontology, if
    any, is that file.
    """
    unit = parse(test.text)
    data = dataset(test, unit)
    draw = random.Random(test.name)
    elements = [Element(draw.randrange(HOUR), (triple,)) for triple in data.default]
    elements.sort(key=lambda e: e.ts)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        rows = draw.choice((1, 2, 3, 7, 1000))
        ontology = test.data if entailment != "none" else ()
        with Engine(
            spark=False,
            checkpoint=root / "c",
            partitions=4,
            epoch_rows=rows,
            seed=7,
            entailment=entailment,
            ontology=ontology,
        ) as engine:
            engine.stream("urn:s", write_lines(root / "s.nt", elements))
            engine.stream(
                "urn:tick", write_lines(root / "tick.nt", [Element(0, ("<a:a> <a:b> <a:c>",))])
            )
            for name, lines in data.named:
                engine.static(lines, name)
            query = engine.register(windowed(test.text, unit), name="q")
            engine.start(once=True)
            engine.await_end()
            found = list(query.results())
            assert all(report.time == HOUR for report in found), "there is one report"
            return answer(query, found)


def dataset(test: W3cTest, unit: ast.QueryUnit) -> Dataset:
    """The dataset of a test: by FROM and FROM NAMED if the query has them, else by its manifest."""
    if not unit.datasets:
        return Dataset(
            _merged(test.data), tuple((name, triples(path)) for name, path in test.named)
        )
    files = [(clause.named, _name(clause)) for clause in unit.datasets]
    default = _merged(
        [Path(name.removeprefix("file://")) for is_named, name in files if not is_named]
    )
    named = {
        name: triples(Path(name.removeprefix("file://"))) for is_named, name in files if is_named
    }
    return Dataset(default, tuple(named.items()))


def _name(clause: ast.From) -> str:
    return str(clause.graph.term.value)


def _merged(paths: Sequence[Path]) -> tuple[str, ...]:
    """The RDF merge of files: blank nodes of different files are different."""
    if len(paths) == 1:
        return triples(paths[0])
    parsed = (
        ox.parse(path=str(path), base_iri=iri(path), rename_blank_nodes=True) for path in paths
    )
    return tuple(sorted({str(quad.triple) for quads in parsed for quad in quads}))


def answer(query: Query, reports: Sequence[Report]) -> Expected:
    """What the engine said at its one report; where it said nothing, the empty answer."""
    assert len(reports) <= 1, "there is one report"
    if not reports:
        return Expected()
    (report,) = reports
    if report.answer is not None:
        return Expected(boolean=report.answer)
    if report.graph is not None:
        quads = ox.parse(report.graph.encode(), ox.RdfFormat.N_TRIPLES)
        rows = tuple(row(s=str(q.subject), p=str(q.predicate), o=str(q.object)) for q in quads)
        return Expected(rows=rows, graph=True)
    return Expected(rows=tuple(row(**solution) for solution in report.rows.to_dicts()))


def windowed(text: str, unit: ast.QueryUnit, stream: str = "urn:s") -> str:
    """A query whose default graph is the window ``urn:w`` on a stream.

    >>> text = "ASK { ?s ?p '}' }"
    >>> windowed(text, parse(text)).split(WINDOW)[-1]
    ' { WINDOW <urn:w> { ?s ?p \\'}\\' } }'
    """
    assert unit.where is not None, "a query with a pattern"
    start = _offset(text, unit.where.span)
    end = _closing(text, start)
    head, group, tail = text[:start], text[start + 1 : end], text[end + 1 :]
    for clause in sorted(unit.datasets, key=lambda c: (-c.span.line, -c.span.column)):
        if not clause.named:
            at = _offset(text, clause.span)
            head = head[:at] + re.sub(r"(?i)^FROM\s+\S+", " ", head[at:], count=1)
    where = re.search(r"(?i)\bWHERE\s*(#[^\n]*\n\s*)*$", head)
    if where is not None:
        head = head[: where.start()]
    if isinstance(unit.form, ast.Construct) and re.search(
        r"(?i)\bCONSTRUCT\s*$", _before_from(head)
    ):
        head = re.sub(r"\bCONSTRUCT\b(?=[^>]*$)", lambda m: f"CONSTRUCT {{{group}}}", head, count=1)
    windows = (
        f"FROM NAMED WINDOW <urn:w> ON <{stream}> {WINDOW} "
        f"FROM NAMED WINDOW <urn:tock> ON <urn:tick> {WINDOW}"
    )
    return f"{head} {windows} {{ WINDOW <urn:w> {{{group}}} }}{tail}"


def _before_from(head: str) -> str:
    return re.split(r"(?i)\bFROM\b", head)[0]


def _offset(text: str, span: Span) -> int:
    lines = text.split("\n")
    return sum(len(line) + 1 for line in lines[: span.line - 1]) + span.column - 1


def _closing(text: str, start: int) -> int:
    """The place of the brace that closes the one at ``start``."""
    depth = 0
    for found in _TOKEN.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(found.group(), 0)
        if not depth:
            return found.start()
    raise AssertionError("braces of a query that parses are balanced")


RUNS: dict[str, Callable[..., Expected]] = {"static": as_static, "stream": as_stream}
"""How a test can be run, by name."""
