"""Builders for tests: elements as files that Levada reads, and a clock that a test moves.

RDF elements become N-Triples lines with the event time as a further term before the dot
(``time=column``). Each triple is a line, so with ``element=line`` each triple is an element. Rows
become CSV with a column for the time. A directory's files are named in order. Names that end in
``.gz`` or ``.zst`` are compressed without a time in the header, so equal input makes equal bytes.
pyoxigraph and pyjelly write other RDF formats.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyoxigraph as ox

from levada.connectors.config.input_formats import QUADS, RDF, format_of
from levada.connectors.ingest.parse.documents import PARSERS
from levada.connectors.serialization.jelly_writer import jelly_bytes
from levada.core.rdf_terms import XSD
from levada.testing.oracle_engines import date_time
from levada.testing.reference_model import Element, Row, Value

TimeForm = Literal["bare", "quoted", "typed", "dateTime"]


def time_term(ts: int, form: TimeForm = "bare") -> str:
    """Returns an event time (ms) as one of the terms that ``time=column`` reads.

    >>> time_term(1500), time_term(1500, "quoted")
    ('1500', '"1500"')
    """
    match form:
        case "bare":
            return str(ts)
        case "quoted":
            return f'"{ts}"'
        case "typed":
            return f'"{ts}"^^<{XSD}integer>'
        case "dateTime":
            return date_time(ts)


def lines(elements: Iterable[Element], form: TimeForm = "bare") -> Iterator[str]:
    """Yields the lines of elements, without ends of line.

    >>> list(lines([Element(7, ("<a:s> <a:p> <a:o>",))]))
    ['<a:s> <a:p> <a:o> 7 .']
    """
    for element in elements:
        for triple in element.triples:
            yield f"{triple} {time_term(element.ts, form)} ."


def write_lines(path: Path, elements: Iterable[Element], form: TimeForm = "bare") -> Path:
    """Writes a stream to one file of timed N-Triples; returns the path."""
    return _write(path, "".join(f"{line}\n" for line in lines(elements, form)))


def write_directory(
    folder: Path,
    elements: Sequence[Element],
    files: int = 2,
    form: TimeForm = "bare",
    ending: str = ".nt",
) -> Path:
    """Cuts a stream into files of consecutive elements, ``0000.nt`` and so on; returns the folder.

    ``ending`` may be ``.nt.gz``. Files may be empty if there are fewer elements.
    """
    assert files > 0, "a stream is cut into at least one file"
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(files):
        start, stop = (len(elements) * j // files for j in (i, i + 1))
        write_lines(folder / f"{i:04}{ending}", elements[start:stop], form)
    return folder


def write_graph(path: Path, triples: Iterable[str]) -> Path:
    """Writes static triples as N-Triples; returns the path."""
    return _write(path, "".join(f"{t} .\n" for t in triples))


def write_rdf(path: Path, quads: Iterable[str]) -> Path:
    """Writes statements, N-Quads without the dot, in the format and packing of the path's ending.

    Returns the path.
    """
    statements = list(ox.parse("".join(f"{q} .\n" for q in quads), ox.RdfFormat.N_QUADS))
    form = format_of(path.name)
    assert form in RDF, "the ending is that of an RDF format"
    if form == "jelly":
        data: bytes | None = jelly_bytes(statements)
    else:
        whole = form in QUADS
        data = ox.serialize(
            statements if whole else [q.triple for q in statements], format=PARSERS[form]
        )
    assert data is not None, "without an output file the print is returned"
    return write_packed(path, data)


def write_documents(folder: Path, elements: Sequence[Element], ending: str = ".ttl") -> Path:
    """Writes each element as a document ``0000_TS.ttl``, for ``time=filename:_(-?[0-9]+)``.

    Returns the folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for i, element in enumerate(elements):
        write_rdf(folder / f"{i:04}_{element.ts}{ending}", element.triples)
    return folder


def write_graphs(path: Path, elements: Sequence[Element]) -> Path:
    """Writes all elements in one quad document, each in the graph ``<http://e/t/TS>``; returns the
    path.

    A time before 1970 is a dateTime: in an IRI a minus may be any hyphen.
    """
    times = [str(e.ts) if e.ts >= 0 else date_time(e.ts).split('"')[1] for e in elements]
    return write_rdf(
        path,
        [
            f"{t} <http://e/t/{at}>"
            for e, at in zip(elements, times, strict=True)
            for t in e.triples
        ],
    )


def write_packed(path: Path, data: bytes) -> Path:
    """Writes bytes as a file, compressed by its ending; returns the path."""
    if path.suffix == ".zst":
        data = pa.compress(data, codec="zstd", asbytes=True)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def write_csv(
    path: Path, rows: Iterable[Row], columns: Sequence[str], time: str = "ts", sign: str = ""
) -> Path:
    """Writes a tuple stream as CSV with a header and event times in ``time``; returns the path.

    For a relation ``sign`` is the column with + or -.
    """
    records = [[*columns, time, *([sign] if sign else [])]]
    for row in rows:
        signs = ["-" if row.sign < 0 else "+"] if sign else []
        records.append([*map(_cell, row.values), str(row.ts), *signs])
    return _write(path, "".join(",".join(record) + "\n" for record in records))


def _cell(value: Value | None) -> str:
    """Returns a field of CSV: empty for NULL; an empty text is quoted."""
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    quoted = not text or any(c in text for c in ',"\r\n')
    return '"' + text.replace('"', '""') + '"' if quoted else text


def _write(path: Path, text: str) -> Path:
    return write_packed(path, text.encode())


class ManualClock:
    """A wall clock in milliseconds that moves only with ``advance``.

    >>> clock = ManualClock(1000)
    >>> clock.advance(500)
    >>> clock()
    1500
    """

    def __init__(self, now: int = 0) -> None:
        self.now = now

    def __call__(self) -> int:
        """Returns the current time."""
        return self.now

    def advance(self, ms: int) -> None:
        """Advances the time, never backwards."""
        assert ms >= 0, "time does not run backwards"
        self.now += ms
