"""``/queries``: list queries with their texts and states, add and remove them. ``/check`` and
``/explain``: errors, warnings and plans of a text that is not registered.
"""

from __future__ import annotations

import re
import time
from base64 import b64decode
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from levada.checkpoint.request_files import Answer, QuerySpec
from levada.checkpoint.request_files import Request as Wish
from levada.core.names import check_query_name
from levada.engine.query_request import QueryRequest
from levada.engine.status.request_client import RefusedError, ask, new_id
from levada.engine.status.status import QueryStatus, read_status
from levada.engine.status.status_document import watermark_value
from levada.errors import CheckpointError
from levada.language.dialects.detect import DIALECTS
from levada.language.sparql.parser import words
from levada.plan.logical.query_options import WORDS, options_of
from levada.server.app_state import (
    ServerState,
    check_role,
    limits_of,
    off_loop,
    one_by_one,
    run_check,
    slot_of,
    state_of,
    text_of,
    token_of,
)
from levada.server.checkpoint_catalog import Text
from levada.server.checks.check_tasks import STAGES, Task
from levada.server.content_negotiation import matches
from levada.server.problem_json import Json, Problem
from levada.server.resource_owners import Owners, only_of
from levada.server.security.tokens import Role

LOOK = 0.01  # s
_PREFIX = re.compile(r"(?i:PREFIX)\s+([\w.-]*:)\s*(<[^<>\s]*>)")
_MEDIA = ("application/sparql-query", "application/cql", "text/plain", "")


async def list_queries(request: Request) -> Response:
    """Lists all queries with their states."""
    server = state_of(request)
    now, states = await off_loop(lambda: (server.facts.now(), _states(server)))
    queries = [_query_fields(server, text, states.get(name)) for name, text in now.texts.items()]
    return Json({"queries": queries})


async def get_query(request: Request) -> Response:
    """Returns the text and state of one query."""
    server, name = state_of(request), request.path_params["query"]
    now, states = await off_loop(lambda: (server.facts.now(), _states(server)))
    if name not in now.texts:
        raise Problem(404, f"There is no query {name[:100]}.", hint="GET /queries lists them.")
    text = now.texts[name]
    return Json(_query_fields(server, text, states.get(name)), headers={"ETag": text.etag})


def _states(server: ServerState) -> dict[str, QueryStatus]:
    try:
        return {query.name: query for query in read_status(server.settings.root).queries}
    except CheckpointError:
        return {}  # no epoch yet


def _query_fields(server: ServerState, text: Text, state: QueryStatus | None) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "name": text.name,
        "dialect": text.dialect,
        "text": text.text,
        "results_url": f"{_place(text.name)}/results",
        "state": "suspended" if text.suspended else "running",
        "last_report": server.archive.last(text.name, text.since),
    }
    if text.suspended:
        return fields | {"reason": text.suspended}
    if state is None:
        return fields
    return fields | asdict(state) | {"watermark": watermark_value(state.watermark)}


async def put_query(request: Request) -> Response:
    """Registers a query under this name. Confirms an equal one. Replaces another one if
    ``If-Match`` names it.
    """
    check_role(request, Role.REGISTER)
    server = state_of(request)
    name, asked = check_query_name(request.path_params["query"]), await _parse_request(request)
    async with one_by_one(server, name):
        return await _put(request, server, asked)


async def _put(request: Request, server: ServerState, asked: QueryRequest) -> Response:
    name, now = asked.name, await off_loop(server.facts.now)
    there = now.texts.get(name)
    match = request.headers.get("if-match")
    if match is not None:
        _check_match(name, there, match)
    if there is not None and there.is_as(asked):
        return Json(_query_fields(server, there, None), headers={"ETag": there.etag})
    if there is not None and match is None:
        what = "another text" if there.text != asked.text else "other options"
        raise Problem(
            409,
            f"There is a query {name} with {what}.",
            hint=f"Say If-Match: {there.etag} to put this one in its place.",
        )
    owners, token = Owners(server.settings.root, server.coming), token_of(request)
    with owners.adding(token, name, server.facts.now().texts, limits_of(request)):
        replaced = name if there is not None else ""
        wish = Wish(
            new_id(), [_query_spec(asked, request)], replaced, required_owner=only_of(token)
        )
        answer, warned = await _ask_engine(request, wish, asked)
        made = await _await_query(server, asked)
    said = {
        "name": name,
        "messages": answer.messages,
        "results_url": f"{_place(name)}/results",
        **warned,
    }
    tag = {"ETag": made.etag} if made is not None else {}
    return Json(said, 200 if there else 201, headers={"Location": _place(name), **tag})


def _place(name: str) -> str:
    """Returns the path of a query."""
    return f"/queries/{quote(name)}"


def _check_match(name: str, there: Text | None, match: str) -> None:
    """Raises ``Problem`` 412 if If-Match names another query than the existing one."""
    if there is None or not matches(match, there.etag):
        raise Problem(412, f"The query {name} is not what If-Match says.")


async def delete_query(request: Request) -> Response:
    """Removes a query."""
    check_role(request, Role.REGISTER)
    server, name = state_of(request), request.path_params["query"]
    async with one_by_one(server, name):
        return await _delete(request, server, name)


