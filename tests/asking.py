"""Queries that are asked twice, of the engine and of the reference, and engines that are stepped in
this process.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cases import CaseQuery, Clause
from levada.engine.engine import Engine
from levada.engine.query import Report as Got
from levada.testing import MemorySink
from levada.testing.compare import same_queries
from levada.testing.question import Element, ReferenceQuery, Report, Streams
from levada.testing.reference import evaluate
from levada.testing.streams import lines

S, T = "http://e/s", "http://e/t"
PREFIX = "PREFIX : <http://e/>\n"


def element(ts: int, *triples: str) -> Element:
    """An element of triples like ``a p 1``: names of the vocabulary, integers."""
    return Element(ts, tuple(" ".join(map(_term, t.split())) for t in triples))


def _term(word: str) -> str:
    if word.lstrip("-").isdigit():
        return f'"{word}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return f"<http://e/{word}>"


def step(a: int, b: int) -> Clause:
    """RANGE a STEP b."""
    return Clause("step", a, b)


def asked(
    name: str,
    head: str,
    body: str,
    windows: Mapping[str, tuple[str, Clause]],
    *,
    tail: str = "",
    output: str = "RSTREAM",
    **options: object,
) -> CaseQuery:
    """A query over windows on streams; ``body`` says WINDOW."""
    clauses = "\n".join(
        f"FROM NAMED WINDOW :{w} ON <{on}> {clause.rspql}" for w, (on, clause) in windows.items()
    )
    text = f"{PREFIX}REGISTER {output} :o AS {head}\n{clauses}\nWHERE {{ {body} }}{tail}"
    sparql = f"{PREFIX}{head} WHERE {{ {body.replace('WINDOW', 'GRAPH')} }}{tail}"
    over = {f"http://e/{w}": (on, clause.window(options)) for w, (on, clause) in windows.items()}
    empty = bool(options.get("empty_reports"))
    return CaseQuery(
        name, text, "rspql", options, ReferenceQuery(sparql, over, output, empty_reports=empty)
    )


def expected(queries: Sequence[CaseQuery], streams: Streams) -> dict[str, list[Report]]:
    """What the reference says."""
    return {q.name: evaluate(q.reference, streams) for q in queries}


def register(engine: Engine, queries: Sequence[CaseQuery]) -> None:
    """Registers queries with their options."""
    for q in queries:
        engine.register(q.text, name=q.name, dialect=q.dialect, **q.options)


def run(
    root: Path,
    sources: Mapping[str, Mapping[str, object]],
    queries: Sequence[CaseQuery],
    *,
    keep_open: bool = False,
    epoch_rows: int = 1000,
    partitions: int = 2,
) -> tuple[dict[str, list[Report]], Engine]:
    """A run to the end of what is there; ``sources`` map streams to their options, ``path`` among
    them.
    """
    sink = MemorySink()
    engine = Engine(
        spark=False,
        checkpoint=root,
        epoch_rows=epoch_rows,
        partitions=partitions,
        sink=sink,
        seed=7,
    )
    with engine:
        for name, options in sources.items():
            engine.stream(name, **{("source" if k == "path" else k): v for k, v in options.items()})
        register(engine, queries)
        engine.start(once=True, keep_open=keep_open)
        engine.await_end()
    return sink.reports, engine


def judge(
    queries: Sequence[CaseQuery], streams: Streams, got: Mapping[str, Sequence[Report]]
) -> None:
    """Fails with the first difference from the reference; a judgement on nothing is none."""
    right = expected(queries, streams)
    assert all(right.values()), "every query of a test has something to say"
    difference = same_queries(right, got)
    assert difference is None, difference


def as_expected(reports: Iterable[Got]) -> list[Report]:
    """The API's reports as the reference writes them."""
    found = []
    for report in reports:
        names = report.rows.columns
        solutions = [
            frozenset((n, v) for n, v in zip(names, row, strict=True) if v is not None)
            for row in report.rows.rows()
        ]
        found.append(Report(report.time, type(Report(0).solutions)(solutions)))
    return found


def feed(engine: Engine, path: Path, elements: Sequence[Element]) -> None:
    """Appends elements and waits until they are read."""
    before = sum(r.elements for r in engine.records().values())
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines(elements))
    deadline = time.monotonic() + 30
    while sum(r.elements for r in engine.records().values()) < before + len(elements):
        assert time.monotonic() < deadline, "what is there is read"
        engine.await_end(0.005)
