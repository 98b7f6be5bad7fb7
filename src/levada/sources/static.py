"""Static RDF: files in N-Triples or Turtle, as parsed chunks (design, section 1, static graphs).

A file without ``graph`` belongs to the default graph. Static data must be sound: a line that does not parse is an error that
names file and place, not a dead letter.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import pyoxigraph as ox

from levada.errors import SourceError
from levada.intake.parse import Triples, from_quads, parse
from levada.sources.reference import document_id

CHUNK = 8_000_000
QUADS = 100_000
FORMATS = {
    ".nt": ox.RdfFormat.N_TRIPLES, ".ntriples": ox.RdfFormat.N_TRIPLES, ".ttl": ox.RdfFormat.TURTLE,
    ".turtle": ox.RdfFormat.TURTLE,
}  # fmt: skip


def static_chunks(
    static: Sequence[tuple[str, str | None]], graphs: Iterable[str | None], seed: int
) -> Iterator[Triples]:  # fmt: skip
    """The triples of the static files of these graphs."""
    wanted = set(graphs)
    for path, graph in static:
        if graph in wanted:
            yield from _chunks(Path(path), seed)


def format_of(path: Path) -> ox.RdfFormat:
    """The RDF format of a static file by its ending (``.gz`` apart)."""
    ending = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if ending not in FORMATS:
        raise SourceError(
            f"The static file {path} has no known ending.", hint="Known: " + ", ".join(FORMATS) + ", also with .gz."
        )
    return FORMATS[ending]


def _chunks(path: Path, seed: int) -> Iterator[Triples]:
    document = document_id("static", str(path))
    kind = format_of(path)
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rb") as file:
            if kind == ox.RdfFormat.N_TRIPLES:
                yield from _lines(file, path, seed, document)
            else:
                labels: dict[str, str] = {}
                quads = iter(ox.parse(file, format=kind, base_iri=path.absolute().as_uri()))  # type: ignore[arg-type]
                while batch := list(islice(quads, QUADS)):
                    yield _sound(from_quads(batch, seed, document, labels), path)
    except OSError as error:
        raise SourceError(f"The static file {path} cannot be read: {error.strerror or error}.") from error
    except SyntaxError as error:
        raise SourceError(f"The static file {path} is not well-formed: {error}.") from error


def _lines(file: Iterable[bytes], path: Path, seed: int, document: int) -> Iterator[Triples]:
    while lines := list(islice(file, QUADS)):
        triples = parse(b"".join(lines), quads=False, timed=False, seed=seed, document=document)
        yield _sound(triples, path)


def _sound(triples: Triples, path: Path) -> Triples:
    if triples.bad:
        _, reason, text = triples.bad[0]
        raise SourceError(f"The static file {path} is not well-formed: {reason}: {text.strip()}")
    return triples
