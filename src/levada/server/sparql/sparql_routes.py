"""``/sparql``: the SPARQL 1.1 Protocol (https://www.w3.org/TR/sparql11-protocol/), read-only, over
static graphs and the latest answers of queries.

Levada's parser checks a text first. It refuses SERVICE, windows and unknown graphs before any other
code sees the text. Then the query runs in a separate process (``query_process``), within bounds of
time, memory and size.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from urllib.parse import parse_qsl

import pyoxigraph as ox
from starlette.requests import Request
from starlette.responses import Response

from levada.connectors.ingest.static_files import StaticFile
from levada.connectors.serialization.result_formats import Format
from levada.core.frozen import frozen
from levada.core.query_model import Form
from levada.errors import near
from levada.language.sparql import ast
from levada.server.app_state import (
    ServerState,
    body_of,
    limits_of,
    off_loop,
    run_check,
    state_of,
    token_of,
    while_there,
)
from levada.server.checks.check_tasks import Task
from levada.server.content_negotiation import choose_media_type
from levada.server.problem_json import Problem
from levada.server.result_routes import content
from levada.server.settings import Limits
from levada.server.sparql.graph_content import files_of, lines_of
from levada.server.sparql.query_process import Ask, Part, answer

# The graphs of queries at ``/sparql``: the static graphs under their names, and the static default
# graph. The latest answer of each query with CONSTRUCT is the graph ``<urn:levada:QUERY>``.
#
# A query reads them as they are at its start. Its process gets a bounded number of bytes of
# N-Triples.


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


# The description of ``/sparql`` for programs: SPARQL 1.1 Service Description
# (https://www.w3.org/TR/sparql11-service-description/).


_SD = "http://www.w3.org/ns/sparql-service-description#"
_TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
_FORMATS = "http://www.w3.org/ns/formats/"
_NAMES = {
    "application/sparql-results+json": "SPARQL_Results_JSON",
    "application/sparql-results+xml": "SPARQL_Results_XML",
    "text/csv": "SPARQL_Results_CSV",
    "text/tab-separated-values": "SPARQL_Results_TSV",
    "text/turtle": "Turtle",
    "application/n-triples": "N-Triples",
    "application/rdf+xml": "RDF_XML",
    "application/ld+json": "JSON-LD",
}
_WRITTEN = {
    "ttl": ox.RdfFormat.TURTLE,
    "nt": ox.RdfFormat.N_TRIPLES,
    "rdf": ox.RdfFormat.RDF_XML,
    "jsonld": ox.RdfFormat.JSON_LD,
}


def description(endpoint: str, graphs: Sequence[str], gives: Sequence[str], form: str) -> bytes:
    """Describes a service over these named graphs, serialized as ``form``. ``gives``: its media
    types.

    >>> text = description("http://e/sparql", ["http://e/g"], ["text/csv"], "nt").decode()
    >>> "<http://www.w3.org/ns/formats/SPARQL_Results_CSV>" in text, "<http://e/g>" in text
    (True, True)
    """
    service, dataset, default = (ox.BlankNode(name) for name in ("service", "dataset", "default"))
    triples = [
        ox.Triple(service, _TYPE, _sd("Service")),
        ox.Triple(service, _sd("endpoint"), ox.NamedNode(endpoint)),
        ox.Triple(service, _sd("supportedLanguage"), _sd("SPARQL11Query")),
        ox.Triple(service, _sd("defaultDataset"), dataset),
        ox.Triple(dataset, _TYPE, _sd("Dataset")),
        ox.Triple(dataset, _sd("defaultGraph"), default),
        ox.Triple(default, _TYPE, _sd("Graph")),
    ]
    for media in gives:
        if media in _NAMES:
            name = ox.NamedNode(_FORMATS + _NAMES[media])
            triples.append(ox.Triple(service, _sd("resultFormat"), name))
    for at, graph in enumerate(graphs):
        node = ox.BlankNode(f"graph{at}")
        triples += [
            ox.Triple(dataset, _sd("namedGraph"), node),
            ox.Triple(node, _TYPE, _sd("NamedGraph")),
            ox.Triple(node, _sd("name"), ox.NamedNode(graph)),
        ]
    return ox.serialize(triples, format=_WRITTEN[form]) or b""


def _sd(name: str) -> ox.NamedNode:
    return ox.NamedNode(_SD + name)


FORM, DIRECT = "application/x-www-form-urlencoded", "application/sparql-query"
SOLUTIONS = {
    "application/sparql-results+json": "json",
    "application/sparql-results+xml": "xml",
    "application/json": "json",
    "application/xml": "xml",
}
TABLES = {"text/csv": "csv", "text/tab-separated-values": "tsv"}
GRAPHS = {
    "text/turtle": "ttl",
    "application/n-triples": "nt",
    "application/rdf+xml": "rdf",
    "application/ld+json": "jsonld",
}


@frozen
class SparqlRequest:
    """A request: the text, and the dataset in the protocol's parameters."""

    text: str
    default: tuple[str, ...]
    named: tuple[str, ...]


