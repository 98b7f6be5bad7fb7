"""``/letters``: the newest late elements and dead letters, from the files that an engine writes
(``connectors.sinks.dead_letter_files``).

An answer is bounded in any case. It reads the newest ``FILES`` files, at most the last ``TAIL``
bytes of each, until it has as many letters as requested. Texts are cut.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from starlette.requests import Request

from levada.connectors.sinks.dead_letter_files import Letter
from levada.engine.status.status import read_status
from levada.engine.status.summary import StreamCounts
from levada.errors import CheckpointError
from levada.server.app_state import ServerState, off_loop, slot_of, state_of
from levada.server.content_negotiation import number
from levada.server.problem_json import Json, Problem

MAX_LETTERS = 100  # letters in an answer
USUAL = 20
FILES = 64
TAIL = 1 << 20  # bytes
LONGEST = 500  # characters of a letter's text, and of its reason
COUNTS = {"dead": "dead_letters", "late": "late"}
KINDS = {"dead": Letter.DEAD, "late": Letter.LATE}
ELSEWHERE = "They are not in the checkpoint: the engine writes them below its --out."


class LetterFilter(NamedTuple):
    """The stream ("": all), the kinds and the number of the requested letters."""

    stream: str
    kinds: tuple[str, ...]
    limit: int


class Newest(NamedTuple):
    """The letters, newest first. ``more``: there are letters that were not read."""

    letters: list[dict[str, Any]]
    more: bool


async def letters(request: Request) -> Json:
    """Returns the newest late elements and dead letters, with their reasons and places."""
    server = state_of(request)
    wanted = _parse_wanted(request)
    async with slot_of(request, server.parsing):
        return Json(await off_loop(lambda: _answer(server, wanted)))


def _parse_wanted(request: Request) -> LetterFilter:
    kind = request.query_params.get("kind", "")
    if kind and kind not in KINDS:
        raise Problem(400, f"There are no letters of the kind {kind[:40]}.", hint="dead, late.")
    limit = number(request, "limit", 1, MAX_LETTERS) or USUAL
    stream = request.query_params.get("stream", "")
    return LetterFilter(stream, (kind,) if kind else tuple(KINDS), limit)


def _answer(server: ServerState, wanted: LetterFilter) -> dict[str, Any]:
    counts = _counts(server)
    known = {*counts, *server.facts.now().streams}
    if wanted.stream and wanted.stream not in known:
        name = wanted.stream[:200]
        raise Problem(404, f"There is no stream {name}.", hint="GET /streams lists them.")
    folder = server.settings.letters or server.settings.root
    newest_letters = newest(folder, wanted)
    said = {name: {"dead_letters": c.dead_letters, "late": c.late} for name, c in counts.items()}
    asked = [said[n] for n in said if wanted.stream in ("", n)]
    away = not newest_letters.letters and any(
        c[COUNTS[kind]] for c in asked for kind in wanted.kinds
    )
    return {
        "counts": said,
        "letters": newest_letters.letters,
        "has_more": newest_letters.more,
        "message": ELSEWHERE if away and not newest_letters.more else "",
    }


def _counts(server: ServerState) -> dict[str, StreamCounts]:
    try:
        return read_status(server.settings.root).streams
    except CheckpointError:
        return {}  # no epoch yet


def newest(folder: Path, wanted: LetterFilter) -> Newest:
    """Returns the newest letters below a folder. Within an epoch dead letters come before late
    ones.
    """
    files = list(_files(folder, wanted.kinds))
    matches: list[dict[str, Any]] = []
    for epoch, kind, path in files[:FILES]:
        for letter in _read(path, kind, epoch):
            if wanted.stream in ("", letter["stream"]):
                if len(matches) == wanted.limit:
                    return Newest(matches, more=True)
                matches.append(letter)
    return Newest(matches, more=len(files) > FILES)


def _files(folder: Path, kinds: tuple[str, ...]) -> Iterator[tuple[int, str, Path]]:
    """Yields the newest files, the newest first: one more than are read."""
    names: list[tuple[str, str, Path]] = []
    for kind in kinds:
        with suppress(OSError), os.scandir(folder / KINDS[kind]) as there:
            file_names = (
                e.name for e in there if e.name[:1].isdigit() and e.name.endswith(".ndjson")
            )
            some = heapq.nlargest(FILES + 1, file_names)
            names += [(name, kind, folder / KINDS[kind] / name) for name in some]
    for name, kind, path in sorted(names, key=lambda n: (n[0].split("-")[0], n[0]), reverse=True):
        with suppress(ValueError):
            yield int(name.split("-", 1)[0]), kind, path


def _read(path: Path, kind: str, epoch: int) -> Iterator[dict[str, Any]]:
    """Yields the letters of a file, the last first. A file that is longer than ``TAIL`` ends with a
    letter that says so.
    """
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - TAIL, 0))
            lines = file.read(TAIL).split(b"\n")
    except OSError:
        return  # the file was deleted
    whole = lines if size <= TAIL else lines[1:]
    for line in reversed(whole):
        with suppress(msgspec.MsgspecError):
            if line:
                yield _letter_fields(msgspec.json.decode(line, type=dict[str, Any]), kind, epoch)
    if size > TAIL:
        rest = f"What else is in {path.name} is not shown: it has {size:,} bytes."
        yield _letter_fields({"source": path.name, "reason": rest}, kind, epoch)


def _letter_fields(letter: dict[str, Any], kind: str, epoch: int) -> dict[str, Any]:
    text = str(letter.get("text") or "")
    return {
        "kind": kind,
        "epoch": epoch,
        "stream": str(letter.get("stream", "")),
        "source": letter.get("source"),
        "offset": letter.get("offset"),
        "reason": str(letter.get("reason", ""))[:LONGEST],
        "text": text[:LONGEST],
        "characters": len(text),
    }
