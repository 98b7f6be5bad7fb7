"""Intentions and manifests: what an epoch will do, and that it is done
(docs/architecture.md#an-epoch).

An intention is JSON that the loop writes ahead; with it an epoch can be repeated to the letter. A
manifest is a file that is created only if it is absent: it is the commit, and it fences off a
second engine. Everything that it names is durable before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from levada.errors import CheckpointError
from levada.model.time import MIN
from levada.runtime.context import Control, Replacement, StreamState
from levada.sources.reference import Reference


class Intention(msgspec.Struct):
    """What epoch N will do."""

    epoch: int
    plan: int
    wall: int
    references: list[Reference] = []
    positions: dict[str, dict[str, Any]] = {}
    streams: list[StreamState] = []
    finished: dict[str, list[str]] = {}
    static: bool = False
    ended: bool = False
    flush: bool = False  # publishes what is held back for fuller files
    setup: str = ""  # the streams and static files, by the file's name
    replacement: Replacement | None = None
    overtaken: dict[str, list[str]] = {}  # stream -> files that came too late to be read
    broken: dict[str, dict[str, str]] = {}  # stream -> files that cannot be read, and why


class Held(msgspec.Struct):
    """An epoch's results that are not in files yet: ``wall`` when it began (ms), ``size`` the bytes
    of its segments.
    """

    epoch: int
    plan: int
    segments: list[str]
    every: dict[str, list[int]]
    wall: int
    size: int


class StreamRecord(msgspec.Struct):
    """A stream after an epoch: W, largest event times, by partition too, counts since the start."""

    watermark: int = MIN
    max_ts: int = MIN
    partitions: dict[str, int] = {}
    ended: bool = False
    ahead: int = 0
    elements: int = 0
    triples: int = 0
    late: int = 0
    dead: int = 0
    cut: int = 0
    overtaken: int = 0  # files that came too late to be read; each is a dead letter, too

    def add(self, own: Sequence[Control], finished: Sequence[str]) -> StreamRecord:
        """The record with an epoch's controls of the stream added, without these partitions."""
        partitions = dict(self.partitions)
        for c in own:
            partitions[c.partition] = max(partitions.get(c.partition, MIN), c.max_ts)
        for name in finished:
            partitions.pop(name, None)
        return StreamRecord(
            self.watermark,
            max([self.max_ts, *(c.max_ts for c in own)]),
            partitions,
            self.ended,
            self.ahead,
            self.elements + sum(c.elements for c in own),
            self.triples + sum(c.triples for c in own),
            self.late + sum(c.late for c in own),
            self.dead + sum(c.dead for c in own),
            self.cut + sum(c.cut for c in own),
        )


class Manifest(msgspec.Struct):
    """Epoch N is done: what is there now."""

    epoch: int
    plan: int
    positions: dict[str, dict[str, Any]] = {}
    streams: dict[str, StreamRecord] = {}
    state: dict[str, str] = {}
    files: list[str] = []
    segments: list[str] = []
    side: list[tuple[str, str, int]] = []
    counts: dict[str, list[int]] = {}
    totals: dict[str, list[int]] = {}  # query -> [solutions, reports] since it came
    every: dict[str, list[int]] = {}
    ended: bool = False
    rows_in: int = 0
    # stream -> pattern -> the triples that matched it since the beginning
    hits: dict[str, dict[str, int]] = {}
    rolled: list[Held] = []  # what this epoch publishes
    held: list[Held] = []  # what a later one will
    latest: dict[str, int] = {}  # query that can make a stream -> its last report with a result
    rows_state: int = 0
    gone: int = 0  # solutions of queries that have been taken out
    setup: str = ""  # which static files the state has seen


def write_once(path: Path, data: bytes) -> bool:
    """Creates a file with this content, durably, only if it is absent; else False."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        _sync(path.parent)
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint {path.parent.parent} cannot be written: {error.strerror}."
        ) from error
    return True


def replace_file(path: Path, data: bytes) -> None:
    """Gives a file this content, durably; readers see the old one or the new one whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint {path.parent.parent} cannot be written: {error.strerror}."
        ) from error


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_manifest(path: Path) -> Manifest:
    """A manifest from its file."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise CheckpointError(
            f"The checkpoint's manifest {path} cannot be read.", hint=str(error)
        ) from error