async def get_sparql(request: Request) -> Response:
    """Answers a query; without one, describes the service."""
    if not request.query_params:
        return await _describe(request)
    return await _answer(request, _parse_request(request.query_params.multi_items()))


async def post_sparql(request: Request) -> Response:
    """Answers a query: the body is a form, or the query's text."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    most = limits_of(request).text
    if media not in (FORM, DIRECT):
        raise Problem(415, f"A query is not sent as {media[:100]}.", available=[FORM, DIRECT])
    most *= 3 if media == FORM else 1
    data = await body_of(request, most, "The text of a query", limit="text")
    try:
        text = data.decode("utf-8-sig")
        if media == DIRECT:
            return await _answer(
                request, _parse_request([*request.query_params.multi_items(), ("query", text)])
            )
        said = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=200)
    except ValueError:  # UnicodeDecodeError is one
        raise Problem(400, "The body is no form of UTF-8 texts.") from None
    # The protocol has no URL parameters next to a form. Here they count, too.
    return await _answer(request, _parse_request([*request.query_params.multi_items(), *said]))


def _parse_request(said: Sequence[tuple[str, str]]) -> SparqlRequest:
    """Parses the parameters. Raises ``Problem`` 400."""

    def values_of(name: str) -> tuple[str, ...]:
        return tuple(value for key, value in said if key == name)

    if values_of("update") or values_of("using-graph-uri") or values_of("using-named-graph-uri"):
        raise Problem(400, "This service only reads: it takes no update.")
    texts = values_of("query")
    if len(texts) != 1 or not texts[0].strip():
        raise Problem(400, "One query is asked for.", hint="Say ?query= once, or send its text.")
    return SparqlRequest(texts[0], values_of("default-graph-uri"), values_of("named-graph-uri"))


async def _answer(request: Request, asked: SparqlRequest) -> Response:
    server, limits = state_of(request), limits_of(request)
    if len(asked.text.encode()) > limits.text:
        message = f"The text of a query has at most {limits.text:,} bytes."
        raise Problem(413, message, limit="text")
    checked = await run_check(request, Task("sparql", asked.text))
    there = await off_loop(lambda: graphs_there(server))
    form, media = _choose_format(request, checked["form"])
    wanted = _wanted_graphs(asked, checked["graphs"], there)
    ask = Ask(asked.text, form, _endpoint(request))
    if asked.default or asked.named:
        ask = Ask(asked.text, form, _endpoint(request), asked.default, asked.named)
    token = token_of(request).name
    data = await while_there(request, _run(server, ask, wanted, limits, token))
    shown = f"{media}; charset=utf-8" if media.startswith("text/") else media
    headers = {"Cache-Control": "no-store", "Vary": "Accept"}
    return Response(data, headers=headers, media_type=shown)


async def _run(
    server: ServerState, ask: Ask, wanted: Sequence[str] | None, limits: Limits, token: str
) -> bytes:
    """Runs a query when it has a slot. Bounds the running and waiting queries."""
    async with server.sparql.slot(token, limits.sparql_waiting):
        contents = await off_loop(lambda: parts(server, wanted))
        return await answer(ask, contents, limits)


def _wanted_graphs(
    asked: SparqlRequest, said: Sequence[str], there: Sequence[str]
) -> list[str] | None:
    """Returns the graphs of a query's dataset: those of the protocol, else those in its text
    (``said``). None is all graphs, if neither has any. Raises ``Problem`` 400.
    """
    if asked.default or asked.named:
        names = [*asked.default, *asked.named]
    elif said:
        names = [*said]
    else:
        return None
    check_there(names, there)
    return list(dict.fromkeys(names))


def _choose_format(request: Request, query: str) -> tuple[str, str]:
    """Returns the word and the media type of the answer's format, by the form of the query. Raises
    ``Problem`` 406.
    """
    able: Mapping[str, str] = SOLUTIONS
    if query in (ast.Construct.__name__, ast.Describe.__name__):
        able = GRAPHS
    elif query == ast.Select.__name__:
        able = {**SOLUTIONS, **TABLES}
    return _negotiate(request, able)


def _negotiate(request: Request, able: Mapping[str, str]) -> tuple[str, str]:
    if media := choose_media_type(request.headers.get("accept", ""), [*able]):
        return able[media], media
    raise Problem(406, "The answer cannot be had like that.", available=list(able))


def _endpoint(request: Request) -> str:
    """Returns the URL of the service, the base IRI of texts without one."""
    return str(request.url.replace(query=""))


async def _describe(request: Request) -> Response:
    server = state_of(request)
    word, media = _negotiate(request, GRAPHS)
    there = await off_loop(lambda: graphs_there(server))
    gives = [*SOLUTIONS, *TABLES, *GRAPHS]
    data = description(_endpoint(request), there, gives, word)
    return Response(data, headers={"Vary": "Accept"}, media_type=media)
