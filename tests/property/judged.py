"""Hand-made cases in few words: a query's head and group, its windows, and elements in Turtle; the
reference judges.

    check("SELECT ?s (MAX(?v) AS ?m)", "WINDOW :w { ?s :p ?v }", s=[at(1000, ":a :p 1, 2")],
    tail="GROUP BY ?s")

``check`` runs the case stepped, in several cuts into epochs and numbers of partitions, and says
what the reports were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyoxigraph as ox

from cases import Case, CaseQuery, Clause
from cases.windows import reporting
from levada.testing.compare import same
from levada.testing.question import Element, ReferenceQuery, Report
from stepped import run_case

PREFIX = "PREFIX : <http://e/>\nPREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
TUMBLING = Clause("step", 4000, 4000)
RANGE = Clause("range", 3000)
STREAM = "http://e/s"
RUNS = ((1000, 1), (1, 2))
"""(elements in an epoch, partitions) of the runs of a case."""


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


def query(
    head: str,
    group: str,
    tail: str = "",
    *,
    windows: Mapping[str, Clause] | None = None,
    on: Mapping[str, str] | None = None,
    output: str = "RSTREAM",
    select: str = "",
    template: tuple[tuple[str, str, str], ...] = (),
    dataset: str = "",
    reference: str = "",
    name: str = "q",
    **options: Any,
) -> CaseQuery:
    """A query for the engine and the reference; ``on`` names the windows' streams (``s`` is the
    stream ``STREAM``).

    ``select`` is the reference's head where it differs (CONSTRUCT); ``dataset`` has FROM clauses of
    static graphs; ``reference`` is the group that the reference is asked where it is another.
    """
    windows = windows or {"w": TUMBLING}
    streams = {w: f"http://e/{(on or {}).get(w, 's')}" for w in windows}
    clauses = [f"FROM NAMED WINDOW :{w} ON <{streams[w]}> {c.rspql}" for w, c in windows.items()]
    text = "\n".join(
        [
            f"{PREFIX}REGISTER {output} :{name} AS {head}",
            dataset,
            *clauses,
            f"WHERE {{ {group} }} {tail}",
        ]
    )
    asked = ReferenceQuery(
        f"{PREFIX}{select or head} WHERE {{ {(reference or group).replace('WINDOW', 'GRAPH')} }} {tail}",
        {f"http://e/{w}": (streams[w], c.window(options)) for w, c in windows.items()},
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
    expected = case.expected()
    for q in queries:
        assert silent or any(
            r.solutions or r.graph or r.boolean is not None for r in expected[q.name]
        ), "it says nothing"
    for rows, partitions in RUNS:
        got = run_case(case, epoch_rows=rows, partitions=partitions)
        for q in queries:
            difference = same(expected[q.name], got[q.name])
            assert difference is None, (
                f"{rows} elements an epoch, {partitions} partitions, {q.text}\n{difference}"
            )
    return expected


def values(reports: Sequence[Report], name: str) -> list[list[str]]:
    """What a variable is bound to in each report, sorted."""
    return [sorted(dict(s).get(name, "unbound") for s in r.solutions.elements()) for r in reports]


WINDOWS = (TUMBLING, RANGE, Clause("step", 5000, 2000), Clause("count", count=4))
OUTPUTS = ("RSTREAM", "ISTREAM", "DSTREAM")


def check_everywhere(
    head: str, group: str, tail: str = "", *, static: Mapping[str | None, str] | None = None, outputs: Sequence[str] = OUTPUTS,
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
    expected = check(*asked, static=static, silent=True, **streams)
    assert any(r.solutions or r.boolean for reports in expected.values() for r in reports), (
        "it says nothing"
    )
