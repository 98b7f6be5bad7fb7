"""The choice of a result's format by ``Accept`` (RFC 9110, 12.5.1) or ``?format=WORD``, and the
checks of other headers and numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from starlette.requests import Request

from levada.connectors.serialization.result_formats import REPORTS, Format, fitting, meant
from levada.plan.execution.plan import QueryPlan
from levada.server.problem_json import Problem

EVENTS = "text/event-stream"
MEDIA: dict[str, Format] = {
    "application/x-ndjson": Format.NDJSON,
    "application/ndjson": Format.NDJSON,
    "application/sparql-results+json": Format.SRJ,
    "application/sparql-results+xml": Format.SRX,
    "text/csv": Format.CSV,
    "text/tab-separated-values": Format.TSV,
    "application/n-triples": Format.NT,
    "text/turtle": Format.NT,  # N-Triples are Turtle
    "application/n-quads": Format.NQ,
    "application/trig": Format.TRIG,
    "application/ld+json": Format.JSONLD,
    "application/x-jelly-rdf": Format.JELLY,
    "application/vnd.apache.arrow.file": Format.ARROW,
    "application/vnd.apache.parquet": Format.PARQUET,
}


def media_of(form: Format, asked: str = "") -> str:
    """Returns the media type of a format: the requested one, else the first of the format."""
    media_type = asked or next(media for media, each in MEDIA.items() if each is form)
    return f"{media_type}; charset=utf-8" if media_type.startswith("text/") else media_type


def wants_events(request: Request) -> bool:
    """Returns whether the client prefers server-sent events."""
    return choose_media_type(request.headers.get("accept", ""), [*MEDIA, EVENTS]) == EVENTS


def choose_format(request: Request, query: QueryPlan, *, single: bool) -> tuple[Format, str]:
    """Returns the format of the answer, and its media type. ``single``: the answer is one report.
    Raises ``Problem`` 406, which lists the available formats.
    """
    able = [f for f in fitting(query.form, query.output) if single or f not in REPORTS]
    if word := request.query_params.get("format"):
        return _by_word(word, able)
    said = request.headers.get("accept", "")
    there = [media for media, form in MEDIA.items() if form in able]
    if media := choose_media_type(said, there):
        return MEDIA[media], media_of(MEDIA[media], media)
    raise Problem(
        406,
        f"The results of {query.name} cannot be had as {said[:200]}.",
        available=there,
        hint="Name one of these in Accept, or say ?format=WORD.",
    )


def _by_word(word: str, able: Sequence[Format]) -> tuple[Format, str]:
    if word not in list(Format):
        raise Problem(400, f"There is no format of results {word}.", hint=meant(word))
    if Format(word) not in able:
        raise Problem(
            406, f"These results cannot be had as {word}.", available=list(map(str, able))
        )
    return Format(word), media_of(Format(word))


def choose_media_type(header: str, there: Sequence[str]) -> str:
    """Returns the available media type that an ``Accept`` header prefers; "" if it accepts none of
    them. The most specific range of a type counts. Among equals the header's order decides, then
    the order of ``there``. Without a header the first type wins.

    >>> there = ["application/x-ndjson", "text/csv", "text/turtle"]
    >>> choose_media_type("text/csv;q=0.5, text/turtle, */*;q=0.1", there)
    'text/turtle'
    >>> choose_media_type("text/*", there)
    'text/csv'
    >>> choose_media_type("*/*, application/x-ndjson;q=0", there)
    'text/csv'
    >>> choose_media_type("image/png", there)
    ''
    """
    ranges: dict[str, tuple[float, int]] = {}
    for at, part in enumerate(header.split(",")[:64]):
        media, *parameters = (word.strip() for word in part.split(";"))
        if media:
            ranges.setdefault(media.lower(), (_quality(parameters), -at))
    best, chosen = (0.0, 0), ""
    for media in there:
        every = media.partition("/")[0] + "/*"
        said = next((ranges[r] for r in (media, every, "*/*") if r in ranges), (0.0, 0))
        if said[0] > 0 and (not chosen or said > best):
            best, chosen = said, media
    return chosen if ranges else there[0]


def _quality(parameters: Iterable[str]) -> float:
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0


def matches(header: str, tag: str, *, weakly: bool = False) -> bool:
    """Returns whether an ``If-Match``, or weakly an ``If-None-Match``, names an ETag (RFC 9110,
    13.1).

    >>> matches('"1", "2"', '"2"'), matches('W/"2"', '"2"'), matches("*", '"2"')
    (True, False, True)
    >>> matches('W/"2"', '"2"', weakly=True)
    True
    """
    said = [part.strip() for part in header.split(",")]
    return "*" in said or tag in [part.removeprefix("W/") if weakly else part for part in said]


def number(request: Request, name: str, least: int, most: int) -> int | None:
    """Parses a whole number of the query string; None if it is absent. Raises ``Problem`` 400."""
    said = request.query_params.get(name)
    if said is None:
        return None
    return whole(said, name, least, most)


def whole(text: str, what: str, least: int, most: int) -> int:
    """Parses a whole number within bounds. Raises ``Problem`` 400."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 20):
        raise Problem(400, f"{what} is a whole number, not {text[:40]}.")
    if not least <= int(text) <= most:
        raise Problem(400, f"{what} is from {least} to {most}.")
    return int(text)
