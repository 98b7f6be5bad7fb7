"""What is pushed is looked at before it is taken, by what will read it: a body with one line that
is none is refused as a whole, with that line's place.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from levada.intake.parse.ntriples import parse
from levada.intake.tables.tuples import tuples_of
from levada.model.time import MAX, MIN
from levada.server.problems import Problem
from levada.sources.read import JsonChunk
from levada.sources.reference import Reference
from levada.streams.stream_config import StreamConfig

MEDIA = {
    "application/n-quads": ("nq",),
    "application/n-triples": ("nt", "nq"),
    "application/x-ndjson": ("ndjson",),
    "application/ndjson": ("ndjson",),
    "": ("nt", "nq", "ndjson"),
}
_COLUMN = re.compile(r"columns? (\d+)")


def check_media(config: StreamConfig, said: str) -> None:
    """Raises ``Problem`` 415 for a body that is not of the stream's kind."""
    media = said.partition(";")[0].strip().lower()
    if config.format not in MEDIA.get(media, ()):
        able = [name for name, forms in MEDIA.items() if name and config.format in forms]
        raise Problem(415, f"The stream {config.name} does not take {media[:100]}.", available=able)


def whole_lines(config: StreamConfig, data: bytes) -> tuple[bytes, int]:
    """A body with its last line end, and how many elements it has. Raises ``Problem`` 400."""
    if b"\0" in data:
        at = data.index(b"\0")
        raise Problem(400, "A body is text: it has a byte 0.", **_place(data, at, at))
    text = data if data.endswith(b"\n") else data + b"\n"
    if config.format == "ndjson":
        return text, _tuples(config, text)
    found = parse(
        text, quads=config.quads, timed=config.timed, seed=0, document=1, unit_ms=config.unit_ms
    )
    if found.bad:
        at, reason, _ = found.bad[0]
        raise Problem(400, reason, wrong=len(found.bad), **_place(data, at, at + _column(reason)))
    return text, found.n


def _tuples(config: StreamConfig, data: bytes) -> int:
    reference = Reference(config.name, config.name, "", "", config.format, 0, len(data), 0, 0, 0)
    chunk = JsonChunk(np.frombuffer(data, np.uint8))
    found = tuples_of(chunk, config, reference, late_below=MIN, future_above=MAX)
    if found.dead:
        dead = found.dead[0]
        at = int(dead[0])
        raise Problem(400, _sentence(dead[1]), wrong=len(found.dead), **_place(data, at, at))
    return found.n


def _sentence(reason: str) -> str:
    return f"A row cannot be read: {reason}."


def _column(reason: str) -> int:
    found = _COLUMN.search(reason)
    return int(found[1]) - 1 if found else 0


def _place(data: bytes, line: int, at: int) -> dict[str, Any]:
    """Line and column of a byte, from 1."""
    return {"line": data.count(b"\n", 0, line) + 1, "column": at - line + 1}
