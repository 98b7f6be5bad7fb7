"""The content of static graphs as N-Triples, in blocks, and the parser of graphs that clients send.

Files are read at the paths in the newest setup of the checkpoint. Blank nodes of a file have labels
of that file.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import pyoxigraph as ox

from levada.connectors.config.input_formats import LINES, NAMES, QUADS
from levada.connectors.ingest.parse.document_limits import Malformed
from levada.connectors.ingest.parse.documents import document_chunks, document_text
from levada.connectors.ingest.static_files import StaticFile
from levada.connectors.sources.decompression import open_
from levada.server.problem_json import Problem

TAKES = {
    "application/n-triples": "nt",
    "text/turtle": "ttl",
    "application/rdf+xml": "rdf",
    "application/ld+json": "jsonld",
}
BLOCK = 1 << 20  # bytes
STATEMENTS_PER_WRITE = 10_000


def files_of(files: Sequence[StaticFile], graph: str | None) -> list[StaticFile]:
    """Returns the files of a graph (None: the default graph)."""
    return [file for file in files if graph in file.graphs]


def content_of(files: Sequence[StaticFile], graph: str | None) -> Iterator[bytes]:
    """Yields the triples of a graph as N-Triples. Blank nodes of different files differ. Raises
    ``OSError``.
    """
    if len(files) == 1:
        yield from lines_of(files[0], graph)
        return
    for file in files:
        text = cast(IO[bytes], _Stream(lines_of(file, graph)))
        quads = ox.parse(text, format=ox.RdfFormat.N_TRIPLES, rename_blank_nodes=True)
        yield from _ntriples(quad.triple for quad in quads)


class _Stream(io.RawIOBase):
    """Blocks of bytes as a file."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._rest = blocks, b""

    def readable(self) -> bool:
        """Returns True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer with the next bytes. Returns their number, 0 at the end."""
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = block
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def lines_of(file: StaticFile, graph: str | None) -> Iterator[bytes]:
    """Yields the triples of a graph in one file as N-Triples. Raises ``OSError``."""
    if file.format == "nt":
        yield from _blocks(file)
    elif file.format in LINES:
        with open_(file.path) as opened:
            yield from _triples(file, graph, ox.parse(opened, format=ox.RdfFormat.N_QUADS))
    else:
        base = Path(file.name).absolute().as_uri()
        for text in document_chunks(partial(open_, file.path), file.format, base):
            if file.format in QUADS:
                quads = ox.parse(io.BytesIO(text), format=ox.RdfFormat.N_QUADS)
                yield from _triples(file, graph, quads)
            else:
                yield text


def _blocks(file: StaticFile) -> Iterator[bytes]:
    last = b"\n"
    with open_(file.path) as opened:
        while block := opened.read(BLOCK):
            last = block
            yield block
    if not last.endswith(b"\n"):
        yield b"\n"


def _triples(file: StaticFile, graph: str | None, quads: Iterator[ox.Quad]) -> Iterator[bytes]:
    wanted = ox.DefaultGraph() if graph is None else ox.NamedNode(graph)
    yield from _ntriples(quad.triple for quad in quads if file.whole or quad.graph_name == wanted)


def _ntriples(triples: Iterator[ox.Triple]) -> Iterator[bytes]:
    while some := list(islice(triples, STATEMENTS_PER_WRITE)):
        yield ox.serialize(some, format=ox.RdfFormat.N_TRIPLES) or b""


def triples_sent(data: bytes, media: str, base: str) -> bytes:
    r"""Converts the body for a graph into N-Triples. Raises ``Problem`` 400, 415.

    >>> triples_sent(b"<a> <b> 1 .", "text/turtle", "http://e/")[:32]
    b'<http://e/a> <http://e/b> "1"^^<'
    """
    form = TAKES.get(media)
    if form is None:
        raise Problem(415, f"A graph is not taken as {media[:100]}.", available=list(TAKES))
    try:  # N-Triples are Turtle
        read = "ttl" if form == "nt" else form
        text = document_text(data, read, base)
    except Malformed as fault:
        message = f"This is not well-formed {NAMES[form]}: {fault}."
        raise Problem(400, message, line=fault.line or None, column=fault.column or None) from None
    if form in QUADS and any(
        quad.graph_name != ox.DefaultGraph()
        for quad in ox.parse(io.BytesIO(text), format=ox.RdfFormat.N_QUADS)
    ):
        raise Problem(400, "The body names graphs of its own: it is one graph that is put.")
    return text
