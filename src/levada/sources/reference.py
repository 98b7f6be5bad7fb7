"""References: what the driver tells a task to read, in place of rows
(docs/architecture.md#a-triples-way).

A reference is a range of one file that holds whole elements. It is small, JSON-able (msgspec) and
says everything that a task needs beside the stream's configuration: where the bytes are, which
document they belong to, how the file is called.
"""

from __future__ import annotations

import msgspec
import xxhash


class Reference(msgspec.Struct, frozen=True):
    """A range of whole elements of one file.

    ``partition`` is the source partition (the stream, or the file with ``files=parallel``),
    ``name`` the file's name for people and ``filename:`` times, ``path`` where the bytes lie (a
    scratch file for packed ones). ``start`` and ``stop`` are bytes of the (unpacked) text, for
    Parquet rows. ``index`` counts the references of a partition within one ``take``. ``document``
    scopes blank nodes. ``elements`` is how many elements the driver counted, well-formed or not.
    ``base``: the IRI of an RDF document. ``row``: the
    number of its first record in the file, for a table with a mapping.
    ``segments``: of a stream that a query makes, the files of the checkpoint with its results; then
    ``name`` is the query's and ``path`` the file of the plan that it was in.
    ``limit_left``: the task keeps at most so many elements within from and to (None: no limit for
    the task to apply).
    ``fingerprint``: of the file that is meant (``sources.fingerprint``), so that no other one that
    has come in its place is read; "" where none can.
    """

    stream: str
    partition: str
    name: str
    path: str
    format: str
    start: int
    stop: int
    index: int
    document: int
    elements: int
    limit_left: int | None = None
    base: str = ""
    row: int = 0
    segments: tuple[str, ...] = ()
    fingerprint: str = ""


def document_id(stream: str, name: str, life: int = 0) -> int:
    """The document that the file ``name`` of a stream is: the same file gives the same document, on
    any machine. ``life``: how many others were under the name before.

    >>> document_id("s", "a.nt") == document_id("s", "a.nt") != document_id("s", "b.nt")
    True
    """
    again = f"\0{life}" if life else ""
    return int(xxhash.xxh3_64_intdigest(f"{stream}\0{name}{again}".encode()))
