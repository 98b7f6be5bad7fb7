"""Defines references: the input that the driver assigns to a task, in place of rows
(docs/architecture.md#a-triples-way).

A reference is small, JSON-able (msgspec) and contains all that a task needs besides the stream's
configuration. There is a kind for each sort of source, with a tag in its JSON: a range of a file,
offsets of a partition of Kafka, results of a query. All kinds have a ``stream``, a source
``partition``, a ``name`` for people, a place ``start``, the ``elements`` that the driver counted
(an upper bound), and a ``size`` in bytes, by which work is shared among tasks.
"""

from __future__ import annotations

import msgspec
import xxhash

Piece = tuple[int, int, str]
"""The range of bytes of a text (end exclusive), and their hash."""

PARTITION_NUMBERS = 1 << 48
"""The numbers of rows that each partition of a topic has; 2**15 partitions have some."""


class Measured(msgspec.Struct, array_like=True, frozen=True):
    """A task's measurements of a range: the name of its file, the place where the range begins, its
    ``elements`` (0: the driver has counted them), the hash of its bytes, and the hashes of its
    ``blocks`` of the file (``FileSplit.hashed``), 16 characters each.
    """

    name: str
    start: int
    elements: int
    digest: str = ""
    blocks: str = ""


class FileSplit(msgspec.Struct, frozen=True, tag="file", tag_field="kind"):
    """A range of whole elements of one file.

    ``partition`` is the source partition (the stream, or the file with ``files=parallel``),
    ``name`` the file's name for people and ``filename:`` times, ``path`` where the bytes lie (a
    scratch file for packed ones). ``start`` and ``stop`` are bytes of the (unpacked) text, for
    Parquet rows. ``index`` counts the references of a partition within one ``take``. ``document``
    scopes blank nodes. ``elements`` is how many elements the driver counted, well-formed or not.
    ``base``: the IRI of an RDF document. ``row``: the
    number of its first record in the stream, for a mapping that uses it.
    ``limit_left``: the task keeps at most so many elements within from and to (None: no limit for
    the task to apply).
    ``fingerprint``: of the file that is meant (``connectors.sources.fingerprint``), so that no
    other one that has come in its place is read; "" where none can. ``seen``: its size (bytes) and
    time (ns) when it was cut, () where it is unpacked; ``pieces``: what was found in it, if that
    was looked at. ``sure``: what came of it is published, so if the file is another one the epoch
    fails. ``counted``: whether the driver has read the range; else it was cut by size, and
    ``elements`` is guessed. ``hashed``: from where to where a task hashes blocks of the file, for
    its fingerprint. ``measured``: what a task has found in the range, once it has read it.
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
    fingerprint: str = ""
    seen: tuple[int, ...] = ()
    pieces: tuple[Piece, ...] = ()
    sure: bool = False
    counted: bool = True
    hashed: tuple[int, int] = (0, 0)
    measured: Measured | None = None

    @property
    def size(self) -> int:
        """Bytes; of Parquet rows, which are few."""
        return self.stop - self.start


class DerivedSplit(msgspec.Struct, frozen=True, tag="made", tag_field="kind"):
    """The results of a query in an epoch, as a stream, or a part of them. ``segments`` are files of
    the checkpoint with its results, ``name`` is the query's, and ``path`` the file of its plan.

    ``parts``: the number of references to the epoch's results. ``before``: the segments of the
    previous parts, if nodes are numbered through all of them.
    """

    stream: str
    name: str
    path: str
    segments: tuple[str, ...]
    size: int
    elements: int
    document: int
    start: int = 0
    parts: int = 1
    before: tuple[str, ...] = ()

    @property
    def partition(self) -> str:
        """The stream is one partition."""
        return self.stream

    def text(self, size: int, form: str) -> FileSplit:
        """Returns the reference to ``size`` bytes of text that contain these results."""
        return FileSplit(
            self.stream, self.partition, self.name, self.path, form, 0, size, 0,
            self.document, self.elements,
        )  # fmt: skip


class OffsetSplit(msgspec.Struct, frozen=True, tag="kafka", tag_field="kind"):
    """The offsets ``start`` to ``stop`` (exclusive) of a partition of a topic. Fewer may have a
    message: transactions and compaction leave gaps. ``bytes_each``: the estimated size of a
    message. ``document`` scopes blank nodes, together with a message's offset.

    The number of a message's row is its offset, plus ``PARTITION_NUMBERS`` for each partition
    before this one. So it is unique in the stream, and does not depend on the other partitions.
    """

    stream: str
    topic: str
    number: int
    start: int
    stop: int
    bytes_each: int
    document: int

    @property
    def partition(self) -> str:
        """Each partition of the topic is one of the stream."""
        return str(self.number)

    @property
    def name(self) -> str:
        """The topic and the partition."""
        return f"{self.topic}/{self.number}"

    @property
    def elements(self) -> int:
        """The largest number of messages."""
        return self.stop - self.start

    @property
    def size(self) -> int:
        """The estimated bytes."""
        return self.elements * self.bytes_each

    def text(self, size: int, form: str) -> FileSplit:
        """Returns the reference to ``size`` bytes of text that contain the messages."""
        return FileSplit(
            self.stream, self.partition, self.name, "", form, 0, size, 0, self.document,
            self.elements, row=self.number * PARTITION_NUMBERS,
        )  # fmt: skip


AnyReference = FileSplit | DerivedSplit | OffsetSplit


def document_id(stream: str, name: str, life: int = 0) -> int:
    """Returns the document id of the file ``name`` of a stream, the same on any machine. ``life``:
    how many other files had the name before.

    >>> document_id("s", "a.nt") == document_id("s", "a.nt") != document_id("s", "b.nt")
    True
    """
    again = f"\0{life}" if life else ""
    return int(xxhash.xxh3_64_intdigest(f"{stream}\0{name}{again}".encode()))
