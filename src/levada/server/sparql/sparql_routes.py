"""``/sparql``: the SPARQL 1.1 Protocol (https://www.w3.org/TR/sparql11-protocol/), read-only, over
static graphs and the latest answers of queries.

Levada's parser checks a text first. It refuses SERVICE, windows and unknown graphs before any other
code sees the text. Then the query runs in a separate process (``query_process``), within bounds of
time, memory and size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from levada.core.frozen import frozen
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
from levada.server.settings import Limits
from levada.server.sparql.query_process import Ask, answer
from levada.server.sparql.service_description import description
from levada.server.sparql.sparql_dataset import check_there, graphs_there, parts

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
