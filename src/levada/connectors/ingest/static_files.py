"""Reads static RDF: files in any RDF format, plain or packed, as parsed chunks
(docs/semantics.md#graphs).

A file's triples belong to the default graph, those of a quad format also to its named graphs. With
``graph`` all of them belong to that one graph, whatever graphs the file names. Static data must be
valid: a file that does not parse is an error with its place, not a dead letter. Cost: N-Triples and
N-Quads as ``connectors.ingest.parse.ntriples``, others as ``connectors.ingest.parse.documents``; a
chunk in memory. Parsers are loaded when a file is read: the query path only asks which graphs
exist.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from levada.connectors.config.input_formats import (
    LINES,
    NAMES,
    PACKED,
    QUADS,
    RDF,
    format_of,
    word_of,
)
from levada.connectors.sources.file_errors import is_of_data, reason, shown
from levada.connectors.sources.splits import document_id
from levada.core.frozen import frozen
from levada.core.rdf_terms import Kind
from levada.errors import SourceError, UsageError, near

if TYPE_CHECKING:
    from levada.connectors.ingest.parse.document_limits import Malformed
    from levada.connectors.ingest.parse.ntriples import Triples

CHUNK = 8_000_000
_PLACE = re.compile(r"^Malformed (?:at|between) columns? (\d+)(?: and \d+)?: ")


@frozen
class StaticFile:
    """A file of static RDF: its format, and the graphs that it fills (None: the default graph).

    ``whole``: all its triples go to the only graph, whatever they say. ``lines``: N-Triples that
    are not written to the path yet. ``replaceable``: its data may be replaced. ``copied_from``: the
    file of which ``path`` is a copy, "" if it is none.
    """

    path: str
    format: str
    graphs: frozenset[str | None]
    whole: bool = True
    lines: tuple[str, ...] = ()
    replaceable: bool = False
    copied_from: str = ""

    @property
    def name(self) -> str:
        """The file's name for people."""
        return self.copied_from or self.path


def _as_ntriples(source: str) -> str:
    """Suggests the arguments for a graph and its file that were passed like a stream and its
    file.
    """
    graph, _, path = source.rpartition("=")
    return f" A graph stands behind its file: {path},graph={graph}" if os.path.exists(path) else ""


def static_source(
    source: str | os.PathLike[str] | Iterable[str],
    graph: str | None = None,
    form: str | None = None,
) -> StaticFile:
    """Returns a file, or N-Triples lines, as static RDF. Raises ``SourceError``, ``UsageError``.

    >>> static_source(["<a:a> <a:b> <a:c>"]).lines
    ('<a:a> <a:b> <a:c> .\\n',)
    """
    if not isinstance(source, (str, os.PathLike)):
        lines = tuple(line.rstrip().removesuffix(".").rstrip() + " .\n" for line in source)
        return StaticFile("", "nt", frozenset({graph}), lines=lines)
    if not os.path.exists(source):  # False for names that the system refuses
        raise UsageError(f"There is no static file {source}.{_as_ntriples(os.fspath(source))}")
    if shown(os.fspath(source)) != os.fspath(source):
        raise UsageError(f"The name of the static file {shown(os.fspath(source))} is not UTF-8.")
    # a task may run in another directory
    return static_file(os.path.abspath(source), graph, form)


def name_files(files: Sequence[StaticFile], folder: Path) -> list[StaticFile]:
    """Returns the files, with lines under their future path, which identifies their blank nodes;
    lines are not written.
    """
    return [
        file if file.path else replace(file, path=str(folder / f"{i}.nt"))
        for i, file in enumerate(files)
    ]


def static_file(path: str, graph: str | None = None, form: str | None = None) -> StaticFile:
    """Returns a file as static RDF; reads a quad format for the names of its graphs. Raises
    ``SourceError``, ``UsageError``.
    """
    word = _format(path, form)
    if graph is not None or word not in QUADS:
        return StaticFile(path, word, frozenset({graph}))
    names: dict[bytes, str | None] = {}
    for triples in chunks(StaticFile(path, word, frozenset()), 0):
        _name_graphs(triples, path, names)
    return StaticFile(path, word, frozenset({None, *names.values()}), whole=False)


def replaced_graphs(before: Sequence[StaticFile], now: Sequence[StaticFile]) -> list[str | None]:
    """Returns the replaceable graphs whose files have changed.

    >>> graphs = frozenset({None})
    >>> one, other = StaticFile("a", "nt", graphs), StaticFile("b", "nt", graphs, replaceable=True)
    >>> replaced_graphs([one], [other])
    [None]
    """
    graphs = {g for file in now if file.replaceable for g in file.graphs}
    return sorted((g for g in graphs if _content(before, g) != _content(now, g)), key=str)


def _content(files: Sequence[StaticFile], graph: str | None) -> list[tuple[str, str, str]]:
    """Returns the facts that determine the triples of a graph; a document's terms may be relative
    to its place.
    """
    graph_files = [f for f in files if graph in f.graphs]
    return [(f.path, f.format, "" if f.format in LINES else f.copied_from) for f in graph_files]


def check_sound(file: StaticFile) -> None:
    """Reads a file to its end. Raises ``SourceError`` if it is ill-formed."""
    for _ in chunks(file, 0):
        pass


def cut(file: StaticFile, size: int) -> list[tuple[int, int | None]]:
    """Returns ranges [start, stop) of ``size`` bytes in which a file may be read; (0, None) if it
    must be read whole.
    """
    if file.format not in LINES or Path(file.path).suffix in PACKED:
        return [(0, None)]
    whole = os.path.getsize(file.path)
    return [(at, min(at + size, whole)) for at in range(0, whole, size)] or [(0, None)]


