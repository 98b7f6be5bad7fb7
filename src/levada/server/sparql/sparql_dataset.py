"""The graphs of queries at ``/sparql``: the static graphs under their names, and the static default
graph. The latest answer of each query with CONSTRUCT is the graph ``<urn:levada:QUERY>``.

A query reads them as they are at its start. Its process gets a bounded number of bytes of
N-Triples.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from levada.connectors.ingest.static_files import StaticFile
from levada.connectors.serialization.result_formats import Format
from levada.core.query_model import Form
from levada.errors import near
from levada.server.app_state import ServerState
from levada.server.problem_json import Problem
from levada.server.result_routes import content
from levada.server.sparql.graph_content import files_of, lines_of
from levada.server.sparql.query_process import Part

PREFIX = "urn:levada:"


def graphs_there(server: ServerState) -> list[str]:
    """Returns the existing named graphs, static ones first."""
    now = server.facts.now()
    static = {graph for file in now.setup.static for graph in file.graphs if graph is not None}
    made = [name for name, plan in now.plans.items() if plan.form is Form.CONSTRUCT]
    return [*sorted(static), *(PREFIX + name for name in sorted(made))]


def check_there(graphs: Collection[str], there: Sequence[str]) -> None:
    """Raises ``Problem`` 400 for a graph that does not exist: the server fetches none."""
    for graph in graphs:
        if graph not in there:
            raise Problem(
                400,
                f"There is no graph {graph[:200]}, and none is fetched.",
                hint=near(graph, there),
                available=list(there[:100]),
            )


def parts(server: ServerState, wanted: Collection[str] | None) -> list[Part]:
    """Reads the content of these graphs; None for all, and the default graph. Raises ``Problem``
    400 if they are too large.
    """
    most, contents, size = server.settings.limits.sparql_dataset, [], 0
    names: list[str | None] = [*graphs_there(server)] if wanted is None else [*wanted]
    static = server.facts.now().setup.static
    for graph in [None, *names] if wanted is None else names:
        for lines in _contents(server, static, graph, most - size):
            size += len(lines)
            if size > most:
                raise Problem(
                    400,
                    f"These graphs have more than {most:,} bytes.",
                    hint="Name those that are asked for: FROM, FROM NAMED or named-graph-uri.",
                )
            contents.append(Part(graph, lines))
    return contents


def _contents(
    server: ServerState, static: Sequence[StaticFile], graph: str | None, most: int
) -> Iterator[bytes]:
    """Yields the content of a graph: of a static graph a text for each file, since each file has
    separate blank nodes. Yields only the beginning of a content larger than ``most`` bytes.
    """
    for file in files_of(static, graph):
        blocks, size = [], 0
        for block in lines_of(file, graph):
            blocks.append(block)
            size += len(block)
            if size > most:
                break
        yield b"".join(blocks)
    if graph is not None and graph.startswith(PREFIX):
        name = graph.removeprefix(PREFIX)
        latest = server.archive.latest(name, server.facts.since(name) or 0)
        if latest is not None:
            yield content(Format.NT, latest.query, [latest])
