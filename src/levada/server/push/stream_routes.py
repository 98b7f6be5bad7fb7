"""``PUT`` and ``DELETE /streams/{s}``: add and remove streams that clients push to. Requests name
no path and no URL, so HTTP cannot add or remove other streams.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from levada.checkpoint.request_files import Answer, NewStream
from levada.checkpoint.request_files import Request as Wish
from levada.connectors.config.input_formats import PUSH
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.spool.push_spool import is_pushed, push_spool
from levada.core.names import check_stream_name
from levada.engine.status.request_client import RefusedError, ask, new_id
from levada.errors import near
from levada.server.app_state import (
    ServerState,
    body_of,
    check_role,
    limits_of,
    off_loop,
    one_by_one,
    slot_of,
    state_of,
    token_of,
)
from levada.server.problem_json import Json, Problem
from levada.server.query_routes import pause
from levada.server.resource_owners import Owners, only_of, stream_key
from levada.server.security.tokens import Role

OPTIONS = (
    "format", "time", "unit", "time_format", "zone", "lateness", "element", "schema", "sign",
    "unique", "closed", "idle", "heartbeat", "max_future", "ahead", "from", "to", "limit", "region",
)  # fmt: skip
"""The options of a stream that name no file."""
LONGEST = 500  # characters of a name
_Value = str | int | bool | dict[str, str]


async def put_stream(request: Request) -> Response:
    """Adds a pushed stream (201), or confirms an equal one (200). The body has its options as a
    JSON object. Without a body its elements are lines of N-Quads with times.
    """
    check_role(request, Role.REGISTER)
    server, name = state_of(request), _name(request)
    options = {"max_future": server.settings.max_future, **(named := await _options(request))}
    asked = StreamConfig.from_options(name, PUSH, **options)
    push_spool(asked, Path())  # raises if it cannot be pushed
    async with one_by_one(server, stream_key(name)):
        there = (await off_loop(server.facts.now)).streams.get(name)
        if there is not None and "max_future" not in named:  # of an earlier server
            asked = replace(asked, max_future=there.max_future)
        return await _put(request, asked, options, there)


async def _put(
    request: Request, asked: StreamConfig, options: dict[str, Any], there: StreamConfig | None
) -> Response:
    server, name = state_of(request), asked.name
    description = {"stream": name, "format": asked.format}
    if there is not None:
        _check_same(there, asked)
        return Json(description)
    owners, token = Owners(server.settings.root, server.coming), token_of(request)
    names = [stream_key(n) for n in server.facts.now().streams]
    with owners.adding(token, stream_key(name), names, limits_of(request)):
        stream = NewStream(name, PUSH, options, token.name)
        answer = await _ask_engine(request, Wish(new_id(), add_stream=stream))
        await _await_change(lambda: name in server.facts.now().streams)
    said = description | {"messages": answer.messages}
    return Json(said, 201, headers={"Location": f"/streams/{quote(name)}"})


async def delete_stream(request: Request) -> Response:
    """Removes a pushed stream. Rows that were not read are lost."""
    check_role(request, Role.REGISTER)
    server, name = state_of(request), _name(request)
    async with one_by_one(server, stream_key(name)):
        return await _delete(request, server, name)


async def _delete(request: Request, server: ServerState, name: str) -> Response:
    there = (await off_loop(server.facts.now)).streams.get(name)
    if there is None:
        raise Problem(404, f"There is no stream {name}.", hint="GET /streams lists them.")
    if not is_pushed(there):
        raise Problem(409, f"The stream {name} is not pushed: it is the operator's.")
    token = token_of(request)
    Owners(server.settings.root, server.coming).check_own(token, stream_key(name))
    answer = await _ask_engine(
        request, Wish(new_id(), remove_stream=name, required_owner=only_of(token))
    )
    server.pushers.pop(there.path, None)
    await _await_change(lambda: name not in server.facts.now().streams)
    return Json({"stream": name, "messages": answer.messages})


def _name(request: Request) -> str:
    """Returns the stream's name. Raises ``Problem`` 400, 403, ``UsageError``."""
    if state_of(request).settings.read_only:
        raise Problem(403, "This server is read-only.")
    name = request.path_params["stream"]
    if len(name) > LONGEST:
        raise Problem(400, f"The name of a stream has at most {LONGEST} characters.")
    return check_stream_name(name)


async def _options(request: Request) -> dict[str, Any]:
    """Parses the options in the body. Raises ``Problem`` 400, 413, 415."""
    most = limits_of(request).text
    data = await body_of(request, most, "A stream's options", limit="text")
    if not data.strip():
        return {"format": "nq"}
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in ("application/json", ""):
        raise Problem(415, f"The options of a stream are no {media[:100]}.", hint="Send JSON.")
    try:
        options = msgspec.json.decode(data, type=dict[str, _Value])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        message = "The options of a stream are a JSON object of texts, numbers, true and false"
        raise Problem(400, f"{message}: {error}.") from None
    for key in options:
        if key not in OPTIONS:
            message = f"A stream that is pushed has no option {key[:100]}."
            raise Problem(400, message, hint=near(key, OPTIONS))
    return options if "format" in options or "schema" in options else {"format": "nq", **options}


def _check_same(there: StreamConfig, asked: StreamConfig) -> None:
    """Raises ``Problem`` 409 if the existing stream differs from the requested one."""
    if not is_pushed(there):
        raise Problem(409, f"The stream {there.name} is not pushed: its rows come from elsewhere.")
    if replace(there, path=PUSH, settled=False) != asked:
        raise Problem(
            409,
            f"There is a stream {there.name} with other options.",
            hint="GET says which; DELETE takes it away, when no query reads it.",
        )


async def _ask_engine(request: Request, wish: Wish) -> Answer:
    """Sends a request to the engine. Returns its answer. Raises ``RefusedError``,
    ``EngineError``.
    """
    server = state_of(request)
    async with slot_of(request, server.asking):
        answer = await off_loop(lambda: ask(server.settings.root, wish, pause))
    if answer.refusal:
        raise RefusedError(answer)
    return answer


async def _await_change(look: Callable[[], bool]) -> None:
    """Waits until the engine has written its change, some seconds at most."""
    for _ in range(100):
        if await off_loop(look):
            return
        await off_loop(pause)
