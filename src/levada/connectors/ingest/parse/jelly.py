"""Decodes Jelly files to pyoxigraph's statements, through pyjelly's decoder (Jelly 1.1: triples,
quads and graphs streams).

Frames only divide a file: its statements are one document. Cost: 10 us a statement; the decoder is
Python.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, Any, cast

import pyoxigraph as ox
from google.protobuf.message import DecodeError
from pyjelly.errors import JellyConformanceError
from pyjelly.parse.decode import Adapter, Decoder
from pyjelly.parse.ioutils import get_options_and_frames

from levada.connectors.ingest.parse.document_limits import DIRECTION, Malformed

BLOCK = 1 << 20


class _InBlocks:
    """A file that is read in blocks: a frame may declare any length, and only present bytes are
    held.

    pyjelly reads the first bytes and returns to them, which is the only ``seek``.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._last = self._again = b""

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int) -> None:
        assert whence == os.SEEK_CUR and 0 <= -offset <= len(self._last), "back to what was read"
        self._again = self._last[len(self._last) + offset :]

    def read(self, size: int = -1) -> bytes:
        again, self._again = self._again, b""
        if size < 0:
            self._last = again + self._file.read()
        else:
            first, self._again = again[:size], again[size:]
            self._last = first + self._read(size - len(first))
        return self._last

    def _read(self, size: int) -> bytes:
        if size <= BLOCK:
            return self._file.read(size)
        parts = []
        while size > 0 and (part := self._file.read(min(size, BLOCK))):
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


class _Terms(Adapter):  # type: ignore[misc]  # pyjelly has no types
    """Converts pyjelly's terms and quads to pyoxigraph's."""

    graph: Any = ox.DefaultGraph()

    def iri(self, iri: str) -> ox.NamedNode:
        return ox.NamedNode(iri)

    def bnode(self, bnode: str) -> ox.BlankNode:
        return ox.BlankNode(bnode)

    def default_graph(self) -> ox.DefaultGraph:
        return ox.DefaultGraph()

    def literal(
        self, lex: str, language: str | None = None, datatype: str | None = None
    ) -> ox.Literal:
        if language and "--" in language:
            raise Malformed(DIRECTION.rstrip("."))
        if language:
            return ox.Literal(lex, language=language)
        return ox.Literal(lex, datatype=None if datatype is None else ox.NamedNode(datatype))

    def triple(self, terms: Iterable[Any]) -> ox.Quad:
        subject, predicate, object_ = terms
        return ox.Quad(subject, predicate, object_, self.graph)

    def quad(self, terms: Iterable[Any]) -> ox.Quad:
        subject, predicate, object_, graph = terms
        return ox.Quad(subject, predicate, object_, graph)

    def graph_start(self, graph_id: Any) -> None:
        self.graph = graph_id

    def graph_end(self) -> None:
        self.graph = ox.DefaultGraph()

    def namespace_declaration(self, name: str, iri: str) -> None:
        """Ignores prefixes, which are not a part of the graph."""

    def quoted_triple(self, terms: Iterable[Any]) -> ox.Triple:
        return ox.Triple(*terms)


def jelly_quads(file: IO[bytes]) -> Iterator[ox.Quad]:
    """Yields the statements of a Jelly file, in order; raises a ``SyntaxError``, like pyoxigraph,
    for other data.
    """
    try:
        options, frames = get_options_and_frames(cast(IO[bytes], _InBlocks(file)))
        decoder = Decoder(_Terms(options))
        yield from filter(None, chain.from_iterable(map(decoder.iter_rows, frames)))
    # pyjelly's errors for bytes that are not Jelly; NotImplementedError is for unsupported
    # features of Jelly.
    except (
        JellyConformanceError,
        DecodeError,
        NotImplementedError,
        ValueError,
        TypeError,
        LookupError,
        AssertionError,
    ) as error:
        said = (str(error).splitlines() or ["a message breaks its rules"])[0]
        raise SyntaxError(f"not Jelly: {said}") from error
