"""Suites whose data are generated: queries that are written once, for the engine in RSP-QL and for
the reference in SPARQL.

A body says WINDOW <name>; the reference's says GRAPH. What a CONSTRUCT's template is, the reference
is told. ``said`` runs all queries of a case in one stepped engine.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from levada.engine.engine import Engine
from levada.testing import MemorySink
from levada.testing.reference_model import Element, ReferenceQuery, Report, TripleTemplate
from levada.testing.stream_builders import write_graph, write_lines
from support.generators import Case, CaseQuery, Clause
from support.stepped_runs import reports_of

Windows = Mapping[str, tuple[str, Clause]]
"""The windows of a query by their IRIs, each with its stream."""


def asked(
    name: str, prefixes: str, head: str, windows: Windows, body: str, tail: str = "", *,
    output: str = "RSTREAM",
    template: tuple[TripleTemplate, ...] = (),
) -> CaseQuery:  # fmt: skip
    """A query; with a ``template`` its head is CONSTRUCT, and the reference selects the template's
    variables.
    """
    clauses = "\n".join(
        f"FROM NAMED WINDOW <{w}> ON <{on}> {clause.rspql}" for w, (on, clause) in windows.items()
    )
    text = (
        f"{prefixes}REGISTER {output} <urn:{name}> AS {head}\n{clauses}\nWHERE {{ {body} }} {tail}"
    )
    shown = sorted({t for triple in template for t in triple if t.startswith("?")})
    select = f"SELECT {' '.join(shown)}" if template else head
    sparql = f"{prefixes}{select} WHERE {{ {body.replace('WINDOW', 'GRAPH')} }} {tail}"
    over = {w: (on, clause.window({})) for w, (on, clause) in windows.items()}
    return CaseQuery(
        name, text, "rspql", {}, ReferenceQuery(sparql, over, output, template=template)
    )


def said(case: Case, *, epoch_rows: int, partitions: int) -> dict[str, list[Report]]:
    """The engine's reports of every query of a case over triples."""
    sink = MemorySink()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with Engine(
            spark=False,
            checkpoint=root / "c",
            epoch_rows=epoch_rows,
            partitions=partitions,
            sink=sink,
            seed=7,
        ) as engine:
            for i, (name, elements) in enumerate(case.streams.items()):
                triples = [e for e in elements if isinstance(e, Element)]
                engine.stream(name, write_lines(root / f"{i}.nt", triples), lateness=case.lateness)
            for i, (graph, static) in enumerate(case.static.items()):
                engine.static(write_graph(root / f"g{i}.nt", static), graph)
            for query in case.queries:
                engine.register(query.text, name=query.name, dialect=query.dialect, **query.options)
            engine.start(once=True)
            engine.await_end()
    return reports_of(case, sink)


def speaks(reports: list[Report]) -> bool:
    """Whether any report says something."""
    return any(r.solutions or r.boolean or r.graph for r in reports)
