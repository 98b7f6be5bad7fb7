"""Runs a random case on the engine, stepped in this process, and reads its reports as the reference writes them."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from levada.emission.serialize import Format, ndjson
from levada.engine import Engine
from levada.testing.cases import Case, CaseQuery
from levada.testing.compare import read_ndjson
from levada.testing.question import Element, Report
from levada.testing.streams import write_csv, write_graph, write_lines


class Collected:
    """A sink that keeps what it is given, as NDJSON."""

    format = Format.NDJSON

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: object) -> list[str]:
        self.lines += ndjson(query, variables, batch).splitlines()  # type: ignore[arg-type]
        return []


def run_case(
    case: Case, *, epoch_rows: int = 1000, partitions: int = 2, spark: object = False
) -> dict[str, list[Report]]:
    """The engine's reports of every query of a case."""
    sink = Collected()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with Engine(
            spark,
            checkpoint=root / "checkpoint",
            epoch_rows=epoch_rows,
            partitions=partitions,
            sink=sink,
            seed=7,
            ontology=_ontology(case, root),
        ) as engine:
            _name_sources(engine, case, root)
            _register(engine, case.queries)
            engine.start(once=True)
            engine.await_end()
    return _reports(case, sink)


def run_in_two(
    case: Case, cut: Mapping[str, int], late: Collection[str], *, epoch_rows: int = 1000, partitions: int = 2
) -> dict[str, list[Report]]:
    """The reports of two runs on one checkpoint: over the first ``cut[name]`` elements of each stream, which stay open, without the
    queries ``late``; then over all, with them.
    """
    first = replace(case, streams={name: elements[: cut[name]] for name, elements in case.streams.items()})
    sink = Collected()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for part, keep_open in ((first, True), (case, False)):
            with Engine(
                False,
                checkpoint=root / "checkpoint",
                epoch_rows=epoch_rows,
                partitions=partitions,
                sink=sink,
                seed=7,
                ontology=_ontology(case, root),
            ) as engine:
                _name_sources(engine, part, root)
                _register(engine, [q for q in case.queries if not keep_open or q.name not in late])
                engine.start(once=True, keep_open=keep_open)
                engine.await_end()
    return _reports(case, sink)


def _ontology(case: Case, root: Path) -> list[Path]:
    return [] if case.ontology is None else [write_graph(root / "ontology.nt", case.ontology)]


def _register(engine: Engine, queries: Sequence[CaseQuery]) -> None:
    for query in queries:
        engine.register(query.text, name=query.name, dialect=query.dialect, **query.options)


def _reports(case: Case, sink: Collected) -> dict[str, list[Report]]:
    found = read_ndjson(sink.lines)
    return {query.name: found.get(query.name, []) for query in case.queries}


def _name_sources(engine: Engine, case: Case, root: Path) -> None:
    """Writes a case's streams and static graphs to files, and names them to the engine."""
    for i, (name, elements) in enumerate(case.streams.items()):
        if name in case.schemas:
            sign = "sign" if name in case.relations else ""
            path = write_csv(root / f"{i}.csv", elements, list(case.schemas[name]), sign=sign)  # type: ignore[arg-type]
            given = {"sign": sign} if sign else {}
            engine.stream(name, path, schema=dict(case.schemas[name]), lateness=case.lateness, **given)
        else:
            path = write_lines(root / f"{i}.nt", [e for e in elements if isinstance(e, Element)])
            engine.stream(name, path, lateness=case.lateness)
    for i, (graph, triples) in enumerate(case.static.items()):
        engine.static(write_graph(root / f"g{i}.nt", triples), graph)
