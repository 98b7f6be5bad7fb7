"""The language of hand-made cases: a query in few words, elements in Turtle, asked twice: of an
engine that is stepped in this process, and of the reference, which judges.

    check(query("SELECT ?s (MAX(?v) AS ?m)", "WINDOW :w { ?s :p ?v }", "GROUP BY ?s"),
          s=[at(1000, ":a :p 1, 2")])

``check`` runs a case in several cuts into epochs and numbers of partitions. Who has an engine of
his own says ``register``, ``feed``, ``judge``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict
from zlib import crc32

import pyoxigraph as ox

from levada.engine.engine import Engine
from levada.engine.query import Report as Got
from levada.plan.optimizer.pipeline import OPTIONAL, disable_rules
from levada.testing import MemorySink
from levada.testing.compare import same, same_queries
from levada.testing.reference import evaluate
from levada.testing.reference_model import Element, ReferenceQuery, Report, Streams
from levada.testing.stream_builders import lines
from support.example_counts import EXAMPLES
from support.generators import Case, CaseQuery, Clause
from support.generators.windows import reporting
from support.polling import until_engine
from support.stepped_runs import register, run_case

S, T = "http://e/s", "http://e/t"
STREAM = S
PREFIX = "PREFIX : <http://e/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
TUMBLING = Clause("step", 4000, 4000)
RANGE = Clause("range", 3000)
WINDOWS = (TUMBLING, RANGE, Clause("step", 5000, 2000), Clause("count", count=4))
OUTPUTS = ("RSTREAM", "ISTREAM", "DSTREAM")
FEW = ((1, 2, ()), (1000, 1, OPTIONAL))
ALL = (*FEW, (1000, 1, ()), (1000, 2, OPTIONAL))
"""The runs of a case. In CI it has one of the first two, by what it asks: of several cases that
nearly say the same some have each.
"""


class TwoStreams(TypedDict):
    """Elements of ``S`` and ``T``, as ``check`` takes them."""

    s: list[Element]
    t: list[Element]


def triples(turtle: str) -> tuple[str, ...]:
    """The triples of a Turtle text (prefixes ``:`` and ``xsd:``) as canonical N-Triples, without
    the dot.

    >>> triples(":a :p 1")
    ('<http://e/a> <http://e/p> "1"^^<http://www.w3.org/2001/XMLSchema#integer>',)
    """
    text = PREFIX.replace("PREFIX", "@prefix").replace(">\n", "> .\n") + turtle + " ."
    return tuple(str(q.triple) for q in ox.parse(text.encode(), ox.RdfFormat.TURTLE))


def at(ts: int, turtle: str) -> Element:
    """An element of these triples."""
    return Element(ts, triples(turtle))


def element(ts: int, *words: str) -> Element:
    """An element of triples like ``a p 1``: names without their prefix, integers."""
    return at(ts, " . ".join(" ".join(map(_term, triple.split())) for triple in words))


def _term(word: str) -> str:
    return word if word.lstrip("-").isdigit() else f":{word}"


def step(a: int, b: int) -> Clause:
    """RANGE a STEP b."""
    return Clause("step", a, b)


def query(
    head: str,
    group: str,
    tail: str = "",
    *,
    windows: Mapping[str, Clause | tuple[str, Clause]] | None = None,
    on: Mapping[str, str] | None = None,
    output: str = "RSTREAM",
    select: str = "",
    template: tuple[tuple[str, str, str], ...] = (),
    dataset: str = "",
    reference: str = "",
    name: str = "q",
    **options: Any,
) -> CaseQuery:
    """A query for the engine and the reference, over the window ``:w`` unless ``windows`` says
    others.

    A window is on the stream that stands before its clause, else on the one that ``on`` names by a
    word (``s`` is the stream ``STREAM``, and what is not said). ``select`` is the reference's head
    where it differs (CONSTRUCT); ``dataset`` has FROM clauses of static graphs; ``reference`` is
    the group that the reference is asked where it is another.
    """
    over = {
        w: said if isinstance(said, tuple) else (f"http://e/{(on or {}).get(w, 's')}", said)
        for w, said in (windows or {"w": TUMBLING}).items()
    }
    clauses = [f"FROM NAMED WINDOW :{w} ON <{s}> {c.rspql}" for w, (s, c) in over.items()]
    text = "\n".join(
        [
            f"{PREFIX}REGISTER {output} :{name} AS {head}",
            dataset,
            *clauses,
            f"WHERE {{ {group} }} {tail}",
        ]
    )
    asked = ReferenceQuery(
        f"{PREFIX}{select or head} WHERE {{ "
        f"{(reference or group).replace('WINDOW', 'GRAPH')} }} {tail}",
        {f"http://e/{w}": (s, c.window(options)) for w, (s, c) in over.items()},
        output,
        empty_reports=bool(options.get("empty_reports")),
        template=template,
        graphs=None,
        **reporting(options),
    )
    return CaseQuery(name, text, "rspql", options, asked)


def check(
    *queries: CaseQuery,
    static: Mapping[str | None, str] | None = None,
    silent: bool = False,
    **streams: Sequence[Element],
) -> dict[str, list[Report]]:
    """Runs a case in several cuts and compares each with the reference, whose reports it returns.

    Unless ``silent``, each query must say something: a case of which nothing follows tests nothing.
    """
    graphs = {g: triples(t) for g, t in (static or {}).items()}
    case = Case({f"http://e/{n}": tuple(e) for n, e in streams.items()}, queries, 0, graphs)
    right = case.expected()
    for q in queries:
        assert silent or any(
            r.solutions or r.graph or r.boolean is not None for r in right[q.name]
        ), "it says nothing"
    for rows, partitions, off in runs_of(queries):
        with disable_rules(*off):
            got = run_case(case, epoch_rows=rows, partitions=partitions)
        for q in queries:
            difference = same(right[q.name], got[q.name])
            assert difference is None, (
                f"{rows} elements an epoch, {partitions} partitions, without {sorted(off)}, "
                f"{q.text}\n{difference}"
            )
    return right


def runs_of(queries: Sequence[CaseQuery]) -> Sequence[tuple[int, int, Collection[str]]]:
    """How a case of these is run: elements in an epoch, partitions, rules that are left out."""
    asked = "".join([q.text for q in queries])
    return ALL if EXAMPLES else (FEW[crc32(asked.encode()) % len(FEW)],)


def check_everywhere(
    head: str, group: str, tail: str = "", *, static: Mapping[str | None, str] | None = None,
    outputs: Sequence[str] = OUTPUTS,
    **streams: Sequence[Element],
) -> None:  # fmt: skip
    """A query over its one window ``:w`` of four kinds, under each output: twelve queries in one
    engine.
    """
    asked = [
        query(head, group, tail, windows={"w": clause}, output=output, name=f"{output[0]}{i}")
        for i, clause in enumerate(WINDOWS)
        for output in outputs
    ]
    right = check(*asked, static=static, silent=True, **streams)
    assert any(r.solutions or r.boolean for reports in right.values() for r in reports), (
        "it says nothing"
    )


def values(reports: Sequence[Report], name: str) -> list[list[str]]:
    """What a variable is bound to in each report, sorted."""
    return [sorted(dict(s).get(name, "unbound") for s in r.solutions.elements()) for r in reports]


def expected(queries: Sequence[CaseQuery], streams: Streams) -> dict[str, list[Report]]:
    """What the reference says."""
    return {q.name: evaluate(q.reference, streams) for q in queries}


def run(
    root: Path,
    sources: Mapping[str, Mapping[str, Any]],
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
    """The API's reports, of queries with windows, as the reference writes them."""
    found = []
    for report in reports:
        names = report.rows.columns
        solutions = Counter(
            frozenset((n, v) for n, v in zip(names, row, strict=True) if v is not None)
            for row in report.rows.rows()
        )
        assert report.time is not None, "a report of windows has a time"
        found.append(Report(report.time, solutions))
    return found


def feed(engine: Engine, path: Path, elements: Sequence[Element]) -> None:
    """Appends elements and waits until their triples are read. An engine that has begun a moment
    ago on a checkpoint does not know at once what was read before.
    """
    if path.stat().st_size:
        until_engine(engine, engine._records)
    before = sum(r.triples for r in engine._records().values())
    written = [f"{line}\n" for line in lines(elements)]
    with path.open("a") as file:
        file.writelines(written)
    until_engine(
        engine,
        lambda: sum(r.triples for r in engine._records().values()) >= before + len(written),
    )
