"""The check of pushed bodies before they are stored, by the parser that will read them. One
malformed line rejects the whole body, with the line's place. RDF documents (Turtle, .., a line of
JSON-LD) become N-Quads first. Their statements have no times, so only streams with times from
elsewhere take them.

A call of the parser costs as much as some hundred lines, so waiting bodies are parsed together. The
result is the same: a body ends with its last line, and no line crosses bodies.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyoxigraph as ox

from levada.connectors.config.input_formats import DOCUMENTS, NAMES, QUADS
from levada.connectors.config.message_metadata import MEDIA as OF_RDF
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.parse.document_limits import Malformed
from levada.connectors.ingest.parse.documents import document_text
from levada.connectors.ingest.parse.ntriples import Triples, parse
from levada.connectors.ingest.tables.tuple_rows import tuples_of
from levada.connectors.sources.read_split import JsonChunk
from levada.connectors.sources.splits import FileSplit
from levada.core.event_time import MAX, MIN
from levada.server.problem_json import Problem

LINES = {
    "application/n-quads": ("nq",),
    "application/n-triples": ("nt", "nq"),
    "application/x-ndjson": ("ndjson",),
    "application/ndjson": ("ndjson",),
    "": ("nt", "nq", "ndjson"),
}
"""The stream formats whose bodies are stored unchanged, by media type."""
BODIES = tuple(media for media in dict.fromkeys([*LINES, *OF_RDF]) if media)
"""All media types that some stream takes."""
_A_LINE = ("application/x-ndjson", "application/ndjson")
_COLUMN = re.compile(r"columns? (\d+)")


def format_of_body(config: StreamConfig, said: str) -> str:
    """Returns the format of a body that is a document or lines of JSON-LD (``ndjson``); "" if the
    body has lines of the stream's format. Raises ``Problem`` 415 if the stream does not take the
    format.
    """
    media = said.partition(";")[0].strip().lower()
    if config.format in LINES.get(media, ()):
        return ""
    form = "ndjson" if media in _A_LINE else OF_RDF.get(media, "")
    rdf = config.format in ("nt", "nq")
    graphs = form == "ndjson" or form in QUADS
    if rdf and form in (*DOCUMENTS, "ndjson") and (config.quads or not graphs):
        if not config.timed:
            return form
        what = "JSON-LD" if form == "ndjson" else NAMES[form]
        raise Problem(
            415,
            f"The stream {config.name} has its times in its lines, and {what} has none there.",
            hint="Declare it with time=arrival, or time=predicate:IRI and element=blankline.",
            available=_media_types(config),
        )
    raise Problem(
        415,
        f"The stream {config.name} does not take {media[:100]}.",
        available=_media_types(config),
    )


def _media_types(config: StreamConfig) -> list[str]:
    lines = [name for name, forms in LINES.items() if name and config.format in forms]
    if config.timed or config.format not in ("nt", "nq"):
        return lines
    documents = [m for m, f in OF_RDF.items() if config.quads or f not in QUADS]
    return list(dict.fromkeys([*lines, *documents, *(_A_LINE if config.quads else ())]))


def as_lines(data: bytes, form: str) -> bytes:
    """Converts a document, or lines of JSON-LD, into N-Quads. Raises ``Problem`` 400."""
    if form != "ndjson":
        return _quads(data, form, 0)
    documents = (line for line in enumerate(data.split(b"\n"), 1) if line[1].strip())
    return b"".join(
        _rename_blank_nodes(_quads(line, "jsonld", number)) for number, line in documents
    )


def _quads(data: bytes, form: str, line: int) -> bytes:
    try:
        return document_text(data, form)
    except Malformed as fault:
        raise Problem(
            400, f"The body cannot be read: {fault}.", faulty_rows=1,
            line=line or fault.line or 1, column=fault.column or 1,
        ) from None  # fmt: skip


def _rename_blank_nodes(text: bytes) -> bytes:
    """Renames blank nodes to labels that no other text uses."""
    if b"_:" not in text:
        return text
    quads = ox.parse(text, format=ox.RdfFormat.N_QUADS, rename_blank_nodes=True)
    return ox.serialize(quads, format=ox.RdfFormat.N_QUADS) or b""


def whole_lines(config: StreamConfig, data: bytes) -> bytes:
    """Returns a body with a last line end and without a byte order mark, which would end up inside
    a file of several bodies. Raises ``Problem`` 400 for a byte 0.
    """
    data = data.removeprefix(BOM_UTF8)
    if b"\0" in data:
        at = data.index(b"\0")
        raise Problem(400, "A body is text: it has a byte 0.", **_place(data, at, at))
    text = data if data.endswith(b"\n") else data + b"\n"
    return text + b"\n" if config.element == "blankline" else text  # its last element ends


def rows_of(config: StreamConfig, text: bytes) -> int:
    """Counts the elements of a body from ``whole_lines``. Raises ``Problem`` 400."""
    if config.format == "ndjson":
        return _count_tuples(config, text)
    parsed = _parse(config, text)
    if parsed.bad:
        at, reason, _ = parsed.bad[0]
        raise Problem(
            400, reason, faulty_rows=len(parsed.bad), **_place(text, at, at + _column(reason))
        )
    return parsed.n


def rows_of_each(config: StreamConfig, texts: Sequence[bytes]) -> list[int | Problem]:
    """Counts the elements of each body, or returns the problem of a body."""
    if config.format == "ndjson" or len(texts) == 1:
        return [_rows_or_problem(config, text) for text in texts]
    parsed = _parse(config, b"".join(texts))
    ends = np.fromiter(accumulate(map(len, texts)), np.int64, len(texts))
    rows = np.diff(np.searchsorted(parsed.line, ends), prepend=0).tolist()
    wrong = set(np.searchsorted(ends, [at for at, _, _ in parsed.bad], "right").tolist())
    return [
        _rows_or_problem(config, text) if body in wrong else n
        for body, (text, n) in enumerate(zip(texts, rows, strict=True))
    ]


def _rows_or_problem(config: StreamConfig, text: bytes) -> int | Problem:
    try:
        return rows_of(config, text)
    except Problem as problem:
        return problem


def _parse(config: StreamConfig, text: bytes) -> Triples:
    return parse(
        text,
        quads=config.quads,
        timed=config.timed,
        seed=0,
        document=1,
        unit_power=config.unit_power,
    )


def _count_tuples(config: StreamConfig, data: bytes) -> int:
    reference = FileSplit(config.name, config.name, "", "", config.format, 0, len(data), 0, 0, 0)
    chunk = JsonChunk(np.frombuffer(data, np.uint8))
    tuples = tuples_of(chunk, config, reference, late_below=MIN, future_above=MAX)
    if tuples.dead:
        dead = tuples.dead[0]
        at = int(dead[0])
        line = data.rfind(b"\n", 0, at) + 1
        place = _place(data, line, at)
        raise Problem(400, _sentence(dead[1]), faulty_rows=len(tuples.dead), **place)
    return tuples.n


def _sentence(reason: str) -> str:
    return f"A row cannot be read: {reason}."


def _column(reason: str) -> int:
    match = _COLUMN.search(reason)
    return int(match[1]) - 1 if match else 0


def _place(data: bytes, line: int, at: int) -> dict[str, Any]:
    """Returns line and column of a byte, counted from 1."""
    return {"line": data.count(b"\n", 0, line) + 1, "column": at - line + 1}
