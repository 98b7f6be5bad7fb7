"""Static RDF: files in any RDF format, plain or packed, as parsed chunks (design, section 1, static graphs).

A file's triples belong to the default graph, those of a quad format also to its named graphs; with ``graph`` all of them belong
to that one graph, whatever graphs the file names. Static data must be sound: a file that does not parse is an error that says
where, not a dead letter. Cost: N-Triples and N-Quads as ``intake.parse``, others as ``intake.documents``; a chunk in memory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np

from levada.errors import SourceError, UsageError, near
from levada.formats import LINES, NAMES, QUADS, RDF, format_of, word_of
from levada.intake.documents import Malformed, document_chunks
from levada.intake.identity import identify_one
from levada.intake.parse import Triples, parse
from levada.model.term import Kind
from levada.sources.inflate import DAMAGED, opened
from levada.sources.reference import document_id

CHUNK = 8_000_000
_PLACE = re.compile(r"^Malformed (?:at|between) columns? (\d+)(?: and \d+)?: ")


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file of static RDF: its format, and the graphs that it has triples for (None: the default graph).

    ``whole``: all its triples go to the one graph that there is, whatever they say. ``lines``: N-Triples that are no file yet, in
    place of what is at the path.
    """

    path: str
    format: str
    graphs: frozenset[str | None]
    whole: bool = True
    lines: tuple[str, ...] = ()


def static_source(
    source: str | os.PathLike[str] | Iterable[str], graph: str | None = None, form: str | None = None
) -> StaticFile:
    """A file, or N-Triples lines, as static RDF. Raises ``SourceError``, ``UsageError``.

    >>> static_source(["<a:a> <a:b> <a:c>"]).lines
    ('<a:a> <a:b> <a:c> .\\n',)
    """
    if not isinstance(source, (str, os.PathLike)):
        lines = tuple(line.rstrip().removesuffix(".").rstrip() + " .\n" for line in source)
        return StaticFile("", "nt", frozenset({graph}), lines=lines)
    if not Path(source).exists():
        raise UsageError(f"There is no static file {source}.")
    return static_file(os.fspath(source), graph, form)


def placed(files: Sequence[StaticFile], folder: Path, write: Callable[[Path, bytes], None]) -> list[StaticFile]:
    """The files; lines that were given are written to files in the folder, named by their places."""
    found = []
    for file, known in zip(files, named(files, folder), strict=True):
        if not file.path:  # also where no line was given
            write(Path(known.path), "".join(file.lines).encode())
        found.append(replace(known, lines=()))
    return found


def named(files: Sequence[StaticFile], folder: Path) -> list[StaticFile]:
    """The files, each with the path that ``placed`` gives it, by which its blank nodes are known; lines stay lines."""
    return [file if file.path else replace(file, path=str(folder / f"{i}.nt")) for i, file in enumerate(files)]


def static_file(path: str, graph: str | None = None, form: str | None = None) -> StaticFile:
    """A file as static RDF; one of a quad format is read for the names of its graphs. Raises ``SourceError``, ``UsageError``."""
    word = _format(path, form)
    if graph is not None or word not in QUADS:
        return StaticFile(path, word, frozenset({graph}))
    names: dict[bytes, str | None] = {}
    for triples in _chunks(StaticFile(path, word, frozenset()), 0):
        _name_graphs(triples, path, names)
    return StaticFile(path, word, frozenset({None, *names.values()}), whole=False)


def static_chunks(static: Sequence[StaticFile], graphs: Iterable[str | None], seed: int) -> Iterator[Triples]:
    """The triples of these graphs in the static files."""
    wanted = frozenset(graphs)
    for file in static:
        chosen = file.graphs & wanted
        if not chosen:
            continue
        for triples in _chunks(file, seed):
            yield triples if file.whole else _of_graphs(triples, chosen, seed)


def _format(path: str, form: str | None) -> str:
    word = format_of(path) if form is None else word_of(form)
    if word in RDF:
        return word
    if form is not None:
        raise UsageError(f"{form} is no format of static RDF.", hint=near(form, RDF))
    hint = "Say format= with one of " + ", ".join(RDF) + "."
    raise SourceError(f"The format of the static file {path} does not show in its name.", hint=hint)


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


def _of_graphs(triples: Triples, graphs: Iterable[str | None], seed: int) -> Triples:
    """The statements of a chunk of quads that are in these graphs."""
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


def _chunks(file: StaticFile, seed: int) -> Iterator[Triples]:
    """The statements of a file, some at a time."""
    path = file.path
    document = document_id("static", path)
    try:
        if file.format in LINES:
            yield from _lines(file, seed, document)
            return
        base = Path(path).absolute().as_uri()
        for text in document_chunks(partial(opened, path), file.format, base):
            triples = parse(text, quads=True, timed=False, seed=seed, document=document)
            if triples.bad:
                raise Malformed(triples.bad[0][1])
            yield triples
    except Malformed as fault:
        message = f"The static file {path}{fault.where} is not well-formed {NAMES[file.format]}: {fault}."
        raise SourceError(message) from None
    except (*DAMAGED, OSError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or error
        raise SourceError(f"The static file {path} cannot be read: {reason}.") from error


def _lines(file: StaticFile, seed: int, document: int) -> Iterator[Triples]:
    """N-Triples or N-Quads, a piece of whole lines at a time."""
    before, rest = 0, b""
    with BytesIO("".join(file.lines).encode()) if file.lines else opened(file.path) as source:
        while block := source.read(CHUNK):
            cut = block.rfind(b"\n") + 1
            if not cut:
                rest += block
                continue
            text, rest = rest + block[:cut], block[cut:]
            yield _sound(
                parse(text, quads=file.format == "nq", timed=False, seed=seed, document=document), text, before
            )
            before += text.count(b"\n")
        if rest:
            yield _sound(
                parse(rest, quads=file.format == "nq", timed=False, seed=seed, document=document), rest, before
            )


def _sound(triples: Triples, text: bytes, before: int) -> Triples:
    """The chunk, unless a line of it is no statement; ``before`` lines came before it."""
    if not triples.bad:
        return triples
    at, reason, _ = triples.bad[0]
    place = _PLACE.match(reason)
    line = before + text.count(b"\n", 0, at) + 1
    raise Malformed(_PLACE.sub("", reason).rstrip("."), line, int(place[1]) if place else 1)
