"""Jelly files as pyoxigraph's statements, through pyjelly's decoder (Jelly 1.1: triples, quads and
graphs streams).

Frames are only how a file is cut: its statements are one document. Cost: 10 us a statement; the
decoder is Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, Any

import pyoxigraph as ox
from google.protobuf.message import DecodeError
from pyjelly.errors import JellyConformanceError
from pyjelly.parse.decode import Adapter, Decoder
from pyjelly.parse.ioutils import get_options_and_frames


class _Terms(Adapter):  # type: ignore[misc]  # pyjelly has no types
    """What pyjelly decodes, as pyoxigraph's terms and quads."""

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
        """Prefixes say nothing about the graph."""

    def quoted_triple(self, terms: Iterable[Any]) -> ox.Triple:
        return ox.Triple(*terms)


def jelly_quads(file: IO[bytes]) -> Iterator[ox.Quad]:
    """The statements of a Jelly file, in order; a ``SyntaxError``, as pyoxigraph's, for others."""
    try:
        options, frames = get_options_and_frames(file)
        decoder = Decoder(_Terms(options))
        yield from filter(None, chain.from_iterable(map(decoder.iter_rows, frames)))
    # What pyjelly raises for bytes that are not Jelly, or Jelly that it does not read, which it
    # says by NotImplementedError.
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
