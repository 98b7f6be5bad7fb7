"""Reads static data in a task: a part of a source, of which it makes an imprint on the way, or an
imprint.

    parts --triples--> chunks of the source, or of its imprint
          --finish--->  what was read, and the files of new imprints

A file of imprints contains those of one task, of several sources. Replaceable sources have files of
their own, which are deleted with them. The metadata of the file describe the source of each imprint
and its state (``Source``). A large file is written at once, so a task holds at most
``MAX_BUFFERED_BYTES`` bytes and a chunk of it. It counts when a manifest names it, like all files
of the checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from levada.checkpoint import state_files
from levada.connectors.config.input_formats import LINES
from levada.connectors.ingest.parse.ntriples import Triples
from levada.connectors.ingest.static_cache import CacheRequest, make_imprint, triples_of
from levada.connectors.ingest.static_file_stamps import check_seen
from levada.connectors.ingest.static_files import StaticFile, chunks
from levada.connectors.ingest.static_load_report import Loaded
from levada.core.frame import Frame
from levada.core.size_thresholds import register
from levada.operators.state.checksummed_frames import checked_parts

# size in bytes from which on a file of imprints is written
MAX_BUFFERED_BYTES = register(f"{__name__}.MAX_BUFFERED_BYTES", 64 << 20)
MARK = "imprint"  # in the names of such files


class StaticPart(msgspec.Struct, array_like=True):
    """The static data that one task reads at a time: lines of a file of the epoch's setup, or of
    the file ``before`` the replacement. ``seen``: the file's size (bytes) and time (ns) when the
    job was made, so that all tasks read the same. ``press``: make an imprint of it. ``imprint``:
    the file of imprints to read instead, in which the one of ``source`` represents ``size`` bytes.
    """

    before: bool
    file: int
    start: int = 0
    stop: int | None = None
    seen: tuple[int, int] = (0, 0)
    press: bool = False
    imprint: str = ""
    source: int = 0
    size: int = 0


class Source(msgspec.Struct, array_like=True):
    """The source of an imprint: the path, the format and, if its terms are relative to the place,
    the name of the file that it is a copy of; its state when ``seen`` (size, time); the number of
    ``chunks``, and the ``size`` in bytes of the data that they represent.
    """

    path: str
    format: str
    base: str
    seen: tuple[int, int]
    chunks: int = 0
    size: int = 0

    @property
    def key(self) -> tuple[str, str, str]:
        """The key of the source."""
        return self.path, self.format, self.base


def key_of(file: StaticFile) -> tuple[str, str, str]:
    """Returns the key of a static file; two that differ in their graphs alone are one source."""
    return file.path, file.format, "" if file.format in LINES else file.name


class StaticReader:
    """Reads parts of static data in one task, with the ``seed`` of the checkpoint at ``root``."""

    def __init__(self, root: str, epoch: int, seed: int) -> None:
        self._root, self._epoch, self._seed = root, epoch, seed
        self._loaded = Loaded(epoch=epoch)
        self._frames: dict[str, Frame] = {}
        self._sources: list[Source] = []
        self._size = 0
        self._maps: dict[str, tuple[Mapping[str, Frame], Any]] = {}

    def triples(
        self, part: StaticPart, file: StaticFile, request: CacheRequest
    ) -> Iterator[Triples]:
        """Yields the statements of a part of a file in chunks; of an imprint those with wanted
        predicates. Raises ``SourceError``, ``CheckpointError``.
        """
        began = time.thread_time()
        chunks = self._read_imprint(part, request) if part.imprint else self._parse(part, file)
        for triples in chunks:
            self._loaded.cpu_seconds += time.thread_time() - began
            yield triples
            began = time.thread_time()
        self._loaded.cpu_seconds += time.thread_time() - began

    def _read_imprint(self, part: StaticPart, request: CacheRequest) -> Iterator[Triples]:
        if part.imprint not in self._maps:
            self._maps[part.imprint] = state_files.map_(self._root, part.imprint)
        frames, meta = self._maps[part.imprint]
        source = sources_in(meta)[part.source]
        self._loaded.imprint_parts += 1
        for chunk in range(source.chunks):
            triples = triples_of(frames, f"{part.source}.{chunk}", request)
            if triples is not None:
                self._loaded.imprint_triples += triples.n
                yield triples

    def _parse(self, part: StaticPart, file: StaticFile) -> Iterator[Triples]:
        self._loaded.source_parts += 1
        size = part.seen[0] if part.stop is None else part.stop - part.start
        if part.press:
            self._begin(part, file, size)
        for triples in chunks(file, self._seed, part.start, part.stop):
            self._loaded.source_triples += triples.n
            if part.press and triples.n:
                self._press(triples)
            yield triples
        self._loaded.source_bytes += size
        check_seen(file, part.seen)
        if part.press and file.replaceable:
            self._write()

    def _begin(self, part: StaticPart, file: StaticFile, size: int) -> None:
        if file.replaceable and self._sources:
            self._write()
        self._sources.append(Source(*key_of(file), part.seen, 0, size))

    def _press(self, triples: Triples) -> None:
        source = self._sources[-1]
        frames = make_imprint(triples, f"{len(self._sources) - 1}.{source.chunks}")
        source.chunks += 1
        self._frames |= frames
        self._size += sum(c.nbytes for f in frames.values() for c in f.columns.values())
        if self._size >= MAX_BUFFERED_BYTES:
            self._write()
            self._sources = [Source(*source.key, source.seen)]

    def _write(self) -> None:
        data = checked_parts(self._frames, msgspec.to_builtins(self._sources))
        name = state_files.write(self._root, "state", f"{self._epoch}-{MARK}", data)
        self._loaded.new_imprints.append(name)
        self._loaded.new_imprint_bytes += sum(map(len, data))
        self._frames, self._sources, self._size = {}, [], 0

    def finish(self) -> Loaded:
        """Writes the remaining imprints; returns the report of what was read."""
        if self._sources:
            self._write()
        return self._loaded


def sources_in(meta: Any) -> list[Source]:
    """Returns the sources of the imprints in a file."""
    return msgspec.convert(meta, list[Source])