def _format(path: str, form: str | None) -> str:
    word = format_of(path) if form is None else word_of(form)
    if word in RDF:
        return word
    if form is not None:
        raise UsageError(f"{form} is no format of static RDF.", hint=near(form, RDF))
    hint = "Say format= with one of " + ", ".join(RDF) + "."
    raise UsageError(f"The format of the static file {path} does not show in its name.", hint=hint)


def _name_graphs(triples: Triples, path: str, names: dict[bytes, str | None]) -> None:
    """Adds the names of the graphs of a chunk, by their identities."""
    g = triples.g
    assert g is not None, "quads have a graph"
    kinds = g.kind[: triples.n]
    if bool((kinds == Kind.BLANK).any()):
        raise SourceError(
            f"The static file {path} names a graph by a blank node, which no query can.",
            hint="Give the graph an IRI, or say graph=IRI for the whole file.",
        )
    rows = np.flatnonzero(kinds == Kind.IRI)
    _, first = np.unique(np.stack([g.x[rows], g.y[rows]], axis=1), axis=0, return_index=True)
    for row in rows[first].tolist():
        text = triples.text(g, row)
        names[text.encode()] = text[1:-1]


def select_graphs(
    file: StaticFile, triples: Triples, graphs: Iterable[str | None], seed: int
) -> Triples:
    """Returns the statements of a chunk that are in these graphs."""
    from levada.kernels.terms.term_ids import identify_one

    graphs = file.graphs.intersection(graphs)
    if file.whole and graphs:
        return triples
    g = triples.g
    assert g is not None, "quads have a graph"
    keep = np.zeros(triples.n, np.bool_)
    for graph in graphs:
        if graph is None:
            keep |= g.kind == Kind.UNBOUND
        else:
            x, y = identify_one(f"<{graph}>", seed)
            keep |= (g.x == np.uint64(x)) & (g.y == np.uint64(y))
    return triples if keep.all() else triples.take(np.flatnonzero(keep))


def chunks(
    file: StaticFile, seed: int, start: int = 0, stop: int | None = None
) -> Iterator[Triples]:
    """Yields the statements of a file in chunks, of a range those that begin in it. Raises
    ``SourceError``.
    """
    from levada.connectors.ingest.parse.document_limits import Malformed
    from levada.connectors.ingest.parse.documents import document_chunks, refusal
    from levada.connectors.ingest.parse.ntriples import parse
    from levada.connectors.sources.decompression import open_

    path, name = file.path, file.name
    document = document_id("static", path)
    try:
        if file.format in LINES:
            yield from _lines(file, seed, document, start, stop)
            return
        base = Path(os.path.abspath(name)).as_uri()
        for text in document_chunks(partial(open_, path), file.format, base):
            triples = parse(text, quads=True, timed=False, seed=seed, document=document)
            if triples.bad:
                raise refusal(partial(open_, path), file.format, triples.bad[0][1])
            yield triples
    except Malformed as fault:
        form = NAMES[file.format]
        message = f"The static file {name}{fault.location} is not well-formed {form}: {fault}."
        raise SourceError(message) from None
    except SourceError:
        raise
    except BaseException as error:
        if not is_of_data(error):
            raise
        raise SourceError(f"The static file {name} cannot be read: {reason(error)}.") from error


def _lines(
    file: StaticFile, seed: int, document: int, start: int, stop: int | None
) -> Iterator[Triples]:
    """Yields N-Triples or N-Quads, some whole lines at a time: the lines that begin in [start,
    stop).
    """
    from levada.connectors.ingest.parse.ntriples import parse

    for at, text in _texts(file, start, stop):
        triples = parse(text, quads=file.format == "nq", timed=False, seed=seed, document=document)
        if triples.bad:
            raise _at_line(triples, text, _line_ends(file, at))
        yield triples


def _source(file: StaticFile) -> IO[bytes]:
    """Opens the bytes of a file, or of lines that are not written yet."""
    from levada.connectors.sources.decompression import open_

    return BytesIO("".join(file.lines).encode()) if file.lines else open_(file.path)


def _texts(file: StaticFile, start: int, stop: int | None) -> Iterator[tuple[int, bytes]]:
    """Yields the lines that begin in [start, stop), some at a time, with the place of the first."""
    at, rest = 0, b""
    with _source(file) as source:
        if start:
            source.seek(start - 1)
            source.readline()
            at = source.tell()
        while stop is None or at < stop:
            block = source.read(CHUNK)
            rest += block
            last = stop is not None and at + len(rest) >= stop
            cut = (
                rest.find(b"\n", stop - 1 - at) + 1
                if stop is not None and last
                else rest.rfind(b"\n") + 1
            )
            if not block:
                cut = len(rest)
            if cut:
                yield at, rest[:cut]
                at, rest = at + cut, rest[cut:]
            if not block:
                return


def _line_ends(file: StaticFile, size: int) -> int:
    """Counts the lines that end in the first so many bytes of a file."""
    line_count = 0
    with _source(file) as source:
        while size > 0 and (block := source.read(min(size, CHUNK))):
            line_count, size = line_count + block.count(b"\n"), size - len(block)
    return line_count


def _at_line(triples: Triples, text: bytes, before: int) -> Malformed:
    """Returns the fault of the first line that is not a statement, after ``before`` lines."""
    from levada.connectors.ingest.parse.document_limits import Malformed

    at, reason, _ = triples.bad[0]
    place = _PLACE.match(reason)
    line = before + text.count(b"\n", 0, at) + 1
    return Malformed(_PLACE.sub("", reason).rstrip("."), line, int(place[1]) if place else 1)
