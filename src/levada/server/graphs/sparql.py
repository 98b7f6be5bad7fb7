"""``/sparql``: the SPARQL 1.1 Protocol (https://www.w3.org/TR/sparql11-protocol/), reading only,
over static graphs and the latest answers of queries.

A text passes Levada's parser first: what has SERVICE or windows, or names a graph that there is
not, is refused before anybody looks at it who could open something. Then it runs in a process of
its own (``work``), within bounds of time, memory and size.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from levada.errors import UnsupportedError
from levada.frozen import frozen
from levada.server.graphs.dataset import check_there, graphs_there, parts
from levada.server.graphs.describe import description
from levada.server.graphs.process import Ask, answer
from levada.server.guard.weight import nodes
from levada.server.media import preferred
from levada.server.problems import Problem
from levada.server.served import Served, body_of, limits_of, off_loop, served
from levada.server.settings import Limits
from levada.syntax import parse
from levada.syntax.sparql import ast
from levada.translation.sparql.windows import iri

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
class Asked:
    """What a request asks for: a text, and the dataset that the protocol names for it."""

    text: str
    default: tuple[str, ...]
    named: tuple[str, ...]


async def get_sparql(request: Request) -> Response:
    """The answer to a query; without one, what the service is."""
    if not request.query_params:
        return await _describe(request)
    return await _answered(request, _asked(request.query_params.multi_items()))


async def post_sparql(request: Request) -> Response:
    """The answer to a query: the body is a form, or its text."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    most = limits_of(request).text
    if media not in (FORM, DIRECT):
        raise Problem(415, f"A query is not sent as {media[:100]}.", available=[FORM, DIRECT])
    most *= 3 if media == FORM else 1
    data = await body_of(request, most, "The text of a query", limit="text")
    try:
        text = data.decode("utf-8-sig")
        if media == DIRECT:
            return await _answered(
                request, _asked([*request.query_params.multi_items(), ("query", text)])
            )
        said = parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=200)
    except ValueError:  # UnicodeDecodeError is one
        raise Problem(400, "The body is no form of UTF-8 texts.") from None
    # The protocol has nothing in the URL beside a form; what stands there is not passed over.
    return await _answered(request, _asked([*request.query_params.multi_items(), *said]))


def _asked(said: Sequence[tuple[str, str]]) -> Asked:
    """Raises ``Problem`` 400."""

    def of(name: str) -> tuple[str, ...]:
        return tuple(value for key, value in said if key == name)

    if of("update") or of("using-graph-uri") or of("using-named-graph-uri"):
        raise Problem(400, "This service only reads: it takes no update.")
    texts = of("query")
    if len(texts) != 1 or not texts[0].strip():
        raise Problem(400, "One query is asked for.", hint="Say ?query= once, or send its text.")
    return Asked(texts[0], of("default-graph-uri"), of("named-graph-uri"))


async def _answered(request: Request, asked: Asked) -> Response:
    own, limits = served(request), limits_of(request)
    if len(asked.text.encode()) > limits.text:
        told = f"The text of a query has at most {limits.text:,} bytes."
        raise Problem(413, told, limit="text")
    async with own.planning:
        unit = await off_loop(lambda: checked(asked.text))
        there = await off_loop(lambda: graphs_there(own))
    form, media = _chosen(request, unit)
    wanted = _wanted(asked, unit, there)
    ask = Ask(asked.text, form, _endpoint(request))
    if asked.default or asked.named:
        ask = Ask(asked.text, form, _endpoint(request), asked.default, asked.named)
    data = await _while_there(request, _run(own, ask, wanted, limits))
    shown = f"{media}; charset=utf-8" if media.startswith("text/") else media
    headers = {"Cache-Control": "no-store", "Vary": "Accept"}
    return Response(data, headers=headers, media_type=shown)


async def _run(own: Served, ask: Ask, wanted: Sequence[str] | None, limits: Limits) -> bytes:
    """A query among others: so many run at once, and so many wait."""
    if own.waiting >= limits.sparql_waiting:
        raise Problem(429, "Too many queries are asked.", headers={"Retry-After": "1"})
    own.waiting += 1
    try:
        async with own.sparql:
            found = await off_loop(lambda: parts(own, wanted))
            return await answer(ask, found, limits)
    finally:
        own.waiting -= 1


async def _while_there(request: Request, run: Coroutine[Any, Any, bytes]) -> bytes:
    """What ``run`` gives; it is ended when the client goes."""
    task = asyncio.ensure_future(run)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise Problem(408, "The client has gone.")
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def checked(text: str) -> ast.QueryUnit:
    """The tree of a text that may run here. Raises ``QueryError``."""
    unit = parse(text, "rspql")
    if unit.windows or unit.register is not None:
        raise UnsupportedError(
            "Windows are for queries that go on: here a text is answered once.",
            span=(unit.register or unit.windows[0]).span,
            hint="PUT /queries/NAME registers it.",
        )
    for node in nodes(unit):
        if isinstance(node, ast.Service):
            raise UnsupportedError("SERVICE is not there: nothing is fetched.", span=node.span)
        if isinstance(node, ast.Window):
            raise UnsupportedError("There are no windows here.", span=node.span)
    return unit


def _wanted(asked: Asked, unit: ast.QueryUnit, there: Sequence[str]) -> list[str] | None:
    """The graphs of a query's dataset; None: all that there are, as nobody says which."""
    if asked.default or asked.named:
        names = [*asked.default, *asked.named]
    elif unit.datasets:
        names = [iri(each.graph) for each in unit.datasets]
    else:
        return None
    check_there(names, there)
    return list(dict.fromkeys(names))


def _chosen(request: Request, unit: ast.QueryUnit) -> tuple[str, str]:
    """The word and the media type of the answer's format. Raises ``Problem`` 406."""
    able: Mapping[str, str] = SOLUTIONS
    if isinstance(unit.form, ast.Construct | ast.Describe):
        able = GRAPHS
    elif isinstance(unit.form, ast.Select):
        able = {**SOLUTIONS, **TABLES}
    return _fitting(request, able)


def _fitting(request: Request, able: Mapping[str, str]) -> tuple[str, str]:
    if media := preferred(request.headers.get("accept", ""), [*able]):
        return able[media], media
    raise Problem(406, "The answer cannot be had like that.", available=list(able))


def _endpoint(request: Request) -> str:
    """Where the service is, which is the base IRI of texts without one."""
    return str(request.url.replace(query=""))


async def _describe(request: Request) -> Response:
    own = served(request)
    word, media = _fitting(request, GRAPHS)
    there = await off_loop(lambda: graphs_there(own))
    gives = [*SOLUTIONS, *TABLES, *GRAPHS]
    data = description(_endpoint(request), there, gives, word)
    return Response(data, headers={"Vary": "Accept"}, media_type=media)
