"""``/static/{g}``: list static graphs, read one, and replace the content of a replaceable one
(docs/semantics.md#static-data-that-are-replaced).

``g`` is the graph's IRI, or ``default``. Queries are planned for a fixed set of graphs, so none can
be added or removed. New content is a file of N-Triples that a request names. The engine takes it up
between two epochs, and reads it again after a restart.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import xxhash
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from levada.checkpoint.request_files import Content
from levada.checkpoint.request_files import Request as Wish
from levada.connectors.ingest.static_files import StaticFile
from levada.engine.status.request_client import RefusedError, ask, new_id
from levada.server.app_state import ServerState, body_of, limits_of, off_loop, slot_of, state_of
from levada.server.content_negotiation import choose_media_type, matches
from levada.server.problem_json import Json, Problem
from levada.server.query_routes import pause
from levada.server.sparql.graph_content import content_of, files_of, triples_sent

DEFAULT = "default"
GIVES = ("application/n-triples", "text/turtle")
_BASE = "urn:levada:static"


async def list_static(request: Request) -> Response:
    """Lists the static graphs."""
    server = state_of(request)
    files = (await off_loop(server.facts.now)).setup.static
    graphs = sorted({graph for file in files for graph in file.graphs}, key=str)
    return Json({"static": [_graph_fields(files_of(files, graph), graph) for graph in graphs]})


def _graph_fields(files: list[StaticFile], graph: str | None) -> dict[str, Any]:
    """Returns the public facts of a graph, without its path."""
    return {
        "graph": DEFAULT if graph is None else graph,
        "replaceable": any(file.replaceable for file in files),
        "formats": sorted({file.format for file in files}),
    }


async def get_static(request: Request) -> Response:
    """Returns the content of a static graph as N-Triples."""
    server, graph = state_of(request), _graph(request)
    files = await _files(server, graph)
    media = choose_media_type(request.headers.get("accept", ""), GIVES)
    if not media:
        raise Problem(406, "A static graph is sent as N-Triples.", available=list(GIVES))
    headers = {"Cache-Control": "no-cache", "Vary": "Accept"}
    if all(file.replaceable for file in files):  # their names identify their content
        copies = " ".join(Path(file.path).name for file in files)
        headers["ETag"] = f'"{xxhash.xxh3_64_hexdigest(copies.encode())}"'
        if matches(request.headers.get("if-none-match", ""), headers["ETag"], weakly=True):
            return Response(status_code=304, headers=headers)
    return StreamingResponse(content_of(files, graph), headers=headers, media_type=media)


async def put_static(request: Request) -> Response:
    """Replaces the content of a static graph that was declared replaceable."""
    server, graph = state_of(request), _graph(request)
    await _check_replaceable(server, graph)
    data = await body_of(request, limits_of(request).body, "A graph")
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    async with slot_of(request, server.parsing):
        lines = await off_loop(lambda: triples_sent(data, media, graph or _BASE))
    return await _replace(request, graph, lines)


async def delete_static(request: Request) -> Response:
    """Empties a static graph that was declared replaceable. The graph itself remains."""
    server, graph = state_of(request), _graph(request)
    await _check_replaceable(server, graph)
    return await _replace(request, graph, b"")


async def _replace(request: Request, graph: str | None, lines: bytes) -> Response:
    """Asks the engine to replace the content. Raises ``Problem``, ``EngineError``."""
    server = state_of(request)
    wish = Wish(new_id(), content=Content(graph))
    async with slot_of(request, server.asking):
        answer = await off_loop(lambda: ask(server.settings.root, wish, pause, lines))
    if answer.refusal:
        raise RefusedError(answer)
    return Json({"graph": DEFAULT if graph is None else graph, "messages": answer.messages})


def _graph(request: Request) -> str | None:
    name: str = request.path_params["graph"]
    return None if name == DEFAULT else name


async def _files(server: ServerState, graph: str | None) -> list[StaticFile]:
    files = files_of((await off_loop(server.facts.now)).setup.static, graph)
    if not files:
        name = "default static graph" if graph is None else f"static graph {graph[:200]}"
        raise Problem(404, f"There is no {name}.", hint="GET /static lists them.")
    return files


async def _check_replaceable(server: ServerState, graph: str | None) -> None:
    if server.settings.read_only:
        raise Problem(403, "This server is read-only.")
    if not any(file.replaceable for file in await _files(server, graph)):
        raise Problem(
            409,
            "This static graph was not declared replaceable.",
            hint="Start the engine with --static PATH,graph=IRI,reload=true.",
        )
