"""A run of queries over streams of values, on an engine whose epochs are stepped in this process.

The streams become files in a temporary folder and are read like all input. So a query has the same
answer as on Spark, whatever the epochs and partitions. Cost: tens of milliseconds for an engine,
once its kernels are compiled.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from levada import Engine, QueryRequest, StreamOptions
from levada.testing.memory_sink import MemorySink
from levada.testing.reference_model import Element, Graphs, Report, Row, Streams
from levada.testing.stream_builders import write_csv, write_graph, write_lines

Schemas = Mapping[str, Mapping[str, str]]
"""The columns of tuple streams, by stream: name to type."""


def run_stepped(
    queries: Mapping[str, str] | Iterable[QueryRequest],
    streams: Streams,
    *,
    static: Graphs | None = None,
    schemas: Schemas | None = None,
    lateness: int = 0,
    epoch_rows: int = 1000,
    **engine: Any,
) -> dict[str, list[Report]]:
    """Returns the reports of queries over streams that end after their last elements, by query.

    ``queries``: texts by name, or ``levada.QueryRequest`` with dialect and options. ``streams``
    have elements in the order of arrival, disordered by at most ``lateness`` (ms). ``schemas``: the
    columns of tuple streams (name to type). ``static``: triples by graph; None is the default
    graph. ``epoch_rows``: the most elements in an epoch. ``engine``: further arguments of
    ``levada.Engine``. Raises the errors of the engine.

    >>> streams = {"http://e/s": [Element(500, ("<http://e/a> <http://e/p> <http://e/b>",))]}
    >>> text = '''SELECT ?x FROM NAMED WINDOW <w> ON <http://e/s> [RANGE PT1S STEP PT1S]
    ...           WHERE { WINDOW <w> { ?x <http://e/p> ?y } }'''
    >>> for report in run_stepped({"q": text}, streams)["q"]:
    ...     print(report.time, *map(dict, report.solutions))
    1000 {'x': '<http://e/a>'}
    """
    batch = (
        [QueryRequest(t, n) for n, t in queries.items()]
        if isinstance(queries, Mapping)
        else [*queries]
    )
    sink = MemorySink()
    options: dict[str, Any] = {"spark": False, "partitions": 1, **engine}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Engine(
            checkpoint=folder / "checkpoint", epoch_rows=epoch_rows, sink=sink, **options
        ) as running:
            name_streams(running, folder, streams, schemas, lateness=lateness)
            name_graphs(running, folder, static or {})
            running.register_all(batch)
            running.start(once=True)
            running.await_end()
    return {asked.name: sink.reports.get(asked.name, []) for asked in batch}


def name_streams(
    engine: Engine,
    folder: Path,
    streams: Streams,
    schemas: Schemas | None = None,
    *,
    relations: Collection[str] = (),
    lateness: int = 0,
) -> None:
    """Writes streams to files ``0.nt``, ``1.csv``, .. of a folder, and names them to an engine.

    Those of ``relations`` have the rows' signs.
    """
    for i, (name, elements) in enumerate(streams.items()):
        columns = (schemas or {}).get(name)
        if columns is None:
            path = write_lines(folder / f"{i}.nt", [e for e in elements if isinstance(e, Element)])
            engine.stream(name, path, lateness=lateness)
        else:
            sign = "sign" if name in relations else ""
            rows = [row for row in elements if isinstance(row, Row)]
            path = write_csv(folder / f"{i}.csv", rows, list(columns), sign=sign)
            options: StreamOptions = {"schema": dict(columns), "lateness": lateness}
            engine.stream(name, path, **(options | {"sign": sign} if sign else options))


def name_graphs(engine: Engine, folder: Path, graphs: Graphs, *, replaceable: bool = False) -> None:
    """Writes static graphs to files ``g0.nt``, .. of a folder, and names them to an engine."""
    for i, (graph, triples) in enumerate(graphs.items()):
        engine.static(write_graph(folder / f"g{i}.nt", triples), graph, replaceable=replaceable)
