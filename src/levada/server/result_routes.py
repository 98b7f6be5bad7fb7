"""``/queries/{q}/results``: the last report, the reports after an id, one report, or live
events.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from urllib.parse import quote

import msgspec
import xxhash
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import Send

from levada.connectors.serialization.encode_batch import contents
from levada.connectors.serialization.merge_epochs import join
from levada.connectors.serialization.result_formats import REPORTS, Format
from levada.connectors.serialization.serialize import Batch
from levada.connectors.serialization.unwritable_results import is_of_result
from levada.connectors.sources.file_errors import reason
from levada.core.names import display_name
from levada.core.query_model import Form
from levada.engine.status.result_archive import ArchivedReports, first_reports
from levada.engine.status.status import read_status
from levada.errors import CheckpointError
from levada.plan.execution.plan import QueryPlan
from levada.server.app_state import ServerState, off_loop, slot_of, state_of, token_of
from levada.server.content_negotiation import choose_format, matches, number, wants_events, whole
from levada.server.live.sse import FARTHEST, EventStream, parse_positions
from levada.server.problem_json import Json, Problem
from levada.server.security.links import LinkToken

# Events whose data are statements with times, in the syntax of a stream of Levada. Each triple of
# a CONSTRUCT is a line of N-Triples with the report's time before its dot.
#
#     id: 4000
#     event: report
#     data: <http://e/a> <http://e/b> <http://e/c> 4000 .
#
# So another engine can read the results as a stream (``sse+http://``, ``format=nt,element=line``).


_REPORT = b"\nevent: report\n"


class StatementStream(EventStream):
    """An event stream that sends statements."""

    async def _send(self, send: Send, blocks: Sequence[bytes]) -> None:
        await super()._send(send, list(map(statements, blocks)))


def statements(block: bytes) -> bytes:
    r"""Converts an event of a CONSTRUCT into statements. Returns other blocks unchanged.

    >>> statements(b'id: 10\nevent: report\ndata: {"report": 10, "graph": "<a> <b> <c> .\\n"}\n\n')
    b'id: 10\nevent: report\ndata: <a> <b> <c> 10 .\n\n'
    """
    head, marker, rest = block.partition(_REPORT)
    if not marker:
        return block
    lines = []
    for line in rest.split(b"\n"):
        if line:
            said = msgspec.json.decode(line.removeprefix(b"data: "))
            time = said["report"]
            lines += [f"data: {t[:-1]}{time} .\n" for t in said["graph"].split("\n") if t]
    return head + marker + "".join(lines).encode() + b"\n"


LINK_SECONDS, MAX_LINK_SECONDS = 3600, 86_400
FOREVER = "private, max-age=31536000, immutable"


async def results(request: Request) -> Response | EventStream:
    """Returns the last report, or with ``?after=`` the reports after it, or as events each new
    report.
    """
    server, query = state_of(request), plan_of_query(request)
    after = number(request, "after", -FARTHEST, FARTHEST)
    limit = number(request, "limit", 1, server.settings.limits.reports)
    live = wants_events(request)
    if limit is not None and (live or after is None):
        raise Problem(400, "limit bounds the reports behind a time.", hint="Say after=TIME, too.")
    if live:
        said = request.headers.get("last-event-id") or request.query_params.get("after")
        kind = _kind(request, query)
        return kind(server.feed, parse_positions([query.name], said, one=True), one=True)
    if after is not None:
        return await _behind(request, server, query, after, limit or server.settings.limits.reports)
    form, media = choose_format(request, query, single=True)
    latest = await off_loop(lambda: server.archive.latest(query.name, query.since))
    if latest is None:
        why = await off_loop(lambda: _no_result_reason(server, query.name))
        raise Problem(404, f"There is no report of {query.name} yet.", hint=why)
    return await _report(request, latest, form, media, cache="no-cache")


def _kind(request: Request, query: QueryPlan) -> type[EventStream]:
    """Returns the class that serializes the events. Raises ``Problem`` 406."""
    word = request.query_params.get("format") or Format.NDJSON
    kinds: dict[str, type[EventStream]] = {Format.NDJSON: EventStream}
    if query.form is Form.CONSTRUCT:
        kinds[Format.NT] = StatementStream
    if word not in kinds:
        message = f"The events of {query.name} cannot be had as {word[:40]}."
        raise Problem(406, message, available=list(map(str, kinds)))
    return kinds[word]


async def get_report(request: Request) -> Response:
    """Returns one report, whose content never changes."""
    server, query = state_of(request), plan_of_query(request)
    report = whole(request.path_params["report"], "A report's time", -FARTHEST, FARTHEST)
    form, media = choose_format(request, query, single=True)
    archived = await off_loop(lambda: server.archive.find_report(query.name, report, query.since))
    if archived is not None:
        return await _report(request, archived, form, media, cache=FOREVER)
    gone = server.archive.last_deleted(query.name, query.since)
    if gone is not None and report <= gone:
        raise Problem(410, f"The report of {query.name} at {report} is not kept any more.")
    last = server.archive.last(query.name, query.since)
    hint = "" if last is None else f"The last one is at {last}."
    raise Problem(404, f"{query.name} has no report at {report}.", hint=hint)


async def make_link(request: Request) -> Response:
    """Makes a link: a URL that reads the results of one query without a token, for some time."""
    query, links = plan_of_query(request), request.app.state.door.links
    seconds = number(request, "seconds", 1, MAX_LINK_SECONDS) or LINK_SECONDS
    make = partial(links.make, query.name, query.since, seconds, token_of(request))
    link, last_second = await off_loop(make)
    url = f"/queries/{quote(query.name)}/results?link={link}"
    said = {"query": query.name, "url": url, "expires_ms": 1000 * last_second}
    return Json(said, 201, headers={"Cache-Control": "no-store"})


async def events(request: Request) -> EventStream:
    """Streams the reports of several queries on one connection."""
    server, names = state_of(request), names_of(request)
    said = request.headers.get("last-event-id") or request.query_params.get("after")
    return EventStream(server.feed, parse_positions(names, said, one=False), one=False)


def names_of(request: HTTPConnection) -> list[str]:
    """Returns the queries that the request names, or all. Raises ``Problem`` 404."""
    names = list(dict.fromkeys(request.query_params.getlist("query")))
    there = state_of(request).facts.now().plans
    for name in names:
        if name not in there:
            raise _no_query(name)
    return names or list(there)


def plan_of_query(request: HTTPConnection) -> QueryPlan:
    """Returns the query that the path names. Raises ``Problem`` 404, 409 if it is suspended."""
    server, name = state_of(request), request.path_params["query"]
    now, token = server.facts.now(), token_of(request)
    if name in now.plans:
        if isinstance(token, LinkToken) and token.since != now.plans[name].since:
            raise Problem(404, f"This link is for an older query of the name {name[:100]}.")
        return now.plans[name]
    if name in now.texts:
        raise Problem(409, f"The query {name} is suspended.", hint=now.texts[name].suspended)
    raise _no_query(name)


def _no_query(name: str) -> Problem:
    return Problem(404, f"There is no query {name[:100]}.", hint="GET /queries lists them.")


async def _report(
    request: Request, archived: ArchivedReports, form: Format, media: str, *, cache: str
) -> Response:
    async with slot_of(request, state_of(request).reading):
        data = await off_loop(lambda: content(form, archived.query, [archived]))
    tag = f'"{xxhash.xxh3_64_hexdigest(data)}"'
    report = archived.ids[0]
    headers = {"ETag": tag, "Cache-Control": cache, "Vary": "Accept", "Levada-Report": str(report)}
    if matches(request.headers.get("if-none-match", ""), tag, weakly=True):
        return Response(status_code=304, headers=headers)
    return Response(data, headers=headers, media_type=media)


async def _behind(
    request: Request, server: ServerState, query: QueryPlan, after: int, limit: int
) -> Response:
    """Answers with the reports after an id, oldest first, and a link to the next ones."""
    form, media = choose_format(request, query, single=False)
    gone = server.archive.last_deleted(query.name, query.since)

    def read() -> tuple[bytes, int | None]:
        parts = list(_up_to(server, query, after, limit))
        data = content(form, query, parts)
        return data, parts[-1].ids[-1] if parts else None

    async with slot_of(request, server.reading):
        data, last = await off_loop(read)
    headers = {"Cache-Control": "no-cache", "Vary": "Accept"}
    if gone is not None and after < gone:
        headers["Levada-Gap"] = f"after={after}, up to={gone}"
    if last is not None:
        headers["Levada-Report"] = str(last)
        if last != server.archive.last(query.name, query.since):
            link = request.query_params.get("link")
            more = f"&link={quote(link)}" if link else ""
            at = f"/queries/{quote(query.name)}/results?after={last}&limit={limit}{more}"
            headers["Link"] = f'<{at}>; rel="next"'
    return Response(data, headers=headers, media_type=media)


def _up_to(
    server: ServerState, query: QueryPlan, after: int, limit: int
) -> Iterator[ArchivedReports]:
    """Yields at most ``limit`` reports, up to the byte limit of an answer, but at least one
    report.
    """
    room = server.settings.limits.answer
    for archived in server.archive.after(query.name, after, query.since):
        part = first_reports(archived, limit)
        size = part.batch.size
        if size > room:
            yield first_reports(part, max(len(part.ids) * room // size, 1))
            return
        yield part
        limit -= len(part.ids)
        room -= size
        if limit <= 0:
            return


def content(form: Format, query: QueryPlan, parts: Sequence[ArchivedReports]) -> bytes:
    """Serializes reports as one text or table. Formats without a place for times take one
    report.
    """
    if not parts:
        return b""
    batch = join([each.batch for each in parts])
    name = display_name(query.name)
    try:
        return _content(form, query, name, batch)
    except BaseException as error:
        if not is_of_result(error):
            raise
        message = f"{form} cannot hold a result of {query.name}: {reason(error)}."
        able = [str(other) for other in Format if other not in (form, Format.SRX)]
        raise Problem(406, message, available=able) from None


def _content(form: Format, query: QueryPlan, name: str, batch: Batch) -> bytes:
    if form in REPORTS:
        return b"".join(
            data for _, data in contents(form, name, query.variables, batch, lambda sizes: ())
        )
    parts = contents(form, name, query.variables, batch, lambda sizes: [(0, len(sizes))])
    return b"".join(data for _, data in parts)


def _no_result_reason(server: ServerState, name: str) -> str:
    """Returns the reason why a query has no result, as ``levada status`` shows it."""
    try:
        status = read_status(server.settings.root)
    except CheckpointError:
        return "The engine has had no epoch yet."
    return next((query.reason for query in status.queries if query.name == name), "")