async def _delete(request: Request, server: ServerState, name: str) -> Response:
    there = (await off_loop(server.facts.now)).texts.get(name)
    if there is None:
        raise Problem(404, f"There is no query {name[:100]}.", hint="GET /queries lists them.")
    match = request.headers.get("if-match")
    if match is not None:
        _check_match(name, there, match)
    token = token_of(request)
    Owners(server.settings.root, server.coming).check_own(token, name)
    answer, _ = await _ask_engine(request, Wish(new_id(), drop=name, required_owner=only_of(token)))
    await _await_query(server, None, name)
    return Json({"name": name, "messages": answer.messages})


async def _parse_request(request: Request) -> QueryRequest:
    """Reads the text and the options of a request. Raises ``Problem`` 400, 415."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in _MEDIA:
        raise Problem(
            415,
            f"A query's text is not {media[:100]}.",
            hint="Send it as application/sparql-query, application/cql or text/plain; "
            "?dialect=WORD says which language it is.",
        )
    dialect = request.query_params.get("dialect") or ("cql" if media == "application/cql" else None)
    if dialect is not None and dialect not in DIALECTS:
        known = ", ".join(DIALECTS)
        raise Problem(400, f"There is no dialect {dialect[:40]}.", hint=f"Known: {known}.")
    if "to" in request.query_params:
        raise Problem(
            400,
            "A request names no URL that Levada opens: a query's outputs are not said here.",
            hint="Who may write to the checkpoint says levada add CHECKPOINT QUERY --to URL.",
        )
    text = await text_of(request)
    name = request.path_params.get("query", "query")
    return QueryRequest(text, name, dialect, options_of(_option_words(request)))


def _option_words(request: Request) -> dict[str, Any]:
    """Returns the query's options in the request's query string."""
    said: dict[str, Any] = {w: v for w, v in request.query_params.items() if w in WORDS}
    if "empty_reports" in said:
        if said["empty_reports"] not in ("true", "false"):
            raise Problem(
                400,
                f"empty_reports is no {said['empty_reports'][:40]}.",
                hint="Say true or false.",
            )
        said["empty_reports"] = said["empty_reports"] == "true"
    return said


def _query_spec(asked: QueryRequest, request: Request) -> QuerySpec:
    token = token_of(request)
    limits = token.allowance.of_queries
    words = _option_words(request)
    return QuerySpec(asked.name, asked.text, asked.dialect, words, limits=limits, owner=token.name)


async def _ask_engine(
    request: Request, wish: Wish, asked: QueryRequest | None = None
) -> tuple[Answer, dict[str, Any]]:
    """Sends a request to the engine. Checks the text first, so that a mistake has its place.
    Returns the answer, and the warnings about the text. Raises ``Problem``, ``EngineError``.
    """
    server = state_of(request)
    if server.settings.read_only:
        raise Problem(
            403, "This server is read-only.", hint="levada serve --checkpoint DIR is not."
        )
    warned: dict[str, Any] = {}
    if asked is not None:
        warned = await run_check(request, _task("plan", asked, request))
        tree = b64decode(warned.pop("tree"))
        wish = replace(wish, add=[replace(each, tree=tree) for each in wish.add])
    async with slot_of(request, server.asking):
        answer = await off_loop(lambda: ask(server.settings.root, wish, pause))
    if answer.refusal:
        raise RefusedError(answer)
    return answer, warned


def pause() -> None:
    """Sleeps between two looks for an answer."""
    time.sleep(LOOK)


async def _await_query(
    server: ServerState, asked: QueryRequest | None, name: str = ""
) -> Text | None:
    """Waits until the engine has written a plan with the query ``asked``, or without the query
    ``name``. Returns the query as it is then.
    """
    text = None
    for _ in range(300):
        texts = (await off_loop(server.facts.now)).texts
        text = texts.get(name if asked is None else asked.name)
        if text is None if asked is None else text is not None and text.is_as(asked):
            break
        await off_loop(pause)
    return text


async def known_words(request: Request) -> Response:
    """Lists words for a text: keywords, streams, static graphs, and the prefixes of other
    queries.
    """
    server = state_of(request)
    now = await off_loop(server.facts.now)
    kinds_by_word: dict[str, str] = {}
    for text in now.texts.values():
        kinds_by_word |= {f"{name} {iri}": "prefix" for name, iri in _PREFIX.findall(text.text)}
    kinds_by_word |= {
        name if name.isidentifier() else f"<{name}>": "stream" for name in now.streams
    }
    graphs = {graph for file in now.setup.static for graph in file.graphs if graph is not None}
    kinds_by_word |= {f"<{graph}>": "graph" for graph in sorted(graphs)}
    kinds_by_word |= dict.fromkeys(sorted(words("rspql")), "")
    return Json({"words": [{"insert": word, "kind": kind} for word, kind in kinds_by_word.items()]})


async def check(request: Request) -> Response:
    """Checks a text. Returns its form, and its errors and warnings with their places."""
    asked = await _parse_request(request)
    return Json(await run_check(request, _task("check", asked, request)))


async def explain(request: Request) -> Response:
    """Returns the plan of a text at a stage: ast, algebra, optimized or physical (the default)."""
    asked = await _parse_request(request)
    stage = request.query_params.get("stage", "physical")
    if stage not in STAGES:
        raise Problem(400, f"There is no stage {stage[:40]}.", hint=f"Known: {', '.join(STAGES)}.")
    text = await run_check(request, _task(stage, asked, request))
    return Response(text + "\n", media_type="text/plain")


def _task(kind: str, asked: QueryRequest, request: Request) -> Task:
    """Builds the task for a process that checks texts, from the text of a request."""
    patterns = limits_of(request).patterns
    return Task(kind, asked.text, asked.name, asked.dialect, _option_words(request), patterns)
